/*
 * fuzz_decoder.c - the own decoder against libjpeg's: the same planes, and loss wherever libjpeg
 * sees it.
 */
#include <stdio.h>

#include "jpeg_mutator.h"
#include "support/decode_compare.h"
#include "support/entropy_file.h"
#include "target.h"

#define SIZE_MAX_FUZZED 16384
#define SEEDS 40

const unsigned target_mutants = 40;

static unsigned long decoded, own, lost;

void target_report(void)
{
	printf("%lu equal pictures, %lu of the own decoder, %lu with losses\n", decoded, own, lost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int dct_sizes[] = { 1, 2, 4, 8 };
	uint8_t *copy = target_copy(data, size);
	struct decode_comparison c =
		decode_compare(copy, size, dct_sizes[target_hash(data, size) / 2 % 4]);

	if (c.difference)
		fprintf(stderr, "fuzz_decoder: %s\n", c.difference);
	assert(!c.difference);
	decoded += c.is_done;
	own += c.is_done && c.is_own;
	lost += c.is_done && c.has_lost;
	free(copy);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	return jpeg_mutate(data, size, size_max, seed);
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	for (unsigned i = 0; i < SEEDS; i++) {
		uint32_t state = i + 1;
		const struct entropy_file f = entropy_file_random(&state, 40);
		size_t size;
		uint8_t *jpeg =
			i % 2 ? jpeg_random(i, &size) : entropy_file_make(&f, &state, &size);

		if (size <= SIZE_MAX_FUZZED)
			emit(jpeg, size);
		free(jpeg);
	}
}
