/* remake_queue.c - one small file for each image. Any thread. */
#include "remake_queue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "store.h"
#include "store_path.h"

#define DIRECTORY ".remake"
#define HEAD 3 /* bytes before the names */
#define CONTENT_MAX (REMAKE_QUEUE_NAMES_MAX + 8)

static void path_of(char path[STORE_PATH_MAX], const char *id, bool is_new)
{
	snprintf(path, STORE_PATH_MAX, DIRECTORY "/%s%s", is_new ? "+" : "", id);
}

int remake_queue_make(struct store *s)
{
	int fd = directory_open(s->root_fd, DIRECTORY, PRIVATE_DIRECTORY);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* An entry of root's belongs to the daemon's user, as its directory does. */
static int give_to_owner(struct store *s, int fd)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	return fstatat(s->root_fd, DIRECTORY, &st, 0) ||
	                       (st.st_uid != 0 && fchown(fd, st.st_uid, st.st_gid))
	               ? -errno
	               : 0;
}

int remake_queue_put(struct store *s, const char *id, const struct remake_entry *entry)
{
	char path[STORE_PATH_MAX], path_new[STORE_PATH_MAX], content[CONTENT_MAX];
	int length = snprintf(content, sizeof content, "%c%c\n%s",
	                      (char)('0' + (entry->attempts < 9 ? entry->attempts : 9)),
	                      entry->only_missing ? 'm' : 'a', entry->names);

	path_of(path, id, false);
	path_of(path_new, id, true);
	int fd = openat(s->root_fd, path_new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
	                PRIVATE_FILE);

	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, content, (size_t)length);
	int err = n == length ? give_to_owner(s, fd) : n < 0 ? -errno : -ENOSPC;

	close(fd);
	if (!err && renameat(s->root_fd, path_new, s->root_fd, path))
		err = -errno;
	if (err)
		(void)unlinkat(s->root_fd, path_new, 0);
	return err;
}

int remake_queue_get(struct store *s, const char *id, struct remake_entry *entry)
{
	char path[STORE_PATH_MAX], content[CONTENT_MAX];

	path_of(path, id, false);
	int fd = openat(s->root_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, content, sizeof content - 1);
	int err = -errno;

	close(fd);
	if (n < 0)
		return err;
	content[n] = '\0';
	if (n < HEAD || n - HEAD >= (ssize_t)sizeof entry->names || content[0] < '0' ||
	    content[0] > '9' || content[2] != '\n')
		return -EINVAL;
	entry->attempts = (unsigned)(content[0] - '0');
	entry->only_missing = content[1] == 'm';
	memcpy(entry->names, content + HEAD, (size_t)(n - HEAD) + 1);
	return 0;
}

int remake_queue_drop(struct store *s, const char *id)
{
	char path[STORE_PATH_MAX];

	path_of(path, id, false);
	return unlinkat(s->root_fd, path, 0) ? -errno : 0;
}

bool remake_queue_has(struct store *s, const char *id)
{
	char path[STORE_PATH_MAX];

	path_of(path, id, false);
	return faccessat(s->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int remake_queue_list(struct store *s, char (*id)[ULID_LENGTH + 1], unsigned max, uint64_t *all)
{
	int fd = openat(s->root_fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	unsigned n = 0;

	if (!dir) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return err;
	}
	*all = 0;
	while ((entry = readdir(dir))) {
		if (!ulid_is_valid(entry->d_name, strlen(entry->d_name)))
			continue;
		if (n < max)
			memcpy(id[n++], entry->d_name, sizeof *id);
		++*all;
	}
	closedir(dir);
	return (int)n;
}

bool remake_entry_wants(const struct remake_entry *entry, const char *variant)
{
	size_t length = strlen(variant);

	for (const char *p = entry->names; *p;) {
		size_t n = strcspn(p, " ");

		if (n == length && memcmp(p, variant, n) == 0)
			return true;
		p += n;
		p += strspn(p, " ");
	}
	return !entry->names[0];
}
