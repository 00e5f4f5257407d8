/* cached_read.c - preadv2(2) with RWF_NOWAIT, and cachestat(2). Any thread. */
#include "cached_read.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

bool cached_read(int fd, void *to, size_t size, off_t at)
{
	const struct iovec iov = { to, size };
	ssize_t n;

	do
		n = preadv2(fd, &iov, 1, at, RWF_NOWAIT);
	while (n < 0 && errno == EINTR);
	return n >= 0 && (size_t)n == size;
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
