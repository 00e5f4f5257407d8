/*
 * worker_set.h - a set of a group's workers: one bit for each, in as many words as are needed.
 *
 * Bit i % WORKER_WORD_BITS of word i / WORKER_WORD_BITS stands for worker i. Whoever is in a hurry
 * looks only at the words in use (struct schedule). Up to WORKER_WORD_BITS workers need one.
 */
#ifndef DARKROOM_SCHED_CORE_WORKER_SET_H
#define DARKROOM_SCHED_CORE_WORKER_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

#ifndef WORKER_WORD_BITS
#define WORKER_WORD_BITS 64 /* tests use fewer, so that few workers need several words */
#endif
#define WORKER_WORDS ((CONF_THREADS_MAX + WORKER_WORD_BITS - 1) / WORKER_WORD_BITS)

struct worker_set {
	uint64_t word[WORKER_WORDS];
};

/* Returns how many words a set of this number of workers has. */
static inline unsigned worker_words(unsigned workers)
{
	return (workers + WORKER_WORD_BITS - 1) / WORKER_WORD_BITS;
}

/* Returns word k of the set that has only this worker. */
static inline uint64_t worker_bit(unsigned worker, unsigned k)
{
	return worker / WORKER_WORD_BITS == k ? UINT64_C(1) << worker % WORKER_WORD_BITS : 0;
}

static inline void worker_set_add(struct worker_set *set, unsigned worker)
{
	set->word[worker / WORKER_WORD_BITS] |= UINT64_C(1) << worker % WORKER_WORD_BITS;
}

static inline void worker_set_remove(struct worker_set *set, unsigned worker)
{
	set->word[worker / WORKER_WORD_BITS] &= ~(UINT64_C(1) << worker % WORKER_WORD_BITS);
}

static inline bool worker_set_has(const struct worker_set *set, unsigned worker)
{
	return set->word[worker / WORKER_WORD_BITS] >> worker % WORKER_WORD_BITS & 1;
}

/* The same for the words of a set that other threads change. Relaxed: the answer may be late. */
static inline bool worker_words_have(const _Atomic uint64_t *word, unsigned worker)
{
	return atomic_load_explicit(&word[worker / WORKER_WORD_BITS], memory_order_relaxed) >>
	               worker % WORKER_WORD_BITS &
	       1;
}

static inline unsigned worker_set_count(const struct worker_set *set)
{
	unsigned count = 0;

	for (unsigned k = 0; k < WORKER_WORDS; k++)
		count += (unsigned)__builtin_popcountll(set->word[k]);
	return count;
}

#endif
