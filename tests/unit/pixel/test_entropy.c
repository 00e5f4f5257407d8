/* test_entropy.c - the own Huffman decoder: the coefficients of libjpeg, and damage that it sees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "pixel/entropy.h"
#include "pixel/libjpeg_private.h"
#include "support/codec_fixture.h"
#include "support/entropy_compare.h"
#include "support/entropy_file.h"
#include "support/jpeg_structures.h"
#include "support/picture_fixture.h"

/* ---- generated files ---- */

/* Returns a copy of exact size, so that sanitizers notice reads beyond it. */
static uint8_t *exact(uint8_t *jpeg, size_t size)
{
	uint8_t *copy = malloc(size);

	memcpy(copy, jpeg, size);
	free(jpeg);
	return copy;
}

static void all_coefficients_are_those_of_libjpeg(void **state)
{
	uint32_t random = 20261122;
	unsigned blocks = 0;

	(void)state;
	if (!LIBJPEG_HAS_PRIVATE)
		skip();
	for (int i = 0; i < 1400; i++) {
		struct entropy_file f = entropy_file_random(&random, ENTROPY_FILE_SIDE_MAX);
		size_t size;

		f.width = 1 + i % ENTROPY_FILE_SIDE_MAX;
		f.quality = 1 + i % 100;
		uint8_t *jpeg = entropy_file_make(&f, &random, &size);

		jpeg = exact(jpeg, size);
		struct entropy_comparison result = entropy_compare(jpeg, size, UINT32_MAX);

		if (!result.is_decoded || result.end || result.bytes_left != 2)
			fail_msg("%d: end %d, %zu bytes left", i, result.end, result.bytes_left);
		blocks += result.blocks;
		free(jpeg);
	}
	print_message("%u blocks\n", blocks);
}

static void large_files_cross_the_window(void **state)
{
	const struct fixture f = { .width = 1500,
		                   .height = 900,
		                   .from = JCS_YCbCr,
		                   .in = JCS_YCbCr,
		                   .components = 3,
		                   .quality = 100 };
	size_t size;
	uint8_t *jpeg = fixture_make(&f, &size);

	jpeg = exact(jpeg, size);
	struct entropy_comparison result = entropy_compare(jpeg, size, UINT32_MAX);

	(void)state;
	if (!LIBJPEG_HAS_PRIVATE)
		skip();
	assert_true(result.is_decoded && size > 5 * 8192);
	assert_int_equal(result.end, ENTROPY_GOOD);
	free(jpeg);
}

static void every_progressive_file_and_single_scan_is_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTURE_COUNT; i++) {
		const struct fixture *f = &structures[i];
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);

		assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
		assert_int_equal(decoder.has_entropy,
		                 LIBJPEG_HAS_PRIVATE &&
		                         (f->is_progressive || !decoder.is_buffered));
		decoder_use_libjpeg(&decoder);
		assert_false(decoder.has_entropy);
		decoder_close(&decoder);
		free(jpeg);
	}
}

/* ---- damage ---- */

/* A grey picture of 16 x 8 with standard tables, and these bits as its scan. */
static uint8_t *file_of_bits(const char *bits, size_t *size)
{
	const struct entropy_file f = { 16, 8, 50, 1, 0x11, ENTROPY_STANDARD, 0, 0 };
	uint32_t random = 1;
	size_t n;
	uint8_t *jpeg = entropy_file_make(&f, &random, &n), *file = malloc(n + 2 * strlen(bits));
	size_t at = find_marker(jpeg, n, 0xda) + 10;
	unsigned count = 0;

	memcpy(file, jpeg, at);
	file[at] = 0;
	for (; *bits; bits++) {
		if (*bits == ' ')
			continue;
		file[at] = (uint8_t)(file[at] << 1 | (*bits == '1'));
		if (++count % 8)
			continue;
		if (file[at] == 0xff)
			file[++at] = 0;
		file[++at] = 0;
	}
	for (; count % 8; count++)
		file[at] = (uint8_t)(file[at] << 1);
	file[at + 1] = 0xff;
	file[at + 2] = 0xd9;
	*size = at + 3;
	free(jpeg);
	return file;
}

#define EMPTY "00 1010 "
#define ZEROS_16 "11111111001 "

static void bad_symbols_end_the_decoding(void **state)
{
	static const struct {
		const char *bits;
		enum entropy_end end;
	} scans[] = {
		{ EMPTY EMPTY, ENTROPY_GOOD },
		/* 14 and 15 zeros and a coefficient: place 63 is the last */
		{ EMPTY "00 " ZEROS_16 ZEROS_16 ZEROS_16 "1111111111101011 1", ENTROPY_GOOD },
		{ EMPTY "00 " ZEROS_16 ZEROS_16 ZEROS_16 "1111111111110101 1", ENTROPY_BAD_CODE },
		{ EMPTY "00 " ZEROS_16 ZEROS_16 ZEROS_16 ZEROS_16, ENTROPY_BAD_CODE },
		{ EMPTY "00 1111111111111111 1010", ENTROPY_BAD_CODE },
		{ EMPTY "111111111 1010", ENTROPY_BAD_CODE },
		{ EMPTY "00", ENTROPY_SHORT },
		{ EMPTY, ENTROPY_SHORT },
	};

	(void)state;
	if (!LIBJPEG_HAS_PRIVATE)
		skip();
	for (size_t i = 0; i < COUNT_OF(scans); i++) {
		size_t size;
		uint8_t *jpeg = file_of_bits(scans[i].bits, &size);
		struct entropy_comparison result = entropy_compare(jpeg, size, 100);

		assert_true(result.is_decoded);
		if (result.end != scans[i].end)
			fail_msg("%s: end %d, expected %d", scans[i].bits, result.end,
			         scans[i].end);
		free(jpeg);
	}
}

/* The picture of a damaged file is that of libjpeg alone. */
static void assert_libjpegs_picture(const uint8_t *jpeg, size_t size, const char *text)
{
	struct picture *own, *theirs = NULL;
	enum decoder_result result;

	own = decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 1, false);
	assert_non_null(own);
	assert_true(decoder.has_lost);
	assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
	decoder_use_libjpeg(&decoder);
	decoder_choose(&decoder, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, (STRUCTURE_WIDTH + 1) / 2,
	               (STRUCTURE_HEIGHT + 1) / 2);
	result = decoder_start(&decoder, 1, false);
	while (result == DECODER_MORE)
		result = decoder_advance(&decoder, 1);
	assert_int_equal(result, DECODER_DONE);
	theirs = decoder_take(&decoder);
	decoder_close(&decoder);
	assert_true(is_same_picture(own, theirs));
	picture_unref(own);
	picture_unref(theirs);
	assert_fault(jpeg, size, DECODER_DAMAGED, text);
}

static void damage_is_loss_and_libjpeg_makes_the_picture(void **state)
{
	size_t size, at;
	uint8_t *jpeg = fixture_make(structure("restart markers"), &size);
	size_t first = find_marker(jpeg, size, 0xd0), second = find_marker(jpeg, size, 0xd1);

	(void)state;
	if (!LIBJPEG_HAS_PRIVATE)
		skip();
	jpeg[second + 1] = 0xd5;
	assert_libjpegs_picture(jpeg, size, "Corrupt JPEG data: a restart marker is out of order");
	jpeg[second + 1] = 0xd1;
	at = (first + second) / 2;
	memcpy(jpeg + at, "\xff\0\xff\0\xff", 6);
	assert_libjpegs_picture(jpeg, size, "Corrupt JPEG data: bad Huffman code");
	/* libjpeg leaves coefficients in the block that are not in the file */
	memcpy(jpeg + at, "\xff\xff\0\0\0", 6);
	assert_libjpegs_picture(jpeg, size, "Corrupt JPEG data: premature end of data segment");
	memcpy(jpeg + at, "\xff\xd9", 2);
	assert_libjpegs_picture(jpeg, size, "Corrupt JPEG data: premature end of data segment");
	assert_libjpegs_picture(jpeg, at, "Premature end of JPEG file");
	free(jpeg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_coefficients_are_those_of_libjpeg),
		cmocka_unit_test(large_files_cross_the_window),
		cmocka_unit_test(every_progressive_file_and_single_scan_is_decoded),
		cmocka_unit_test(bad_symbols_end_the_decoding),
		cmocka_unit_test(damage_is_loss_and_libjpeg_makes_the_picture),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
