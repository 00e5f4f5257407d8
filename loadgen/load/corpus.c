/* corpus.c - reads the pictures and makes their requests. Main thread. */
#include "corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

#define HEAD_MAX 16384 /* bytes of a request's head, including the user's fields */

static int complain(const char *name, int err)
{
	fprintf(stderr, "darkroom-load: %s: %s\n", name, strerror(err));
	return -1;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcasecmp(name + n - m, end) == 0;
}

static bool is_broken_by_name(const char *name)
{
	return ends_in(name, ".truncated.jpg") || ends_in(name, ".notjpeg.jpg") ||
	       ends_in(name, ".empty.jpg");
}

/* ---- reading files ---- */

/* Reads `size` bytes, or fewer if the file ends before. Returns the number or -errno. */
static ssize_t read_fully(int fd, char *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = read(fd, data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Reads the picture into part 1. Returns 0 or -errno. */
static int read_picture(struct corpus_file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	ssize_t n;
	char *data;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	if (err)
		goto out;
	data = malloc((size_t)st.st_size + 1);
	if (!data) {
		err = -ENOMEM;
		goto out;
	}
	n = read_fully(fd, data, (size_t)st.st_size);
	file->parts[1] = (struct iovec){ .iov_base = data, .iov_len = n > 0 ? (size_t)n : 0 };
	file->part_count = 2;
	file->size = file->parts[1].iov_len;
	err = n < 0 ? (int)n : 0;
out:
	close(fd);
	return err;
}

/* Adds a file without its picture. Returns it, or NULL after reporting what is wrong. */
static struct corpus_file *add_name(struct corpus *c, const char *path)
{
	struct corpus_file *file;

	if (c->count == c->room) {
		size_t room = c->room ? c->room * 2 : 64;
		struct corpus_file *list = reallocarray(c->list, room, sizeof *list);

		if (!list)
			goto no_memory;
		c->list = list;
		c->room = room;
	}
	file = &c->list[c->count++];
	*file = (struct corpus_file){ .name = strdup(path), .is_broken = is_broken_by_name(path) };
	if (file->name)
		return file;
no_memory:
	complain(path, ENOMEM);
	return NULL;
}

static int add_file(struct corpus *c, const char *path)
{
	struct corpus_file *file;
	int err;

	if (c->count == UINT32_MAX)
		return complain(path, EMFILE);
	file = add_name(c, path);
	if (!file)
		return -1;
	err = read_picture(file, path);
	c->total_bytes += file->size;
	return err ? complain(path, -err) : 0;
}

static int compare_entries(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_path(struct corpus *c, char *path)
{
	char *const paths[] = { path, NULL };
	FTS *tree = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, compare_entries);
	FTSENT *entry;
	int err = tree ? 0 : complain(path, errno);

	while (!err && (entry = fts_read(tree)) != NULL) {
		bool is_picture =
			ends_in(entry->fts_name, ".jpg") || ends_in(entry->fts_name, ".jpeg");

		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
		    entry->fts_info == FTS_NS)
			err = complain(entry->fts_path, entry->fts_errno);
		else if (entry->fts_info == FTS_F &&
		         (is_picture || entry->fts_level == FTS_ROOTLEVEL))
			err = add_file(c, entry->fts_path);
	}
	if (tree)
		fts_close(tree);
	return err;
}

/* ---- requests ---- */

/* The boundary must not occur in the picture (RFC 2046 5.1.1), so it is drawn again until it does
 * not. */
static void choose_boundary(char *boundary, size_t size, const struct corpus_file *file,
                            struct random *random)
{
	do
		snprintf(boundary, size, "darkroom-%016" PRIx64, random_next(random));
	while (memmem(file->parts[1].iov_base, file->parts[1].iov_len, boundary, strlen(boundary)));
}

/* Writes the file's name as a browser writes it into a form: quotes and line ends as %XX. */
static void put_file_name(struct text *t, const char *name)
{
	const char *slash = strrchr(name, '/');

	for (name = slash ? slash + 1 : name; *name; name++) {
		if (*name == '"' || *name == '\r' || *name == '\n')
			text_printf(t, "%%%02X", (unsigned)*name);
		else
			text_put(t, name, 1);
	}
}

static int keep_part(struct corpus_file *file, unsigned part, struct text *t)
{
	char *data = t->overflowed ? NULL : malloc(t->length + 1);

	if (!data)
		return complain(file->name, ENOMEM);
	memcpy(data, t->data, t->length);
	file->parts[part] = (struct iovec){ .iov_base = data, .iov_len = t->length };
	if (part >= file->part_count)
		file->part_count = part + 1;
	return 0;
}

static void put_fields(struct text *t, const struct corpus_conf *conf, const char *method)
{
	text_printf(t, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: darkroom-load\r\n", method,
	            conf->path, conf->authority);
	for (size_t i = 0; i < conf->header_count; i++)
		text_printf(t, "%s\r\n", conf->headers[i]);
}

static void put_head(struct text *t, const struct corpus_conf *conf, const char *type,
                     uint64_t length)
{
	put_fields(t, conf, "POST");
	text_printf(t, "Content-Type: %s\r\nContent-Length: %" PRIu64 "\r\n\r\n", type, length);
}

/* Adds the request for the URL, without a picture. */
static int add_get(struct corpus *c, const struct corpus_conf *conf)
{
	char memory[HEAD_MAX];
	struct text head;
	struct corpus_file *file = add_name(c, conf->path);

	if (!file)
		return -1;
	file->is_broken = false;
	text_init(&head, memory, sizeof memory);
	put_fields(&head, conf, "GET");
	text_puts(&head, "\r\n");
	return keep_part(file, 0, &head);
}

static int make_raw_request(struct corpus_file *file, const struct corpus_conf *conf)
{
	char memory[HEAD_MAX];
	struct text head;

	text_init(&head, memory, sizeof memory);
	put_head(&head, conf, "image/jpeg", file->size);
	return keep_part(file, 0, &head);
}

static int make_form_request(struct corpus_file *file, const struct corpus_conf *conf,
                             struct random *random)
{
	char memory[HEAD_MAX], part_memory[HEAD_MAX / 4], end_memory[64], boundary[32], type[80];
	struct text head, part, end;

	choose_boundary(boundary, sizeof boundary, file, random);
	snprintf(type, sizeof type, "multipart/form-data; boundary=%s", boundary);
	text_init(&part, part_memory, sizeof part_memory);
	text_printf(&part, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"",
	            boundary);
	put_file_name(&part, file->name);
	text_puts(&part, "\"\r\nContent-Type: image/jpeg\r\n\r\n");
	text_init(&end, end_memory, sizeof end_memory);
	text_printf(&end, "\r\n--%s--\r\n", boundary);
	text_init(&head, memory, sizeof memory);
	put_head(&head, conf, type, part.length + file->size + end.length);
	text_put(&head, part.data, part.length);
	head.overflowed |= part.overflowed;
	return keep_part(file, 0, &head) < 0 ? -1 : keep_part(file, 2, &end);
}

/* Shuffles by Fisher and Yates; the bias of the remainder is below 2^-32. */
static int shuffle(struct corpus *c, struct random *random)
{
	c->order = reallocarray(NULL, c->count, sizeof *c->order);
	if (!c->order)
		return complain("request order", ENOMEM);
	for (size_t i = 0; i < c->count; i++) {
		size_t k = (size_t)(random_next(random) % (i + 1));

		c->order[i] = c->order[k];
		c->order[k] = (uint32_t)i;
	}
	return 0;
}

int corpus_read(struct corpus *c, char *const *paths, size_t path_count,
                const struct corpus_conf *conf)
{
	struct random random = { .state = conf->seed };

	*c = (struct corpus){ 0 };
	if (conf->is_get)
		return add_get(c, conf) < 0 ? -1 : shuffle(c, &random);
	for (size_t i = 0; i < path_count; i++)
		if (add_path(c, paths[i]) < 0)
			return -1;
	if (c->count == 0) {
		fputs("darkroom-load: expected at least one .jpg file to upload\n", stderr);
		return -1;
	}
	if (shuffle(c, &random) < 0)
		return -1;
	for (size_t i = 0; i < c->count; i++) {
		struct corpus_file *file = &c->list[i];

		if ((conf->is_form ? make_form_request(file, conf, &random)
		                   : make_raw_request(file, conf)) < 0)
			return -1;
	}
	return 0;
}

void corpus_fini(struct corpus *c)
{
	for (size_t i = 0; i < c->count; i++) {
		for (unsigned k = 0; k < REQUEST_PARTS_MAX; k++)
			free(c->list[i].parts[k].iov_base);
		free(c->list[i].name);
	}
	free(c->list);
	free(c->order);
	*c = (struct corpus){ 0 };
}

unsigned corpus_add_field(const struct corpus_file *file, char *line, size_t length,
                          struct iovec parts[REQUEST_PARTS_MAX])
{
	char *head = file->parts[0].iov_base;
	const char *second = memchr(head, '\n', file->parts[0].iov_len);

	assert(second && file->part_count + 2 <= REQUEST_PARTS_MAX);
	size_t first = (size_t)(second - head) + 1; /* the line of the request */

	parts[0] = (struct iovec){ .iov_base = head, .iov_len = first };
	parts[1] = (struct iovec){ .iov_base = line, .iov_len = length };
	parts[2] = (struct iovec){ .iov_base = head + first,
		                   .iov_len = file->parts[0].iov_len - first };
	for (unsigned i = 1; i < file->part_count; i++)
		parts[i + 2] = file->parts[i];
	return file->part_count + 2;
}
