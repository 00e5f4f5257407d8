/*
 * thread_use.h - what a thread has taken and released of the process's resources.
 *
 * The places that take and release count it here. The scheduler reads the counts before and after
 * a piece of work (sched/core/resources.h). Each thread has counts of its own.
 */
#ifndef DARKROOM_BASE_THREAD_USE_H
#define DARKROOM_BASE_THREAD_USE_H

#include <stdint.h>
#include <unistd.h>

enum resource {
	RESOURCE_MEMORY,      /* bytes of the pool's buffers (pool.h) */
	RESOURCE_DESCRIPTORS, /* that stay open after a handler's call: connections and the files of
	                         responses */
	RESOURCE_COUNT
};

struct thread_use {
	uint64_t taken[RESOURCE_COUNT], released[RESOURCE_COUNT]; /* since the last clearing */
};

extern _Thread_local struct thread_use thread_use;

static inline void thread_use_take(enum resource r, uint64_t amount)
{
	thread_use.taken[r] += amount;
}

static inline void thread_use_release(enum resource r, uint64_t amount)
{
	thread_use.released[r] += amount;
}

/* Closes a descriptor that is counted as taken. */
static inline void thread_use_close(int fd)
{
	close(fd);
	thread_use_release(RESOURCE_DESCRIPTORS, 1);
}

static inline void thread_use_clear(void)
{
	thread_use = (struct thread_use){ 0 };
}

/* Adds the counts to *to, and clears them. */
static inline void thread_use_move(struct thread_use *to)
{
	for (unsigned r = 0; r < RESOURCE_COUNT; r++) {
		to->taken[r] += thread_use.taken[r];
		to->released[r] += thread_use.released[r];
	}
	thread_use_clear();
}

#endif
