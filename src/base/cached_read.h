/*
 * cached_read.h - reads a file only if that needs no disk: for threads that must not wait.
 */
#ifndef DARKROOM_BASE_CACHED_READ_H
#define DARKROOM_BASE_CACHED_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CACHED_READ_CALL 451 /* cachestat(2), which older headers do not have */

/* Reads as pread(2), if the page cache has all of it. Returns false if it has not, if the file is
 * shorter, or if the file system cannot tell. Any thread. */
bool cached_read(int fd, void *to, size_t size, off_t at);

/* Returns 1 if the page cache has those bytes of the file, 0 if it lacks some, and -1 if the kernel
 * cannot tell (before Linux 6.5, or the file belongs to another user). Any thread. */
int cached_look(int fd, off_t at, size_t size);

#endif
