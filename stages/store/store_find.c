/* store_find.c - looks for files of images, with and without waiting for the disk. Any thread. */
#include "store_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/cached.h"
#include "checksum.h"
#include "directory.h"
#include "store.h"
#include "store_path.h"

/* Opens a file of the image, or its directory, in the layout that has it. */
static int open_image(const struct store *s, const char *id, const char *name, bool may_wait)
{
	char path[STORE_PATH_MAX];
	int fd = -ENOENT;

	for (unsigned layout = 0; layout < STORE_LAYOUT_COUNT && fd == -ENOENT; layout++) {
		store_image_path(path, (enum store_layout)layout, id, name);
		fd = !may_wait ? cached_open(s->root_fd, path)
		     : name    ? directory_open_file(s->root_fd, path, O_RDONLY)
		               : directory_open(s->root_fd, path, 0);
		if (fd == -ENOTDIR) /* a link is no part of the store */
			fd = -ENOENT;
	}
	return fd;
}

/* As store_open_file(). Returns -EAGAIN if it may not wait and would have to. */
static int open_file(struct store *s, const char *id, const char *name, struct stat *st,
                     bool may_wait)
{
	unsigned openings = atomic_load(&s->openings);
	int fd = open_image(s, id, name, may_wait);

	if (fd == -ENOENT && store_check_missing(s, openings))
		fd = open_image(s, id, name, may_wait);
	if (fd < 0)
		return fd;
	int err = fstat(fd, st) ? -errno : S_ISREG(st->st_mode) ? 0 : -EINVAL;

	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int store_open_file(struct store *s, const char *id, const char *name, uint64_t *size)
{
	struct stat st;
	int fd = open_file(s, id, name, &st, true);

	if (fd >= 0)
		*size = (uint64_t)st.st_size;
	return fd;
}

bool store_has_file(struct store *s, const char *id, const char *name)
{
	uint64_t size;
	int fd = store_open_file(s, id, name, &size);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int store_open_directory(struct store *s, const char *id)
{
	return open_image(s, id, NULL, true);
}

bool store_has_moved(struct store *s, const char *id, int directory_fd, bool *is_there)
{
	struct stat then, now;
	int fd = store_open_directory(s, id);
	bool is_same = fd >= 0 && !fstat(directory_fd, &then) && !fstat(fd, &now) &&
	               then.st_ino == now.st_ino && then.st_dev == now.st_dev;

	*is_there = fd >= 0;
	if (fd >= 0)
		close(fd);
	return !is_same;
}

int store_tag_write(char tag[STORE_TAG_MAX], const char *sum, uint64_t expires)
{
	return snprintf(tag, STORE_TAG_MAX, expires ? "%.*s.%010llu" : "%.*s", CHECKSUM_LENGTH, sum,
	                (unsigned long long)expires);
}

uint64_t store_tag(int fd, char tag[STORE_TAG_MAX])
{
	struct stat st = { .st_size = 0 };
	ssize_t n = fgetxattr(fd, STORE_TAG_ATTRIBUTE, tag, STORE_TAG_MAX - 1);

	tag[n > 0 ? n : 0] = '\0';
	size_t sum = strspn(tag, "0123456789abcdef"), length = strlen(tag);

	if (sum == CHECKSUM_LENGTH &&
	    (length == sum || (length == STORE_EXPIRING_TAG_LENGTH && tag[sum] == '.'))) {
		uint64_t expires = length > sum ? strtoull(tag + sum + 1, NULL, 10) : 0;

		tag[sum] = '\0';
		return expires;
	}
	(void)fstat(fd, &st); /* it succeeded when the file was opened */
	snprintf(tag, STORE_TAG_MAX, "%llx-%llx.%lx", (unsigned long long)st.st_size,
	         (unsigned long long)st.st_mtim.tv_sec, (unsigned long)st.st_mtim.tv_nsec);
	return 0;
}

bool store_is_spooled(struct store *s, const char *id)
{
	/* An error other than ENOENT counts as spooled: an acknowledged image must not get a
	 * 404. */
	return faccessat(s->spool_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static uint64_t identity_of(const struct stat *st)
{
	const uint64_t key[] = { st->st_dev, st->st_ino, (uint64_t)st->st_size,
		                 (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec };

	return XXH3_64bits(key, sizeof key);
}

/* Opens the file, and fills in what it says. */
static void find_file(struct store *s, const char *id, const char *name, struct store_found *found,
                      bool may_wait)
{
	struct stat st;

	found->fd = open_file(s, id, name, &st, may_wait);
	if (found->fd == -EINVAL || found->fd == -ELOOP) /* a link, or what is no file */
		found->fd = -ENOENT;
	if (found->fd < 0)
		return;
	found->size = (uint64_t)st.st_size;
	found->modified = st.st_mtim.tv_sec;
	found->expires = store_tag(found->fd, found->tag);
	found->identity = identity_of(&st);
}

/* Returns whether the original is spooled, or -EAGAIN. */
static int look_into_spool(struct store *s, const char *id, bool may_wait)
{
	if (may_wait)
		return store_is_spooled(s, id);
	int fd = cached_open(s->spool_fd, id);

	if (fd >= 0)
		close(fd);
	return fd == -EAGAIN ? fd : fd != -ENOENT;
}

/* Returns false if it may not wait and would have to. */
static bool find(struct store *s, const char *id, const char *name, struct store_found *found,
                 bool may_wait)
{
	find_file(s, id, name, found, may_wait);
	int is_spooled = found->fd == -ENOENT ? look_into_spool(s, id, may_wait) : 0;

	found->is_spooled = is_spooled > 0;
	if (found->fd == -ENOENT && !is_spooled)
		find_file(s, id, name, found, may_wait);
	return found->fd != -EAGAIN && is_spooled >= 0;
}

void store_find(struct store *s, const char *id, const char *name, struct store_found *found)
{
	find(s, id, name, found, true);
}

bool store_find_cached(struct store *s, const char *id, const char *name, struct store_found *found)
{
	return find(s, id, name, found, false);
}
