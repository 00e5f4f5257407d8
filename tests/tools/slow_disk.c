/*
 * slow_disk.c - makes a program's file operations slow, as on a disk that is busy.
 *
 * For LD_PRELOAD. The file DARKROOM_SLOW_DISK has two 32-bit numbers: the delay of each operation
 * in microseconds, and 1 if only reading is slow, or 2 if only writing is. It is mapped, so that
 * another process can change it while the program runs. While there is a delay, no file is in the
 * page cache unless the program has read it since it was opened.
 */
#undef _FORTIFY_SOURCE /* its headers define wrapped functions inline */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX 65536
#define CACHESTAT 451
#define PART_US 5000 /* of a wait */

static const struct control {
	_Atomic uint32_t delay_us, only;
} * control;

static _Atomic off_t read_to[FILE_MAX]; /* bytes of each open file before this were read */

__attribute__((constructor)) static void open_control(void)
{
	const char *path = getenv("DARKROOM_SLOW_DISK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map =
		fd >= 0 ? mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (map != MAP_FAILED)
		control = map;
	if (fd >= 0)
		close(fd);
}

static uint32_t delay(void)
{
	return control ? atomic_load(&control->delay_us) : 0;
}

/* A delay that becomes shorter ends the waits that have begun. */
static void wait_for_disk(bool is_write)
{
	for (uint32_t waited_us = 0;;) {
		uint32_t only = control ? atomic_load(&control->only) : 0;
		uint32_t us = only == (is_write ? 1 : 2) ? 0 : delay();

		if (waited_us >= us)
			return;
		uint32_t part_us = us - waited_us < PART_US ? us - waited_us : PART_US;
		const struct timespec t = { .tv_nsec = part_us * 1000L };

		nanosleep(&t, NULL);
		waited_us += part_us;
	}
}

static bool is_cold(int fd, off_t end)
{
	return delay() && (fd >= FILE_MAX || end > atomic_load(&read_to[fd]));
}

/* The wrapped function. Its address is looked up at each call, which costs less than the call. */
#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))(uintptr_t)dlsym(RTLD_NEXT, name))

int openat(int at, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;

	va_end(args);
	wait_for_disk(flags & (O_CREAT | O_DIRECTORY)); /* directories: of writes */
	int fd = REAL(int, "openat", int, const char *, int, mode_t)(at, path, flags, mode);

	if (fd >= 0 && fd < FILE_MAX)
		atomic_store(&read_to[fd], 0);
	return fd;
}

int renameat(int old_at, const char *old, int new_at, const char *new)
{
	wait_for_disk(true);
	return REAL(int, "renameat", int, const char *, int, const char *)(old_at, old, new_at,
	                                                                   new);
}

int fstatvfs(int fd, struct statvfs *fs)
{
	wait_for_disk(true);
	return REAL(int, "fstatvfs", int, struct statvfs *)(fd, fs);
}

/* The store is looked for by its path. */
int stat(const char *restrict path, struct stat *restrict st)
{
	int result = REAL(int, "stat", const char *, struct stat *)(path, st);

	if (result == 0 && S_ISDIR(st->st_mode))
		wait_for_disk(true);
	return result;
}

int syncfs(int fd)
{
	wait_for_disk(true);
	return REAL(int, "syncfs", int)(fd);
}

int unlinkat(int at, const char *path, int flags)
{
	wait_for_disk(true);
	return REAL(int, "unlinkat", int, const char *, int)(at, path, flags);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	if (!offset || is_cold(in, *offset + (off_t)count))
		wait_for_disk(false);
	return REAL(ssize_t, "sendfile", int, int, off_t *, size_t)(out, in, offset, count);
}

static ssize_t note_read(int fd, off_t at, ssize_t n)
{
	if (n > 0 && fd < FILE_MAX && at + n > atomic_load(&read_to[fd]))
		atomic_store(&read_to[fd], at + n);
	return n;
}

/* The kernel's own files are on no disk: the daemon reads its CPU quota from a cgroup. */
static bool is_on_disk(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) ||
	       (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC &&
	        fs.f_type != PROC_SUPER_MAGIC && fs.f_type != SYSFS_MAGIC);
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
	if (delay() && is_on_disk(fd))
		wait_for_disk(false);
	return note_read(fd, at,
	                 REAL(ssize_t, "pread", int, void *, size_t, off_t)(fd, to, size, at));
}

/* With _FORTIFY_SOURCE, programs call this instead. */
ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t room)
{
	return size <= room ? pread(fd, to, size, at) : -1;
}

ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t at, int flags)
{
	if (flags & RWF_NOWAIT && count == 1 && is_cold(fd, at + (off_t)iov->iov_len)) {
		errno = EAGAIN;
		return -1;
	}
	return REAL(ssize_t, "preadv2", int, const struct iovec *, int, off_t, int)(fd, iov, count,
	                                                                            at, flags);
}

/* openat2(2) has no function in libc, and the program calls it only with RESOLVE_CACHED.
 * cachestat(2) finds nothing. */
long syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_openat2 && delay()) {
		errno = EAGAIN;
		return -1;
	}
	if (number == CACHESTAT && delay())
		return 0;
	return REAL(long, "syscall", long, ...)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
