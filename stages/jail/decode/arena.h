/*
 * arena.h - malloc() of this program: blocks of one range of addresses.
 *
 * The kernel makes a part of the range usable before a file is read, and nothing more afterwards:
 * no allocation makes a system call, and the daemon has reserved what there is. Memory is never
 * given back, because the process ends with its picture. One thread.
 */
#ifndef DARKROOM_JAIL_DECODE_ARENA_H
#define DARKROOM_JAIL_DECODE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

/* Makes this number of bytes usable beside those in use, and no others. Returns whether that is
 * possible. */
bool arena_grow(uint64_t bytes);

/* Returns whether an allocation has failed. */
bool arena_has_failed(void);

#endif
