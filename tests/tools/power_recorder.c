/*
 * power_recorder.c - records the file operations and acknowledgements of a program in their order.
 *
 * For LD_PRELOAD. DARKROOM_RECORD names the record, to which other programs may append. Each entry
 * is a line, with data behind it if it has a size, as tests/http/crash_states.py reads it. Inodes
 * identify files and directories. Calls are serialised, so that the record has their true order. An
 * acknowledgement is recorded before it is sent, and any other call when it has returned. Records
 * only calls that darkroomd uses, which are relative to a directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record_fd = -1;

__attribute__((constructor)) static void open_record(void)
{
	const char *path = getenv("DARKROOM_RECORD");

	if (path)
		record_fd = (int)syscall(SYS_openat, AT_FDCWD, path,
		                         O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (record_fd < 0)
		abort();
}

/* Appends a line and its data. Aborts if it cannot, since an incomplete record is misleading. */
static void record(const void *data, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void record(const void *data, size_t size, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);

	va_end(args);
	if (n < 0 || (size_t)n >= sizeof line)
		abort();
	char *copy = malloc((size_t)n + size + 1);

	if (!copy)
		abort();
	memcpy(copy, line, (size_t)n);
	if (size)
		memcpy(copy + n, data, size);
	if (syscall(SYS_write, record_fd, copy, (size_t)n + size) != (long)((size_t)n + size))
		abort();
	free(copy);
}

static uintmax_t inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uintmax_t)st.st_ino;
}

static int is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* ---- the C library's interface ---- */

int openat(int at, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	struct stat st;

	pthread_mutex_lock(&lock);
	int is_old = (flags & O_CREAT) && !(flags & O_EXCL) && fstatat(at, path, &st, 0) == 0;
	int fd = (int)syscall(SYS_openat, at, path, flags, mode), err = errno;

	if (fd >= 0 && (flags & O_CREAT) && !is_old && at != AT_FDCWD)
		record(NULL, 0, "create %ju %s %ju\n", inode(at), path, inode(fd));
	else if (fd >= 0 && (flags & O_TRUNC) && at != AT_FDCWD)
		record(NULL, 0, "cut %ju\n", inode(fd));
	pthread_mutex_unlock(&lock);
	errno = err;
	return fd;
}

int mkdirat(int at, const char *path, mode_t mode)
{
	struct stat st;

	pthread_mutex_lock(&lock);
	int result = (int)syscall(SYS_mkdirat, at, path, mode), err = errno;

	if (result == 0 && at != AT_FDCWD && fstatat(at, path, &st, 0) == 0)
		record(NULL, 0, "mkdir %ju %s %ju\n", inode(at), path, (uintmax_t)st.st_ino);
	pthread_mutex_unlock(&lock);
	errno = err;
	return result;
}

static int do_rename(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	pthread_mutex_lock(&lock);
	int result = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags), err = errno;

	if (result == 0)
		record(NULL, 0, "%s %ju %s %ju %s\n",
		       flags & RENAME_EXCHANGE ? "exchange" : "rename", inode(from_at), from,
		       inode(to_at), to);
	pthread_mutex_unlock(&lock);
	errno = err;
	return result;
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	return do_rename(from_at, from, to_at, to, 0);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	return do_rename(from_at, from, to_at, to, flags);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
	pthread_mutex_lock(&lock);
	int result = (int)syscall(SYS_linkat, from_at, from, to_at, to, flags), err = errno;

	if (result == 0)
		record(NULL, 0, "link %ju %s %ju %s\n", inode(from_at), from, inode(to_at), to);
	pthread_mutex_unlock(&lock);
	errno = err;
	return result;
}

int unlinkat(int at, const char *path, int flags)
{
	pthread_mutex_lock(&lock);
	int result = (int)syscall(SYS_unlinkat, at, path, flags), err = errno;

	if (result == 0 && at != AT_FDCWD)
		record(NULL, 0, "unlink %ju %s\n", inode(at), path);
	pthread_mutex_unlock(&lock);
	errno = err;
	return result;
}

ssize_t write(int fd, const void *data, size_t size)
{
	if (!is_file(fd))
		return syscall(SYS_write, fd, data, size);
	pthread_mutex_lock(&lock);
	off_t at = lseek(fd, 0, SEEK_CUR);
	ssize_t n = syscall(SYS_write, fd, data, size);
	int err = errno;

	if (n > 0)
		record(data, (size_t)n, "write %ju %jd %zd\n", inode(fd), (intmax_t)at, n);
	pthread_mutex_unlock(&lock);
	errno = err;
	return n;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	pthread_mutex_lock(&lock);
	ssize_t n = syscall(SYS_pwrite64, fd, data, size, at);
	int err = errno;

	if (n > 0)
		record(data, (size_t)n, "write %ju %jd %zd\n", inode(fd), (intmax_t)at, n);
	pthread_mutex_unlock(&lock);
	errno = err;
	return n;
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
	pthread_mutex_lock(&lock);
	int result = (int)syscall(SYS_fallocate, fd, mode, at, size), err = errno;

	if (result == 0)
		record(NULL, 0, "grow %ju %jd\n", inode(fd), (intmax_t)(at + size));
	pthread_mutex_unlock(&lock);
	errno = err;
	return result;
}

static int flush(long number, int fd, const char *name)
{
	pthread_mutex_lock(&lock);
	int result = (int)syscall(number, fd), err = errno;

	if (result == 0)
		record(NULL, 0, "%s %ju\n", name, inode(fd));
	pthread_mutex_unlock(&lock);
	errno = err;
	return result;
}

int fsync(int fd)
{
	return flush(SYS_fsync, fd, "sync");
}

int fdatasync(int fd)
{
	return flush(SYS_fdatasync, fd, "sync");
}

int syncfs(int fd)
{
	return flush(SYS_syncfs, fd, "syncfs");
}

static void record_answer(const void *head, size_t size)
{
	static const char version[] = "HTTP/1.1 20";

	if (size <= sizeof version || memcmp(head, version, sizeof version - 1) != 0)
		return;
	pthread_mutex_lock(&lock);
	record(head, size, "answer %zu\n", size);
	pthread_mutex_unlock(&lock);
}

/* Answers with a body. */
ssize_t writev(int fd, const struct iovec *parts, int count)
{
	if (count > 0)
		record_answer(parts->iov_base, parts->iov_len);
	return syscall(SYS_writev, fd, parts, count);
}

/* Answers without one. */
ssize_t send(int fd, const void *data, size_t size, int flags)
{
	record_answer(data, size);
	return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}
