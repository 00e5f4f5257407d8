/* import_map.c - reads and writes lines of paths and ids. Main thread. */
#include "import_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "store_query.h"

#define HEAD "{\"path\":"
#define MIDDLE ",\"id\":\""
#define TAIL "\"}\n"
#define TAIL_LENGTH (sizeof MIDDLE - 1 + ULID_LENGTH + sizeof TAIL - 1)

/* ---- lines ---- */

/* Adds a line that was read. Returns 0, -EINVAL or -ENOMEM. */
static int add(struct import_map *m, const char *line, size_t length, bool is_stored)
{
	const char *tail = line + length - TAIL_LENGTH;
	const char *path = line + sizeof HEAD - 1, *id = tail + sizeof MIDDLE - 1;

	if (length < sizeof HEAD - 1 + TAIL_LENGTH || memcmp(line, HEAD, sizeof HEAD - 1) != 0 ||
	    memcmp(tail, MIDDLE, sizeof MIDDLE - 1) != 0 || !ulid_is_valid(id, ULID_LENGTH) ||
	    memcmp(id + ULID_LENGTH, TAIL, sizeof TAIL - 1) != 0)
		return -EINVAL;
	if (m->count == m->room) {
		size_t room = m->room ? 2 * m->room : 1024;
		struct import_known *known = realloc(m->known, room * sizeof *known);

		if (!known)
			return -ENOMEM;
		m->known = known;
		m->room = room;
	}
	struct import_known *k = &m->known[m->count++];

	checksum_of(path, (size_t)(tail - path), k->sum);
	memcpy(k->id, id, ULID_LENGTH);
	k->id[ULID_LENGTH] = '\0';
	k->is_stored = is_stored;
	return 0;
}

static int write_line(int fd, const char *path, const char *id)
{
	char data[IMPORT_LINE_MAX];
	struct text t;
	struct json j;

	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_object(&j, NULL);
	json_string(&j, "path", path);
	json_string(&j, "id", id);
	json_object_end(&j);
	text_puts(&t, "\n");
	if (t.overflowed)
		return -ENAMETOOLONG;
	ssize_t n = write(fd, data, t.length);

	return n == (ssize_t)t.length ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* ---- files ---- */

/* Reads all lines. An incomplete last one, which a kill or a full disk leaves, is cut off. Returns
 * 0 or -errno. */
static int read_lines(struct import_map *m, int fd, bool is_stored)
{
	char *line = NULL;
	size_t size = 0;
	off_t end = 0;
	ssize_t n;
	int err = 0, own = dup(fd);
	FILE *f = own < 0 ? NULL : fdopen(own, "r");

	if (!f) {
		err = -errno;
		if (own >= 0)
			close(own);
		return err;
	}
	while (!err && (n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n') {
		err = add(m, line, (size_t)n, is_stored);
		end += n;
	}
	if (!err && ferror(f))
		err = -EIO;
	free(line);
	fclose(f);
	return err ? err : ftruncate(fd, end) ? -errno : 0;
}

static int open_lines(struct import_map *m, const char *path, int *fd, bool is_stored)
{
	*fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	int err = *fd < 0 ? -errno : read_lines(m, *fd, is_stored);

	if (err == -EINVAL)
		return store_query_usage("%s: expected lines {\"path\":...,\"id\":...}, as store "
		                         "import writes them",
		                         path);
	return err ? store_query_fail(path, err) : 0;
}

static int compare(const void *a, const void *b)
{
	const struct import_known *x = a, *y = b;
	int order = strcmp(x->sum, y->sum);

	return order ? order : (int)y->is_stored - (int)x->is_stored;
}

int import_map_open(struct import_map *m, const char *path)
{
	*m = (struct import_map){ .path = path, .fd = -1, .begun_fd = -1 };
	if (asprintf(&m->begun_path, "%s.begun", path) < 0) {
		m->begun_path = NULL;
		return store_query_fail(path, -ENOMEM);
	}
	int status = open_lines(m, path, &m->fd, true);

	if (!status)
		status = open_lines(m, m->begun_path, &m->begun_fd, false);
	if (m->count > 1)
		qsort(m->known, m->count, sizeof *m->known, compare);
	return status;
}

int import_map_close(struct import_map *m, bool is_over)
{
	int err = m->fd >= 0 && fsync(m->fd) ? -errno : 0;

	if (is_over && !err && unlink(m->begun_path))
		err = -errno;
	if (m->fd >= 0)
		close(m->fd);
	if (m->begun_fd >= 0)
		close(m->begun_fd);
	free(m->begun_path);
	free(m->known);
	return err;
}

/* ---- paths ---- */

const struct import_known *import_map_find(const struct import_map *m, const char *path)
{
	char data[IMPORT_LINE_MAX], sum[CHECKSUM_LENGTH + 1];
	size_t low = 0, high = m->count;
	struct text t;
	struct json j;

	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_string(&j, NULL, path);
	checksum_of(data, t.length, sum);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(m->known[middle].sum, sum) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->count && strcmp(m->known[low].sum, sum) == 0 ? &m->known[low] : NULL;
}

int import_map_begin(struct import_map *m, const char *path, const char *id)
{
	return write_line(m->begun_fd, path, id);
}

int import_map_stored(struct import_map *m, const char *path, const char *id)
{
	return write_line(m->fd, path, id);
}

int import_map_flush(struct import_map *m)
{
	return fdatasync(m->begun_fd) ? -errno : 0;
}
