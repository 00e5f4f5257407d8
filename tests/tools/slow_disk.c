/*
 * slow_disk.c - makes a program's file operations slow, as on a disk that is busy.
 *
 * For LD_PRELOAD. The file DARKROOM_SLOW_DISK has the delay of each operation in microseconds, as a
 * 32-bit number. It is mapped, so that another process can change it while the program runs.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

static const _Atomic uint32_t *delay_us;

__attribute__((constructor)) static void open_control(void)
{
	const char *path = getenv("DARKROOM_SLOW_DISK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map =
		fd >= 0 ? mmap(NULL, sizeof *delay_us, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (map != MAP_FAILED)
		delay_us = map;
	if (fd >= 0)
		close(fd);
}

static void wait_for_disk(void)
{
	uint32_t us = delay_us ? atomic_load(delay_us) : 0;
	const struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L };

	if (us)
		nanosleep(&t, NULL);
}

/* The wrapped function. Its address is looked up at each call, which costs less than the call. */
#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))(uintptr_t)dlsym(RTLD_NEXT, name))

int openat(int at, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;

	va_end(args);
	wait_for_disk();
	return REAL(int, "openat", int, const char *, int, mode_t)(at, path, flags, mode);
}

int renameat(int old_at, const char *old, int new_at, const char *new)
{
	wait_for_disk();
	return REAL(int, "renameat", int, const char *, int, const char *)(old_at, old, new_at,
	                                                                   new);
}

int syncfs(int fd)
{
	wait_for_disk();
	return REAL(int, "syncfs", int)(fd);
}

int unlinkat(int at, const char *path, int flags)
{
	wait_for_disk();
	return REAL(int, "unlinkat", int, const char *, int)(at, path, flags);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	wait_for_disk();
	return REAL(ssize_t, "sendfile", int, int, off_t *, size_t)(out, in, offset, count);
}
