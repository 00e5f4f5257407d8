/*
 * pool.h - buffers for pixels and bytes, last in first out per thread.
 *
 * The buffer that was freed last is handed out first, because it is still in the core's cache (a
 * rotating pool costs 7.5 % on small images). Sizes are in classes of a quarter octave. A buffer
 * may be put back by another thread. If no buffer of a class is free, a larger one is used. The
 * bytes of free buffers are bounded; the rest goes back to malloc.
 */
#ifndef DARKROOM_BASE_POOL_H
#define DARKROOM_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

/* Readable and writable bytes after the requested size: vector kernels may touch them. */
#define POOL_SLACK 128

/* A buffer has the home of the thread that allocated it and serves only threads of that home:
 * memory stays on its NUMA node. Home 0 is for threads that are not bound and for machines with one
 * node; the others are nodes. */
#define POOL_HOMES 9

/* Returns a buffer of at least size + POOL_SLACK bytes, aligned to 64, with undefined contents;
 * NULL without memory. Any thread. */
void *pool_get(size_t size);

/* Returns the bytes that pool_get(size) takes from a budget: those of the size's class; SIZE_MAX if
 * that is too large. */
size_t pool_size(size_t size);

/* As pool_get(); *size_got is the size of the buffer without the slack. */
void *pool_get_sized(size_t size, size_t *size_got);

/* As pool_get(), for a buffer whose bytes a budget counts only as they are written. The kernel
 * gives a new buffer its pages at that time; one that was used before has them. Of those, buffers
 * of this function have at most 64 MiB together, whatever was freed before. */
void *pool_get_unfilled(size_t size);

/* The first bytes of a buffer of pool_get_unfilled() are written, so that they count in a budget.
 * Once for each; of other buffers nothing changes. Any thread. */
void pool_filled(void *buffer, size_t bytes);

/* Frees a buffer; NULL is ignored. Aborts if the buffer is free already, as long as the pool still
 * has it. Any thread. */
void pool_put(void *buffer);

/* Sets the home of the calling thread, < POOL_HOMES; initially 0. Its free buffers go back to their
 * homes. */
void pool_thread_set_home(unsigned new_home);

/* Call before sleeping for an unknown time: leaves the thread 2 MiB of free buffers and gives the
 * rest to other threads. Calls pool_give_back() every 10 s. */
void pool_thread_rest(void);

/* Gives malloc what each home had to spare since the last call, but leaves it 64 MiB. Any thread.
 */
void pool_give_back(void);

/* Gives the calling thread's free buffers to other threads. Call at the end of a thread. */
void pool_thread_fini(void);

/* Sets a bound: free buffers are returned to malloc when used + free would exceed it, except up to
 * 2 MiB per thread. Each home keeps at most a quarter of it for all threads, or 64 MiB if that is
 * more. Initially there is no bound, and a home keeps 64 MiB. Any thread. */
void pool_set_max(uint64_t bytes);

/* Returns all free buffers to malloc. After pool_thread_fini() of every thread. */
void pool_fini(void);

/* Makes malloc keep memory: returning it to the kernel and faulting it in again costs a fifth of
 * all CPU on small images (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD). Once, before any thread
 * starts. */
void pool_setup_malloc(void);

/* Reads the bytes of used and of free buffers, over all threads. Any thread. */
void pool_usage(uint64_t *used_bytes, uint64_t *kept_bytes);

#endif
