/*
 * fuzz_entropy.c - the own Huffman decoder against libjpeg's: the same coefficients until it stops,
 * and it stops where libjpeg warns.
 */
#include <stdio.h>

#include "jpeg_mutator.h"
#include "support/entropy_compare.h"
#include "support/entropy_file.h"
#include "support/jpeg_structures.h"
#include "target.h"

#define BLOCKS_MAX 1000
#define FILES 256 /* that a mutant can begin with, beside the corpus */
#define SIDE_MAX 24
#define RANDOM_SEEDS 60

const unsigned target_mutants = 40;

/* ---- executions ---- */

static unsigned long decoded, ends[ENTROPY_LEFT_OVER + 1], blocks;

static void count_result(struct entropy_comparison result)
{
	decoded += result.is_decoded;
	ends[result.end] += result.is_decoded;
	blocks += result.blocks;
}

void target_report(void)
{
	printf("decoded by both: %lu, without a fault %lu; %lu equal blocks\n", decoded,
	       ends[ENTROPY_GOOD], blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = target_copy(data, size);

	count_result(entropy_compare(copy, size, BLOCKS_MAX));
	free(copy);
	return 0;
}

/* ---- mutants ---- */

static struct {
	uint8_t *jpeg;
	size_t size;
} files[FILES];

/* Makes a file once: that takes as long as ten executions. */
static uint8_t *file_of(unsigned i, size_t *size)
{
	uint32_t state = i + 1;

	if (!files[i].jpeg) {
		const struct entropy_file f = entropy_file_random(&state, SIDE_MAX);

		files[i].jpeg = entropy_file_make(&f, &state, &files[i].size);
	}
	*size = files[i].size;
	return files[i].jpeg;
}

static size_t replace(uint8_t *data, size_t size_max, unsigned i)
{
	size_t size;
	const uint8_t *jpeg = file_of(i, &size);

	if (size > size_max)
		size = size_max;
	memcpy(data, jpeg, size);
	return size;
}

/* Returns the offset of the first scan's data, or `size`. */
static size_t find_scan(const uint8_t *data, size_t size)
{
	size_t at = 2;

	while (at + 4 <= size && data[at] == 0xff) {
		bool is_scan = data[at + 1] == 0xda;

		at += 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
		if (is_scan)
			return at < size ? at : size;
	}
	return size;
}

/* Changes bytes of the scan. */
static void change_scan(uint8_t *data, size_t size, size_t scan, uint32_t *state)
{
	for (unsigned n = 1 + target_random(state) % 8; n > 0; n--) {
		uint32_t r = target_random(state);
		size_t at = scan + target_random(state) % (size - scan);

		if (r % 4 == 0)
			data[at] = (uint8_t)(r >> 8);
		else if (r % 4 == 1)
			data[at] = 0xff;
		else
			data[at] ^= (uint8_t)(1 << (r >> 8) % 8);
		/* Bits of ones are stuffed; otherwise they end the scan. */
		if (data[at] == 0xff && at + 1 < size && r % 16 > 1)
			data[at + 1] = 0;
	}
}

/* Takes another file, changes the structure of this one, or bytes of its scan. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	uint32_t state = seed * 2654435761U | 1, what = target_random(&state) % 16;

	if (what == 0)
		size = replace(data, size_max, target_random(&state) % FILES);
	size_t scan = find_scan(data, size);

	if (what == 1 || scan == size)
		return jpeg_mutate(data, size, size_max, seed);
	change_scan(data, size, scan, &state);
	return size;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	size_t size;

	for (unsigned i = 0; i < RANDOM_SEEDS; i++) {
		const uint8_t *jpeg = file_of(i, &size);

		emit(jpeg, size);
	}
	/* a scan that is longer than the window */
	const struct fixture f = { .width = 200,
		                   .height = 200,
		                   .from = JCS_GRAYSCALE,
		                   .in = JCS_GRAYSCALE,
		                   .components = 1,
		                   .quality = 100 };
	uint8_t *jpeg = fixture_make(&f, &size);

	emit(jpeg, size);
	free(jpeg);
	jpeg = fixture_make(structure("restart markers"), &size);
	emit(jpeg, size);
	free(jpeg);
}
