/*
 * store_faults.h - the store's files with system calls that fail when a test wants it.
 *
 * For tests that include a .c file of the store after this header. A fault is the n-th call of a
 * function from now on, and its error.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_STORE_FAULTS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_STORE_FAULTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"

enum call {
	NO_CALL,
	CALL_OPENAT,
	CALL_MKDIRAT,
	CALL_RENAMEAT,
	CALL_UNLINKAT,
	CALL_WRITE,
	CALL_CLOSE,
	CALL_FALLOCATE,
	CALL_FSTAT,
	CALL_FACCESSAT,
	CALL_FLOCK,
	CALL_SYNCFS,
	CALL_FDATASYNC,
	CALL_FDOPENDIR,
	CALL_PREAD,
	CALL_PWRITE,
	CALL_COUNT
};

static struct {
	enum call call;
	unsigned left; /* calls until it fails */
	int error;     /* 0: the call returns 0 without effect */
	bool is_lasting;
} fault;
static unsigned calls[CALL_COUNT];
static size_t write_most = SIZE_MAX, read_most = SIZE_MAX;
static uint64_t fake_now = NS_PER_S;

static inline void fail_call(enum call call, unsigned nth, int error)
{
	fault.call = call;
	fault.left = nth;
	fault.error = error;
	fault.is_lasting = false;
	memset(calls, 0, sizeof calls);
}

static inline void fail_calls(enum call call, int error)
{
	fail_call(call, 1, error);
	fault.is_lasting = true;
}

static inline void no_fault(void)
{
	fail_call(NO_CALL, 0, 0);
	write_most = read_most = SIZE_MAX;
}

/* Counts a call. Returns whether it fails, with errno set. */
static inline bool fails(enum call call)
{
	calls[call]++;
	if (call != fault.call || calls[call] < fault.left)
		return false;
	if (calls[call] > fault.left && !fault.is_lasting)
		return false;
	errno = fault.error;
	return true;
}

static inline int fault_openat(int at, const char *path, int flags, ...)
{
	return fails(CALL_OPENAT) ? -1 : openat(at, path, flags, 0666);
}

static inline int fault_mkdirat(int at, const char *path, mode_t mode)
{
	return fails(CALL_MKDIRAT) ? -1 : mkdirat(at, path, mode);
}

static inline int fault_renameat(int from_at, const char *from, int to_at, const char *to)
{
	return fails(CALL_RENAMEAT) ? -1 : renameat(from_at, from, to_at, to);
}

static inline int fault_unlinkat(int at, const char *path, int flags)
{
	return fails(CALL_UNLINKAT) ? -1 : unlinkat(at, path, flags);
}

static inline ssize_t fault_write(int fd, const void *data, size_t size)
{
	if (fails(CALL_WRITE))
		return fault.error ? -1 : 0;
	return write(fd, data, size < write_most ? size : write_most);
}

static inline ssize_t fault_pwrite(int fd, const void *data, size_t size, off_t at)
{
	return fails(CALL_PWRITE) ? -1 : pwrite(fd, data, size, at);
}

static inline ssize_t fault_pread(int fd, void *data, size_t size, off_t at)
{
	return fails(CALL_PREAD) ? -1 : pread(fd, data, size < read_most ? size : read_most, at);
}

/* Closes in any case, as Linux does. Changes errno in any case, as a successful call may. */
static inline int fault_close(int fd)
{
	int result = close(fd);

	assert_int_equal(result, 0); /* it was open */
	errno = EDOM;
	return fails(CALL_CLOSE) ? -1 : 0;
}

static inline int fault_fallocate(int fd, int mode, off_t at, off_t size)
{
	if (fails(CALL_FALLOCATE))
		return -1;
	assert_int_equal(mode, 0);
	assert_int_equal(at, 0);
	return ftruncate(fd, size);
}

static inline int fault_fstat(int fd, struct stat *st)
{
	return fails(CALL_FSTAT) ? -1 : fstat(fd, st);
}

static inline int fault_faccessat(int at, const char *path, int mode, int flags)
{
	return fails(CALL_FACCESSAT) ? -1 : faccessat(at, path, mode, flags);
}

static inline int fault_flock(int fd, int operation)
{
	return fails(CALL_FLOCK) ? -1 : flock(fd, operation);
}

static inline int fault_syncfs(int fd)
{
	(void)fd;
	return fails(CALL_SYNCFS) ? -1 : 0;
}

static inline int fault_fdatasync(int fd)
{
	(void)fd;
	return fails(CALL_FDATASYNC) ? -1 : 0;
}

static inline DIR *fault_fdopendir(int fd)
{
	return fails(CALL_FDOPENDIR) ? NULL : fdopendir(fd);
}

static inline uint64_t fault_clock(void)
{
	return fake_now;
}

#define openat fault_openat
#define mkdirat fault_mkdirat
#define renameat fault_renameat
#define unlinkat fault_unlinkat
#define write fault_write
#define pwrite fault_pwrite
#define pread fault_pread
#define close fault_close
#define fallocate fault_fallocate
#define fstat(fd, st) fault_fstat(fd, st)
#define faccessat fault_faccessat
#define flock(fd, operation) fault_flock(fd, operation)
#define syncfs fault_syncfs
#define fdatasync fault_fdatasync
#define fdopendir fault_fdopendir
#define clock_ns fault_clock

/* ---- a store in a directory of its own ---- */

static char test_root[64];

static inline void remove_test_root(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", test_root);
	assert_int_equal(system(command), 0);
}

/* Runs a shell command in the test's root. */
static inline void shell(const char *command)
{
	char line[512];

	snprintf(line, sizeof line, "cd %s && %s", test_root, command);
	assert_int_equal(system(line), 0);
}

static inline bool exists(const char *path)
{
	char whole[256];
	struct stat st;

	snprintf(whole, sizeof whole, "%s/%s", test_root, path);
	return lstat(whole, &st) == 0;
}

/* Returns the number of entries of a directory. */
static inline unsigned entries(const char *directory)
{
	char path[256];
	unsigned n = 0;

	snprintf(path, sizeof path, "%s/%s", test_root, directory);
	DIR *dir = opendir(path);

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static inline unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
