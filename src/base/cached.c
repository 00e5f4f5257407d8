/* cached.c - openat2(2) with RESOLVE_CACHED, preadv2(2) with RWF_NOWAIT, and cachestat(2). Any
 * thread. */
#include "cached.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

const struct open_how cached_how = {
	.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	.resolve = RESOLVE_CACHED | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
};

int cached_open(int at, const char *path)
{
	int fd = (int)syscall(SYS_openat2, at, path, &cached_how, sizeof cached_how);

	if (fd >= 0)
		return fd;
	/* An older kernel knows neither the flag nor the call. A container may refuse it. */
	return errno == ENOSYS || errno == EINVAL || errno == EPERM ? -EAGAIN : -errno;
}

int cached_look(int fd, off_t at, size_t size)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t first = (uint64_t)at / page, last = ((uint64_t)at + size - 1) / page;
	const struct {
		uint64_t at, size;
	} range = { (uint64_t)at, size };
	struct {
		uint64_t cached, dirty, writeback, evicted, recently_evicted;
	} pages = { 0 };

	if (syscall(CACHED_READ_CALL, fd, &range, &pages, 0))
		return -1;
	return pages.cached >= last - first + 1;
}

bool cached_read(int fd, void *to, size_t size, off_t at)
{
	const struct iovec iov = { to, size };
	ssize_t n;

	do
		n = preadv2(fd, &iov, 1, at, RWF_NOWAIT);
	while (n < 0 && errno == EINTR);
	/* A tmpfs does not know the flag, and has its files in memory. */
	if (n < 0 && errno == EOPNOTSUPP && cached_look(fd, at, size) == 1)
		n = pread(fd, to, size, at);
	return n >= 0 && (size_t)n == size;
}
