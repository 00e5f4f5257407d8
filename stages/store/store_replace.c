/* store_replace.c - links and one exchange. Any thread. */
#include "store_replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store_path.h"
#include "store_trash.h"

static bool is_among(const struct store_item *item, const char *name)
{
	for (unsigned i = 0; i < item->file_count; i++)
		if (strcmp(item->file[i].name, name) == 0)
			return true;
	return false;
}

int store_link_others(int directory_fd, const struct store_item *item)
{
	int fd = openat(item->old_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    !is_among(item, entry->d_name) &&
		    linkat(item->old_fd, entry->d_name, directory_fd, entry->d_name, 0))
			err = errno == ENOENT ? -ESTALE : -errno; /* its files are being removed */
	closedir(dir);
	return err;
}

/* Returns 0, -ESTALE or -errno. The number of old_fd's inode is not used again while it is open. */
static int check_place(const struct store *s, const char *path, int old_fd)
{
	struct stat old, now;

	if (fstatat(s->root_fd, path, &now, AT_SYMLINK_NOFOLLOW) || fstat(old_fd, &old))
		return -errno;
	return now.st_ino == old.st_ino && now.st_dev == old.st_dev ? 0 : -ESTALE;
}

int store_exchange(struct store *s, const char *id, int old_fd)
{
	int err = -ENOENT;
	char path[STORE_PATH_MAX];

	for (unsigned layout = 0; layout < STORE_LAYOUT_COUNT && err == -ENOENT; layout++) {
		store_image_path(path, (enum store_layout)layout, id, NULL);
		err = old_fd < 0 ? 0 : check_place(s, path, old_fd);
		if (!err && renameat2(s->incoming_fd, id, s->root_fd, path, RENAME_EXCHANGE))
			err = -errno;
	}
	return err;
}

void store_withdraw_exchange(struct store *s, const char *id)
{
	char name[STORE_PATH_MAX];

	(void)store_exchange(s, id, -1);
	store_trash_name(s, id, name);
	if (renameat(s->incoming_fd, id, s->trash_fd, name) && errno != ENOENT)
		(void)leftovers_add(&s->leftovers, id);
	atomic_store(&s->tidy_ns, clock_ns() + STORE_TIDY_NS);
}
