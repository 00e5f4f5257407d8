/*
 * weak_memory.h - a memory that may reorder what C11 allows it to reorder.
 *
 * Each shared location has a list of messages: the values stored, in modification order. A thread
 * has a view of each location, which is the oldest message that it may still read. A load reads any
 * message from there on. A store goes to any place behind it. Release and acquire carry views from
 * thread to thread, and a seq_cst fence exchanges views with one common view. This is the model of
 * J. Kang et al., "A promising semantics for relaxed-memory concurrency" (POPL 2017), without
 * promises, as in RC11 (O. Lahav et al., PLDI 2017).
 *
 * Weaker than C11: a seq_cst access counts as acquire and release, and a release sequence consists
 * of read-modify-writes only (C20). Stronger than C11: no store overtakes an earlier load of its
 * thread, and a thread reads old messages of a location at most STALE_MAX times in a row.
 *
 * Plain accesses are checked for data races, with a vector clock in each view. One thread of the
 * process; the explored threads are coroutines (weak_explore.c).
 */
#ifndef DARKROOM_TESTS_WEAK_MEMORY_H
#define DARKROOM_TESTS_WEAK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK_THREADS 4
#define WEAK_FINAL WEAK_THREADS /* after the threads have ended: always the newest message */

enum weak_change {
	WEAK_SET,
	WEAK_ADD,
	WEAK_AND,
	WEAK_OR,
};

/* Begins an execution: forgets all messages. checks_races: of plain accesses;
 * without it there are fewer states. */
void weak_memory_reset(bool checks_races);

/* Removes what no alive thread (bit i: thread i) can read any more, so that states are alike. */
void weak_collect(unsigned alive);

/* Declares that the threads share no memory. */
void weak_share_nothing(void);

/* Declares memory that the threads share. Everything else is accessed as it is. */
void weak_share(const void *from, size_t size, const char *name);

/* Returns whether the address is in shared memory. */
bool weak_is_shared(uintptr_t address);

/* Operations of a thread; order is one of __ATOMIC_RELAXED ... The value is in native memory until
 * the first operation on its location. */
uint64_t weak_load(unsigned thread, uintptr_t address, unsigned size, int order);
void weak_store(unsigned thread, uintptr_t address, unsigned size, uint64_t value, int order);
uint64_t weak_modify(unsigned thread, uintptr_t address, unsigned size, enum weak_change change,
                     uint64_t value, int order);
/* Returns the value read; *done tells whether it was the expected one, and replaced. */
uint64_t weak_compare_exchange(unsigned thread, uintptr_t address, unsigned size, uint64_t expected,
                               uint64_t value, int order, int order_failed, bool *done);
void weak_fence(unsigned thread, int order);

/* A plain access of the thread. Returns false if it races with another one. */
bool weak_plain(unsigned thread, uintptr_t address, bool is_write);

/* Returns the newest value of a location. */
uint64_t weak_newest(uintptr_t address, unsigned size);

/* Returns a hash of all messages, views and clocks, begun with h. */
uint64_t weak_memory_hash(uint64_t h);
uint64_t weak_mix(uint64_t h, uint64_t word);

/* Returns the name of the shared memory at the address, and its offset there. */
const char *weak_name(uintptr_t address, size_t *offset);

#endif
