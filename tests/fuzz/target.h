/*
 * target.h - what a fuzz target defines, for libFuzzer and for corpus_runner.c.
 *
 * A target aborts when it finds a fault. Its input is the text or file itself, so that any file can
 * be a corpus. What a target chooses at random depends on the input only.
 */
#ifndef DARKROOM_TESTS_FUZZ_TARGET_H
#define DARKROOM_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Runs one input. Returns 0. The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Defined by some targets: changes data[0..size) in place and returns the new size, <= size_max. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

/* libFuzzer's mutator, for custom ones. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);

/* Passes each seed of the target to emit(). */
void target_seeds(void (*emit)(const void *data, size_t size));

/* Defined by some targets: prints what they have counted. corpus_runner.c calls it at the end. */
void target_report(void);

/* The number of mutants of each seed that corpus_runner.c runs. */
extern const unsigned target_mutants;

/* Passes texts to emit(). */
static inline void target_emit_texts(void (*emit)(const void *data, size_t size),
                                     const char *const *text, size_t count)
{
	for (size_t i = 0; i < count; i++)
		emit(text[i], strlen(text[i]));
}

/* Returns an exact copy on the heap, so that the address sanitizer sees accesses beyond it. The
 * caller frees it. */
static inline void *target_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	assert(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* Returns a number that depends on the input only. */
static inline uint32_t target_hash(const uint8_t *data, size_t size)
{
	uint32_t hash = 2166136261; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 16777619;
	return hash | 1;
}

/* Returns the next number of a generator whose state is not 0 (Marsaglia 2003, xorshift). */
static inline uint32_t target_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Returns the end of the piece that begins at `at` < size. Most pieces are short. */
static inline size_t target_cut(uint32_t *state, size_t at, size_t size)
{
	uint32_t r = target_random(state);
	size_t length = 1 + (r >> 8) % (r % 4 ? 5 : 300);

	return length < size - at ? at + length : size;
}

#endif
