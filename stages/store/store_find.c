/* store_find.c - looks for files of images, with and without waiting for the disk. Any thread. */
#include "store_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_cached.h"
#include "store.h"
#include "store_check.h"

#define PATH_SIZE 96

static int open_path(const struct store *s, const char *path, bool may_wait)
{
	if (!may_wait)
		return open_cached(s->root_fd, path);
	int fd = openat(s->root_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* As store_open_file(). Returns -EAGAIN if it may not wait and would have to. */
static int open_file(struct store *s, const char *id, const char *name, uint64_t *size,
                     bool may_wait)
{
	char path[PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s/%s", id + ULID_LENGTH - STORE_SHARD_LENGTH, id, name);
	unsigned openings = atomic_load(&s->openings);
	int fd = open_path(s, path, may_wait);

	if (fd == -ENOENT && store_check_missing(s, openings))
		fd = open_path(s, path, may_wait);
	if (fd < 0)
		return fd;
	int err = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -ENOENT;

	if (err) {
		close(fd);
		return err;
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

int store_open_file(struct store *s, const char *id, const char *name, uint64_t *size)
{
	return open_file(s, id, name, size, true);
}

bool store_is_spooled(struct store *s, const char *id)
{
	/* An error other than ENOENT counts as spooled: an acknowledged image must not get a
	 * 404. */
	return faccessat(s->spool_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void store_find(struct store *s, const char *id, const char *name, struct store_found *found)
{
	found->is_spooled = false;
	found->fd = open_file(s, id, name, &found->size, true);
	if (found->fd != -ENOENT)
		return;
	found->is_spooled = store_is_spooled(s, id);
	if (!found->is_spooled)
		found->fd = open_file(s, id, name, &found->size, true);
}

bool store_find_cached(struct store *s, const char *id, const char *name, struct store_found *found)
{
	found->is_spooled = false;
	found->fd = open_file(s, id, name, &found->size, false);
	if (found->fd != -ENOENT)
		return found->fd != -EAGAIN;
	int fd = open_cached(s->spool_fd, id);

	if (fd == -EAGAIN)
		return false;
	found->is_spooled = fd != -ENOENT;
	if (fd >= 0)
		close(fd);
	if (!found->is_spooled)
		found->fd = open_file(s, id, name, &found->size, false);
	return found->fd != -EAGAIN;
}
