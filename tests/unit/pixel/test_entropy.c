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
#include "support/jpeg_structures.h"
#include "support/picture_fixture.h"

/* ---- generated files ---- */

enum tables { STANDARD = 0, OPTIMIZED, FLAT, UPSIDE_DOWN, TABLES_COUNT };

static uint32_t random_state;

static unsigned pick(unsigned count)
{
	random_state = random_state * 1103515245 + 12345;
	return (random_state >> 8) % count;
}

/* FLAT: all codes have 9 bits. UPSIDE_DOWN: the more usual a symbol is, the longer is its code. */
static void set_table(j_compress_ptr c, JHUFF_TBL **to, bool is_dc, enum tables tables)
{
	JHUFF_TBL *t = jpeg_alloc_huff_table((j_common_ptr)c);
	unsigned n = 0, last = is_dc ? 11 : 0xff, count;

	memset(t, 0, sizeof *t);
	for (unsigned i = 0; i <= last; i++) {
		unsigned symbol = tables == FLAT ? i : last - i;

		if (is_dc || (symbol & 15) <= 10)
			t->huffval[n++] = (UINT8)symbol;
	}
	count = n;
	for (unsigned length = 1; length < 8 && tables == UPSIDE_DOWN; length++, count--)
		t->bits[length] = 1;
	t->bits[tables == FLAT ? 9 : 16] = (UINT8)count;
	*to = t;
}

static void set_tables(j_compress_ptr c, enum tables tables)
{
	c->optimize_coding = tables == OPTIMIZED;
	for (int i = 0; i < 2 && tables >= FLAT; i++) {
		set_table(c, &c->dc_huff_tbl_ptrs[i], true, tables);
		set_table(c, &c->ac_huff_tbl_ptrs[i], false, tables);
	}
}

/* Sets the samples of a row: flat, smooth, noise, or the extremes. */
static void fill_row(uint8_t *row, int n, int y, unsigned content)
{
	for (int x = 0; x < n; x++) {
		unsigned extreme = pick(2) * 255;

		row[x] = content == 0   ? 77
		         : content == 1 ? (uint8_t)(x * 3 + y * 2)
		         : content == 2 ? (uint8_t)(x * 3 + y * 2 + (int)pick(40))
		                        : (uint8_t)extreme;
	}
}

struct file {
	int width, height, quality;
	int components; /* 1, 3 or 4 */
	int sampling;   /* h * 16 + v of the first component */
	enum tables tables;
	unsigned restart, content;
};

static uint8_t *file_make(const struct file *f, unsigned long *size)
{
	static const J_COLOR_SPACE spaces[] = { 0, JCS_GRAYSCALE, 0, JCS_YCbCr, JCS_CMYK };
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	uint8_t row[70 * 4], *jpeg = NULL;
	JSAMPROW rows[] = { row };

	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &jpeg, size);
	c.image_width = (JDIMENSION)f->width;
	c.image_height = (JDIMENSION)f->height;
	c.input_components = f->components;
	c.in_color_space = spaces[f->components];
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, f->quality, TRUE);
	for (int i = 0; i < f->components; i++)
		c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
	c.comp_info[0].h_samp_factor = f->sampling / 16;
	c.comp_info[0].v_samp_factor = f->sampling % 16;
	c.restart_interval = f->restart;
	set_tables(&c, f->tables);
	jpeg_start_compress(&c, TRUE);
	for (int y = 0; y < f->height; y++) {
		fill_row(row, f->width * f->components, y, f->content);
		jpeg_write_scanlines(&c, rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	return jpeg;
}

/* Returns a copy of exact size, so that sanitizers notice reads beyond it. */
static uint8_t *exact(uint8_t *jpeg, unsigned long size)
{
	uint8_t *copy = malloc(size);

	memcpy(copy, jpeg, size);
	free(jpeg);
	return copy;
}

static void all_coefficients_are_those_of_libjpeg(void **state)
{
	static const int samplings[] = { 0x11, 0x22, 0x21, 0x12, 0x41, 0x14, 0x31, 0x42 };
	static const int components[] = { 3, 1, 3, 4 };
	static const unsigned restarts[] = { 0, 0, 1, 2, 7 };
	unsigned blocks = 0;

	(void)state;
	if (!LIBJPEG_HAS_PRIVATE)
		skip();
	random_state = 20261122;
	for (int i = 0; i < 1400; i++) {
		struct file f = { .width = 1 + i % 70,
			          .height = 1 + (int)pick(70),
			          .quality = 1 + i % 100,
			          .components = components[pick(COUNT_OF(components))],
			          .sampling = samplings[pick(COUNT_OF(samplings))],
			          .tables = pick(TABLES_COUNT),
			          .restart = restarts[pick(COUNT_OF(restarts))],
			          .content = pick(4) };
		unsigned long size;
		uint8_t *jpeg;

		if (f.components == 4 && f.sampling == 0x42)
			f.sampling = 0x41; /* an MCU has at most 10 blocks */
		jpeg = file_make(&f, &size);
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

static void every_structure_of_one_scan_is_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTURE_COUNT; i++) {
		const struct fixture *f = &structures[i];
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);

		assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
		assert_int_equal(decoder.has_entropy, LIBJPEG_HAS_PRIVATE && !decoder.is_buffered);
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
	const struct file f = { 16, 8, 50, 1, 0x11, STANDARD, 0, 0 };
	unsigned long n;
	uint8_t *jpeg = file_make(&f, &n), *file = malloc(n + 2 * strlen(bits));
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
	assert_string_equal(decoder.lost_text, text);
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
		cmocka_unit_test(every_structure_of_one_scan_is_decoded),
		cmocka_unit_test(bad_symbols_end_the_decoding),
		cmocka_unit_test(damage_is_loss_and_libjpeg_makes_the_picture),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
