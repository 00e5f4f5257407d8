/*
 * jpeg_fixture.h - JPEG files of every structure, for tests of the pixel library.
 *
 * libjpeg encodes them from a function of position and component.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_JPEG_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_JPEG_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct fixture {
	const char *name;
	int width, height;
	J_COLOR_SPACE from, in; /* colour space of the pixels and of the file */
	int components;
	int sampling[8][2]; /* h, v per component; 0: libjpeg's default */
	bool is_progressive, is_arithmetic;
	bool is_per_component; /* one scan per component */
	unsigned restart_rows;
	int quality; /* 0: 90 */
	bool no_adobe;
	bool is_raw;         /* writes components directly: libjpeg cannot downsample to this */
	const uint8_t *app1; /* payload of the marker, or NULL */
	size_t app1_size;
	const uint8_t *icc;
	size_t icc_size;
};

/* Returns component c of the picture at (x, y): smooth, and different in every corner. */
int fixture_sample(const struct fixture *f, int x, int y, int c);

/* Returns the file, allocated with malloc(). */
uint8_t *fixture_make(const struct fixture *f, size_t *size);

/* Writes an APP1 payload with an orientation, of at most 64 bytes. Returns its size. */
size_t fixture_exif(uint8_t *to, unsigned orientation, bool is_big_endian);

/* Returns the offset of the frame header, or 0. */
size_t find_sof(const uint8_t *jpeg, size_t size);

/* Returns the offset of the first marker of this type, or 0. */
size_t find_marker(const uint8_t *jpeg, size_t size, unsigned marker);

/* Returns a file with the same coefficients and optimised Huffman tables, allocated with malloc().
 * Its scans are one of all components, or those of libjpeg's progression. restart: interval in
 * MCUs, or 0. Aborts on a warning. */
uint8_t *jpeg_rewritten(const uint8_t *data, size_t size, bool is_progressive, unsigned restart,
                        size_t *to_size);

/* Reads the header and all coefficients of a file into *in, which the caller must destroy. Returns
 * a hash of the coefficients. Aborts on a warning. */
uint64_t jpeg_coefficients(const uint8_t *data, size_t size, struct jpeg_decompress_struct *in);

#endif
