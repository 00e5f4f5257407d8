/*
 * jpeg_mutator.h - JPEG files of random structure, and changes that keep the structure.
 *
 * Random bits in a JPEG rarely get beyond its header. One thread.
 */
#ifndef DARKROOM_TESTS_FUZZ_JPEG_MUTATOR_H
#define DARKROOM_TESTS_FUZZ_JPEG_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* Makes a small file: sampling factors from 1 to 4, colour space, scans, restart markers, EXIF and
 * ICC profile depend on the seed. Returns it, allocated with malloc(). */
uint8_t *jpeg_random(unsigned seed, size_t *size);

/* Changes the file data[0..size) in place. Returns the new size, at most size_max. */
size_t jpeg_mutate(uint8_t *data, size_t size, size_t size_max, unsigned seed);

#endif
