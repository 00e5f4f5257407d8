/* store_room.h - the free space of the store's file system. Any thread. */
#ifndef DARKROOM_STORE_STORE_ROOM_H
#define DARKROOM_STORE_STORE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Returns the bytes that the daemon's user may still write, or UINT64_MAX if the system cannot
 * tell. A system call. */
uint64_t store_look(struct store *s);

/* Returns whether floor bytes were free when store_look() saw them last, and sets *free_bytes to
 * what was. If they were not, it looks again, at most once a second. */
bool store_has_room(struct store *s, uint64_t floor, uint64_t *free_bytes);

#endif
