/*
 * pool.h - buffers for pixels and bytes, last in first out per thread.
 *
 * The buffer freed last is handed out first, because it is still in the core's cache (a rotating
 * pool costs 7.5 % on small images). Buffers come in size classes of a quarter octave. A buffer may
 * be put back on another thread than it came from. Where there is none of the class, a larger one
 * serves. What is kept free is bounded; the rest goes back to malloc.
 */
#ifndef DARKROOM_BASE_POOL_H
#define DARKROOM_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

/* Readable and writable bytes beyond the size asked for: vector kernels may touch them. */
#define POOL_SLACK 128

/* Buffers have a home, that of the thread they were made on, and serve threads of that home only:
 * memory stays on its NUMA node. */
#define POOL_HOMES                                                                            \
	9 /* 0: anywhere, for threads that are not bound, and on machines with one node; then \
	     nodes */

/* Any thread. 64-byte aligned, at least size bytes + POOL_SLACK, contents undefined; NULL if there
 * is no memory. */
void *pool_get(size_t size);

/* As pool_get; *size_got says how many bytes are there without the slack, >= size. */
void *pool_get_sized(size_t size, size_t *size_got);

/* Any thread; takes what pool_get returned, or NULL. */
void pool_put(void *buffer);

/* Where the calling thread is from now on, < POOL_HOMES; 0 at first. What it keeps goes back to
 * where it came from. */
void pool_thread_set_home(unsigned new_home);

/* The calling thread is about to sleep, nobody knows how long: of what it keeps all but 2 MiB is
 * there for the others. */
void pool_thread_rest(void);

/* What the calling thread keeps is there for all others; at the end of a thread, or of its work. */
void pool_thread_fini(void);

/* What is kept free gives way where it and what is in use come to more than this together (at the
 * start: no limit); threads keep up to 2 MiB each even then. Any thread. */
void pool_set_max(uint64_t bytes);

/* Frees all that is kept. After pool_thread_fini() of every thread. */
void pool_fini(void);

/* Sets malloc so that memory is kept rather than given back and faulted in again, which costs a
 * fifth of all CPU on small images (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD). Once, before
 * any thread starts. */
void pool_setup_malloc(void);

/* Bytes in the hands of users, and bytes kept free in pools, over all threads. Any thread. */
void pool_usage(uint64_t *used_bytes, uint64_t *kept_bytes);

#endif
