/* epoll_until.c - chooses the call that the kernel has. Any thread. */
#include "epoll_until.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

int epoll_until(int epoll_fd, struct epoll_event *events, int count, uint64_t then_ns,
                bool *can_wait_exactly)
{
	uint64_t now_ns = clock_ns(), left_ns = then_ns > now_ns ? then_ns - now_ns : 0;
	struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S),
		                 .tv_nsec = (long)(left_ns % NS_PER_S) };
	uint64_t left_ms = left_ns / NS_PER_MS;
	int n;

	if (then_ns == UINT64_MAX)
		return epoll_wait(epoll_fd, events, count, -1);
	if (*can_wait_exactly) {
		n = epoll_pwait2(epoll_fd, events, count, &left, NULL);
		if (n >= 0 || errno != ENOSYS)
			return n;
		*can_wait_exactly = false;
	}
	/* Linux before 5.11 waits whole milliseconds; the last one is a busy loop */
	return epoll_wait(epoll_fd, events, count, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
}
