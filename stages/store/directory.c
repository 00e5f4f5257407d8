/* directory.c - opens, clears and removes directories that hold only files. Any thread; calls
 * block. */
#include "directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"
#include "ulid.h"

#define FILE_PATH_MAX 128

DIR *directory_list(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return dir;
}

const char *directory_next(DIR *dir)
{
	const struct dirent *entry;

	do
		entry = readdir(dir);
	while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry ? entry->d_name : NULL;
}

const char *directory_next_id(DIR *dir)
{
	const char *name;

	do
		name = directory_next(dir);
	while (name && !ulid_is_valid(name, strlen(name)));
	return name;
}

int directory_list_names(int at, const char *name, size_t length, const char *last,
                         struct directory_names *names)
{
	DIR *dir = directory_list(at, name);
	const char *entry;

	names->count = 0;
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (names->count < DIRECTORY_NAMES_MAX && (entry = directory_next(dir)))
		if (strlen(entry) == length && entry[0] != '.' &&
		    (!last || strcmp(entry, last) <= 0))
			memcpy(names->name[names->count++], entry, length + 1);
	closedir(dir);
	qsort(names->name, names->count, sizeof names->name[0], ulid_compare);
	return 0;
}

int directory_make(int at, const char *name, mode_t mode)
{
	return mkdirat(at, name, mode) && errno != EEXIST ? -errno : 0;
}

int directory_remove(int at, const char *name)
{
	DIR *dir = directory_list(at, name);
	const char *file;

	if (!dir && errno == ENOMEM)
		return -ENOMEM;
	if (!dir)
		return unlinkat(at, name, 0) ? -errno : 0;
	while ((file = directory_next(dir)))
		unlinkat(dirfd(dir), file, 0);
	closedir(dir);
	return unlinkat(at, name, AT_REMOVEDIR) ? -errno : 0;
}

int directory_clear(int at, unsigned *cleared)
{
	DIR *dir = directory_list(at, ".");
	const char *name;
	int result = 0;

	if (!dir)
		return -errno;
	while ((name = directory_next(dir))) {
		int err = directory_remove(at, name);

		if (err && err != -ENOENT) {
			log_warning("store: cannot remove the leftover %s: %s", name,
			            strerror(-err));
			result = -EAGAIN;
		} else {
			(*cleared)++;
		}
	}
	closedir(dir);
	return result;
}

int directory_open(int at, const char *name, mode_t mode)
{
	int err = directory_make(at, name, mode);

	if (err)
		return err;
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* ---- small files ---- */

int directory_write_all(int fd, const void *from, size_t left)
{
	const char *data = from;

	while (left) {
		ssize_t n = write(fd, data, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		left -= (size_t)n;
	}
	return 0;
}

ssize_t directory_read_at(int fd, void *data, size_t size, uint64_t at)
{
	size_t length = 0;
	ssize_t n = 1;

	while (n != 0 && length < size) {
		n = pread(fd, (char *)data + length, size - length, (off_t)(at + length));
		if (n < 0 && errno != EINTR)
			return -errno;
		length += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)length;
}

/* The daemon's user owns the file's directory, and must be able to read what a command of root
 * writes. EPERM: this is a daemon of root in its sandbox, which can read its own files. */
static int give_to_owner(int fd, int at, const char *path)
{
	char parent[FILE_PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (geteuid() != 0)
		return 0;
	if (slash)
		snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
	if (fstatat(at, parent, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return st.st_uid != 0 && fchown(fd, st.st_uid, st.st_gid) && errno != EPERM ? -errno : 0;
}

int directory_write_file(int at, const char *path, const void *data, size_t size, bool is_flushed)
{
	char new_path[FILE_PATH_MAX];

	snprintf(new_path, sizeof new_path, "%s.new", path);
	int fd = openat(at, new_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	int err = directory_write_all(fd, data, size);

	if (!err)
		err = give_to_owner(fd, at, path);
	if (!err && is_flushed && fsync(fd))
		err = -errno;
	if (close(fd) && errno != EINTR && !err)
		err = -errno;
	if (!err && renameat(at, new_path, at, path))
		err = -errno;
	if (err)
		(void)unlinkat(at, new_path, 0);
	return err;
}

int directory_read_file(int at, const char *path, char *data, size_t size)
{
	int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t length = fd < 0 ? -errno : directory_read_at(fd, data, size - 1, 0);

	if (fd >= 0)
		close(fd);
	data[length > 0 ? length : 0] = '\0';
	return (int)length;
}
