/* store_room.c - reads the free space, and remembers it. Any thread. */
#include "store_room.h"

#include <sys/statvfs.h>

#include "base/clock.h"
#include "store.h"

#define LOOK_NS NS_PER_S /* between looks at the free space while there is too little */

uint64_t store_look(struct store *s)
{
	struct statvfs fs;
	uint64_t bytes = UINT64_MAX;

	if (fstatvfs(s->root_fd, &fs) == 0)
		bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	/* Relaxed: two independent numbers. */
	atomic_store_explicit(&s->free_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&s->looked_ns, clock_ns(), memory_order_relaxed);
	return bytes;
}

bool store_has_room(struct store *s, uint64_t floor, uint64_t *free_bytes)
{
	*free_bytes = atomic_load_explicit(&s->free_bytes, memory_order_relaxed);
	if (*free_bytes >= floor)
		return true;
	if (clock_ns() - atomic_load_explicit(&s->looked_ns, memory_order_relaxed) >= LOOK_NS)
		*free_bytes = store_look(s);
	return *free_bytes >= floor;
}
