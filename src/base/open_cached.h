/*
 * open_cached.h - opens a file only if that needs no disk: for threads that must not wait.
 */
#ifndef DARKROOM_BASE_OPEN_CACHED_H
#define DARKROOM_BASE_OPEN_CACHED_H

#include <linux/openat2.h>

/* What open_cached() asks openat2(2) for. A filter of system calls cannot see the structure, so it
 * compares this address; the memory is read-only. */
extern const struct open_how open_cached_how;

/* Opens a file for reading as openat(2) with O_NOFOLLOW and O_CLOEXEC, if the kernel has the path
 * in memory. Returns a descriptor or -errno. -EAGAIN: a thread that may wait must open it (before
 * Linux 5.12 always). Any thread. */
int open_cached(int at, const char *path);

#endif
