/* epoll_until.h - epoll_wait(2) with an exact end. */
#ifndef DARKROOM_LOADGEN_LOAD_EPOLL_UNTIL_H
#define DARKROOM_LOADGEN_LOAD_EPOLL_UNTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Waits like epoll_wait(), until then_ns; UINT64_MAX: without an end. *can_wait_exactly begins with
 * true. Any thread. */
int epoll_until(int epoll_fd, struct epoll_event *events, int count, uint64_t then_ns,
                bool *can_wait_exactly);

#endif
