/* directory.c - opens, clears and removes directories that hold only files. Any thread; calls
 * block. */
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "ulid.h"

#define FILE_PATH_MAX 128

/* ---- paths ---- */

/* Closes what enter() has opened. Returns the result of the call in it, or -errno. */
static int leave(int at, int in, int result)
{
	int err = result < 0 ? -errno : result;

	if (in >= 0 && in != at)
		close(in);
	return err;
}

/* Opens the directory that has the last part of the path, which is written to *name. Returns `at`
 * if the path is a name, a descriptor for leave(), or -1 with errno set. */
static int enter(int at, const char *path, const char **name)
{
	char part[FILE_PATH_MAX];
	const char *slash;
	int in = at;

	errno = EBADF; /* `at` may not be open */
	for (; in >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		int n = snprintf(part, sizeof part, "%.*s", (int)(slash - path), path), next = -1;

		errno = EXDEV;
		if (n > 0 && n < (int)sizeof part && strcmp(part, "..") != 0)
			next = openat(in, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		errno = -leave(at, in, next < 0 ? -1 : 0);
		in = next;
	}
	*name = path;
	return in;
}

/* As openat(2). Returns a descriptor or -errno. */
static int open_path(int at, const char *path, int flags)
{
	const char *name;
	int in = enter(at, path, &name);

	flags |= O_NOFOLLOW | O_CLOEXEC;
	return leave(at, in, in < 0 ? in : openat(in, name, flags, 0600));
}

int directory_open_file(int at, const char *path, int flags)
{
	struct stat st;
	int fd = open_path(at, path, flags | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return fd == -ELOOP || fd == -ENXIO ? -EINVAL : fd;
	int err = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;

	if (err)
		close(fd);
	return err ? err : fd;
}

/* Makes a directory, unless it is there. Returns 0 or -errno. */
static int make(int at, const char *path, mode_t mode)
{
	const char *name;
	int in = enter(at, path, &name);
	int err = leave(at, in, in < 0 ? in : mkdirat(in, name, mode));

	return err == -EEXIST ? 0 : err;
}

int directory_open(int at, const char *path, mode_t mode)
{
	int err = mode ? make(at, path, mode) : 0;

	return err ? err : open_path(at, path, O_RDONLY | O_DIRECTORY);
}

int directory_make_all(int at, const char *path, mode_t mode)
{
	char part[FILE_PATH_MAX];
	int err = 0;

	for (size_t n = 0; !err && path[n];) {
		n += n > 0;
		n += strcspn(path + n, "/");
		snprintf(part, sizeof part, "%.*s", (int)n, path);
		err = make(at, part, mode);
	}
	return err;
}

int directory_stat(int at, const char *path, struct stat *st)
{
	const char *name;
	int in = enter(at, path, &name);

	return leave(at, in, in < 0 ? in : fstatat(in, name, st, AT_SYMLINK_NOFOLLOW));
}

int directory_check_same(int at, const char *path, int fd)
{
	struct stat opened, now;
	int err = directory_stat(at, path, &now);

	if (err || fstat(fd, &opened))
		return err ? err : -errno;
	return now.st_ino == opened.st_ino && now.st_dev == opened.st_dev ? 0 : -ESTALE;
}

int directory_unlink(int at, const char *path, int flags)
{
	const char *name;
	int in = enter(at, path, &name);

	return leave(at, in, in < 0 ? in : unlinkat(in, name, flags));
}

int directory_rename(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	int from_in = enter(from_at, from, &from);
	int to_in = from_in < 0 ? -1 : enter(to_at, to, &to), result = -1;

	if (to_in >= 0)
		result = flags ? renameat2(from_in, from, to_in, to, flags)
		               : renameat(from_in, from, to_in, to);
	result = leave(from_at, from_in, result);
	errno = -result;
	return leave(to_at, to_in, result);
}

/* ---- entries ---- */

DIR *directory_list(int at, const char *path)
{
	int fd = open_path(at, path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		errno = fd < 0 ? -fd : -leave(-1, fd, -1);
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

bool directory_has_id(const char *name)
{
	size_t n = strcspn(name, ".");

	return ulid_is_valid(name, n);
}

int directory_clear(int at, unsigned *cleared)
{
	DIR *dir = directory_list(at, ".");
	const char *name;
	int result = 0;

	if (!dir)
		return -errno;
	while ((name = directory_next(dir))) {
		if (!directory_has_id(name))
			continue;
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

int directory_write_file(int at, const char *path, const void *data, size_t size, bool is_flushed)
{
	char new_path[FILE_PATH_MAX];

	snprintf(new_path, sizeof new_path, "%s.new", path);
	int fd = directory_open_file(at, new_path, O_WRONLY | O_CREAT | O_EXCL);

	if (fd == -EEXIST && !directory_unlink(at, new_path, 0)) /* of a crash, or another's link */
		fd = directory_open_file(at, new_path, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	int err = directory_write_all(fd, data, size);

	if (!err && is_flushed && fsync(fd))
		err = -errno;
	if (close(fd) && errno != EINTR && !err)
		err = -errno;
	if (!err)
		err = directory_rename(at, new_path, at, path, 0);
	if (err)
		(void)directory_unlink(at, new_path, 0);
	return err;
}

int directory_read_file(int at, const char *path, char *data, size_t size)
{
	int fd = directory_open_file(at, path, O_RDONLY);
	ssize_t length = fd < 0 ? fd : directory_read_at(fd, data, size - 1, 0);

	if (fd >= 0)
		close(fd);
	data[length > 0 ? length : 0] = '\0';
	return (int)length;
}
