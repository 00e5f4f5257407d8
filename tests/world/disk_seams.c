/*
 * disk_seams.c - the calls of libc about files, for one process with a disk of disk.h. Descriptors
 * of other things are passed on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "descriptors.h"
#include "disk.h"
#include "seam.h"

#define LINE_MAX_SIZE 1024
#define NAMES_MAX 512

#define CALLED_DISK(name) (CALLED(name), take_time())

static void take_time(void)
{
	if (disk.wait && !disk.is_quiet)
		disk.wait();
}

static int result_of(int result)
{
	errno = result < 0 ? -result : errno;
	return result < 0 ? -1 : result;
}

static ssize_t size_of(int64_t result)
{
	errno = result < 0 ? (int)-result : errno;
	return result < 0 ? -1 : (ssize_t)result;
}

/* ---- descriptors ---- */

SEAM(int, openat, int at, const char *name, int flags, ...)
{
	va_list args;

	CALLED_DISK(openat);
	va_start(args, flags);
	unsigned mode = va_arg(args, unsigned);

	va_end(args);
	return result_of(disk_open(at, name, flags, mode));
}

SEAM(int, flock, int fd, int operation)
{
	CALLED_DISK(flock);
	(void)operation;
	return disk_file(fd) ? 0 : result_of(-EBADF);
}

/* ---- contents ---- */

static int close_file(int fd)
{
	return result_of(disk_close(fd));
}

static ssize_t write_file(int fd, const void *data, size_t size)
{
	struct disk_file *f = disk_file(fd);
	ssize_t n = f ? size_of(disk_write(f, data, size, f->at)) : size_of(-EBADF);

	if (n > 0)
		f->at += (size_t)n;
	return n;
}

DESCRIPTORS(files, .first = DESCRIPTORS_OF_DISK, .close = close_file, .write = write_file)

SEAM(ssize_t, pwrite, int fd, const void *data, size_t size, off_t at)
{
	struct disk_file *f = disk_file(fd);

	CALLED_DISK(pwrite);
	return f ? size_of(disk_write(f, data, size, (size_t)at)) : result_of(-EBADF);
}

SEAM(ssize_t, pread, int fd, void *data, size_t size, off_t at)
{
	struct disk_file *f = disk_file(fd);

	CALLED_DISK(pread);
	return f ? size_of(disk_read(f, data, size, (size_t)at)) : __real_pread(fd, data, size, at);
}

int __wrap___dprintf_chk(int, int, const char *, ...) __attribute__((format(printf, 3, 4)));

__attribute__((format(printf, 2, 0))) static int print_to(int fd, const char *format, va_list args)
{
	char line[LINE_MAX_SIZE];
	int n = vsnprintf(line, sizeof line, format, args);

	return (int)write(fd, line, (size_t)n < sizeof line ? (size_t)n : sizeof line);
}

SEAM(int, __dprintf_chk, int fd, int flag, const char *format, ...)
{
	va_list args;

	CALLED_DISK(__dprintf_chk);
	(void)flag;
	va_start(args, format);
	int n = print_to(fd, format, args);

	va_end(args);
	return n;
}

static ssize_t read_stream(void *cookie, char *data, size_t size)
{
	struct disk_file *f = cookie;
	ssize_t n = size_of(disk_read(f, data, size, f->at));

	f->at += n > 0 ? (size_t)n : 0;
	return n;
}

static int close_stream(void *cookie)
{
	((struct disk_file *)cookie)->inode = NULL;
	return 0;
}

SEAM(FILE *, fdopen, int fd, const char *mode)
{
	const cookie_io_functions_t functions = { .read = read_stream, .close = close_stream };

	CALLED_DISK(fdopen);
	return fopencookie(disk_file(fd), mode, functions);
}

SEAM(int, fsync, int fd)
{
	CALLED_DISK(fsync);
	return result_of(disk_flush(disk_file(fd), false));
}

SEAM(int, fdatasync, int fd)
{
	CALLED_DISK(fdatasync);
	return result_of(disk_flush(disk_file(fd), false));
}

SEAM(int, syncfs, int fd)
{
	CALLED_DISK(syncfs);
	return result_of(disk_flush(disk_file(fd), true));
}

SEAM(int, fallocate, int fd, int mode, off_t at, off_t size)
{
	CALLED_DISK(fallocate);
	(void)mode, (void)at, (void)size;
	return disk_file(fd) ? 0 : result_of(-EBADF);
}

SEAM(int, fsetxattr, int fd, const char *name, const void *value, size_t size, int flags)
{
	CALLED_DISK(fsetxattr);
	(void)name, (void)flags; /* there is one name */
	return result_of(disk_set_tag(disk_file(fd), value, size));
}

SEAM(ssize_t, fgetxattr, int fd, const char *name, void *value, size_t size)
{
	CALLED_DISK(fgetxattr);
	(void)name;
	return size_of(disk_get_tag(disk_file(fd), value, size));
}

/* ---- names ---- */

SEAM(int, mkdirat, int at, const char *name, mode_t mode)
{
	CALLED_DISK(mkdirat);
	return result_of(disk_make_directory(at, name, mode));
}

SEAM(int, unlinkat, int at, const char *name, int flags)
{
	CALLED_DISK(unlinkat);
	return result_of(disk_unlink(at, name, flags & AT_REMOVEDIR));
}

SEAM(int, renameat, int at, const char *name, int to_at, const char *to)
{
	CALLED_DISK(renameat);
	return result_of(disk_rename(at, name, to_at, to, false));
}

SEAM(int, renameat2, int at, const char *name, int to_at, const char *to, unsigned flags)
{
	CALLED_DISK(renameat2);
	assert(flags == RENAME_EXCHANGE);
	return result_of(disk_rename(at, name, to_at, to, true));
}

SEAM(int, linkat, int at, const char *name, int to_at, const char *to, int flags)
{
	CALLED_DISK(linkat);
	assert(!flags);
	return result_of(disk_link(at, name, to_at, to));
}

static int fill(struct stat *to, int err, const struct disk_stat *st)
{
	*to = (struct stat){ .st_dev = 1,
		             .st_ino = st->number,
		             .st_nlink = st->links,
		             .st_size = (off_t)st->size,
		             .st_mode = st->mode | (st->is_directory ? S_IFDIR : S_IFREG),
		             .st_mtim = { .tv_sec = (time_t)(st->changed_ns / NS_PER_S),
		                          .tv_nsec = (long)(st->changed_ns % NS_PER_S) } };
	to->st_ctim = to->st_mtim;
	return result_of(err);
}

SEAM(int, fstat, int fd, struct stat *to)
{
	struct disk_stat st = { 0 };

	CALLED_DISK(fstat);
	if (!disk_file(fd))
		return __real_fstat(fd, to);
	return fill(to, disk_stat(fd, NULL, &st), &st);
}

SEAM(int, fstatat, int at, const char *name, struct stat *to, int flags)
{
	struct disk_stat st = { 0 };

	CALLED_DISK(fstatat);
	(void)flags; /* there are no links */
	return fill(to, disk_stat(at, name, &st), &st);
}

SEAM(int, stat, const char *path, struct stat *to)
{
	struct disk_stat st = { 0 };

	CALLED_DISK(stat);
	if (strcmp(path, DISK_ROOT) != 0)
		return __real_stat(path, to);
	return fill(to, disk_stat(AT_FDCWD, path, &st), &st);
}

SEAM(int, faccessat, int at, const char *name, int mode, int flags)
{
	struct disk_stat st;

	CALLED_DISK(faccessat);
	(void)mode, (void)flags;
	return result_of(disk_stat(at, name, &st));
}

SEAM(int, fstatvfs, int fd, struct statvfs *to)
{
	CALLED_DISK(fstatvfs);
	(void)fd;
	*to = (struct statvfs){
		.f_bavail = 1 << 20, .f_frsize = 4096, .f_files = 1 << 20, .f_favail = 1 << 20
	};
	return 0;
}

/* ---- directories ---- */

/* The names of when it was opened: what comes and goes meanwhile may or may not be read. */
struct list {
	int fd;
	unsigned count, at;
	struct dirent *entry;
};

SEAM(DIR *, fdopendir, int fd)
{
	struct list *l = calloc(1, sizeof *l);
	const char *name;

	CALLED_DISK(fdopendir);
	if (!l || !(l->entry = calloc(NAMES_MAX, sizeof *l->entry)))
		abort();
	l->fd = fd;
	while ((name = disk_next(disk_file(fd)))) {
		assert(l->count < NAMES_MAX);
		snprintf(l->entry[l->count++].d_name, sizeof l->entry->d_name, "%s", name);
	}
	return (DIR *)l;
}

SEAM(struct dirent *, readdir, DIR *dir)
{
	struct list *l = (struct list *)dir;

	CALLED_DISK(readdir);
	return l->at < l->count ? &l->entry[l->at++] : NULL;
}

SEAM(int, dirfd, DIR *dir)
{
	CALLED_DISK(dirfd);
	return ((struct list *)dir)->fd;
}

SEAM(int, closedir, DIR *dir)
{
	struct list *l = (struct list *)dir;

	CALLED_DISK(closedir);
	disk_close(l->fd);
	free(l->entry);
	free(l);
	return 0;
}
