/*
 * fuzz_entropy.c - the own Huffman decoder against libjpeg's: the same coefficients until it stops,
 * and it stops where libjpeg warns.
 */
#include "jpeg_mutator.h"
#include "support/entropy_compare.h"
#include "support/jpeg_structures.h"
#include "target.h"

#define BLOCKS_MAX 4000
#define RANDOM_SEEDS 60

const unsigned target_mutants = 40;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = target_copy(data, size);

	entropy_compare(copy, size, BLOCKS_MAX);
	free(copy);
	return 0;
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

/* Changes the structure of the file, or a few bytes of its scan. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	uint32_t state = seed * 2654435761U | 1;
	size_t scan = find_scan(data, size), length = size - scan;

	if (length == 0 || target_random(&state) % 4 == 0)
		return jpeg_mutate(data, size, size_max, seed);
	for (unsigned n = 1 + target_random(&state) % 8; n > 0; n--) {
		uint32_t r = target_random(&state);
		size_t at = scan + target_random(&state) % length;

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
	return size;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	size_t size;

	for (unsigned i = 0; i < RANDOM_SEEDS; i++) {
		uint8_t *jpeg = jpeg_random(i, &size);

		if (size < 8000)
			emit(jpeg, size);
		free(jpeg);
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
