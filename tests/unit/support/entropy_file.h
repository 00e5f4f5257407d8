/*
 * entropy_file.h - small baseline files of random structure, for tests of entropy.c.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_ENTROPY_FILE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_ENTROPY_FILE_H

#include <stddef.h>
#include <stdint.h>

#define ENTROPY_FILE_SIDE_MAX 70

/* The Huffman tables. FLAT: all codes have 9 bits. UPSIDE_DOWN: the more usual a symbol is, the
 * longer is its code. */
enum entropy_tables {
	ENTROPY_STANDARD = 0,
	ENTROPY_OPTIMIZED,
	ENTROPY_FLAT,
	ENTROPY_UPSIDE_DOWN,
	ENTROPY_TABLES_COUNT
};

struct entropy_file {
	int width, height; /* at most ENTROPY_FILE_SIDE_MAX */
	int quality;
	int components; /* 1, 3 or 4 */
	int sampling;   /* h * 16 + v of the first component; an MCU has at most 10 blocks */
	enum entropy_tables tables;
	unsigned restart; /* interval in MCUs, or 0 */
	unsigned content; /* 0: flat, 1: smooth, 2: with noise, 3: black and white at random */
};

/* Returns the next number below `count` of a generator. */
unsigned entropy_pick(uint32_t *state, unsigned count);

/* Returns a file of random structure, with sides of at most side_max pixels. */
struct entropy_file entropy_file_random(uint32_t *state, int side_max);

/* Returns the JPEG, allocated with malloc(). `state` makes its content. */
uint8_t *entropy_file_make(const struct entropy_file *f, uint32_t *state, size_t *size);

#endif
