/*
 * cached.h - opens and reads a file only if that needs no disk: for threads that must not wait.
 */
#ifndef DARKROOM_BASE_CACHED_H
#define DARKROOM_BASE_CACHED_H

#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What cached_open() asks openat2(2) for. A filter of system calls cannot see the structure, so it
 * compares this address; the memory is read-only. */
extern const struct open_how cached_how;

/* Opens a file below `at` for reading, through no link, if the kernel has the path in memory. Never
 * waits for a FIFO. Returns a descriptor or -errno. -EAGAIN: a thread that may wait must open it
 * (before Linux 5.12 always). Any thread. */
int cached_open(int at, const char *path);

#define CACHED_READ_CALL 451 /* cachestat(2), which older headers do not have */

/* Reads as pread(2), if the page cache has all of it. Returns false if it has not, if the file is
 * shorter, or if the file system cannot tell. Any thread. */
bool cached_read(int fd, void *to, size_t size, off_t at);

/* Returns 1 if the page cache has those bytes of the file, 0 if it lacks some, and -1 if the kernel
 * cannot tell (before Linux 6.5, or the file belongs to another user). Any thread. */
int cached_look(int fd, off_t at, size_t size);

#endif
