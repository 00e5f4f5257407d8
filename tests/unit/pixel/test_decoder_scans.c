/* test_decoder_scans.c - files whose scans cost more than their data, and scans with bytes left
 * over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/pool.h"
#include "pixel/libjpeg_private.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/pool_fixture.h"

#define SIDE 2048
#define FILE_MAX (1 << 20)

/* ---- scans without data ---- */

static uint8_t file[FILE_MAX];
static size_t length;

static void put(const char *bytes, size_t n)
{
	assert_true(length + n <= FILE_MAX);
	memcpy(file + length, bytes, n);
	length += n;
}

#define PUT(s) put(s, sizeof(s) - 1)

/* Begins a progressive grey file of SIDE x SIDE, whose AC code 0 is an end-of-band run of 2^14
 * blocks and 14 bits more. */
static void begin_file(void)
{
	length = 0;
	PUT("\xff\xd8\xff\xdb\0\x43\0");
	for (unsigned i = 0; i < 64; i++)
		PUT("\1");
	PUT("\xff\xc2\0\x0b\x08\x08\0\x08\0\1\1\x11\0");
	PUT("\xff\xc4\0\x14\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0");
	PUT("\xff\xc4\0\x14\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

static void put_scan_header(unsigned first, unsigned last, unsigned high_low)
{
	const char header[] = { (char)0xff, (char)0xda, 0,           8,          1,
		                1,          0,          (char)first, (char)last, (char)high_low };

	put(header, sizeof header);
}

/* A DC scan of zeros: one bit for a block. */
static void put_dc(void)
{
	put_scan_header(0, 0, 0);
	for (unsigned i = 0; i < SIDE / 8 * SIDE / 8 / 8; i++)
		PUT("\0");
}

/* An AC scan of end-of-band runs: four of 2^14 blocks, each a 0 and 14 zeros. */
static void put_empty(unsigned first, unsigned last, unsigned high_low)
{
	static_assert(SIDE / 8 * SIDE / 8 == 4 << 14, "four runs");
	put_scan_header(first, last, high_low);
	PUT("\0\0\0\0\0\0\0\x0f");
}

static void decode_file(bool stop_on_loss)
{
	PUT("\xff\xd9");
	picture_unref(decode_to(&decoder, file, length, SIDE, SIDE, 100, stop_on_loss));
}

static void assert_too_much_work(unsigned scans_max)
{
	assert_int_equal(decoder.fault, DECODER_TOO_MUCH_WORK);
	assert_non_null(strstr(decoder.fault_text, "scans visit"));
	assert_in_range(decoder.in.input_scan_number, 2, scans_max);
}

static void repeated_first_scans_are_refused(void **state)
{
	(void)state;
	begin_file();
	put_dc();
	for (unsigned i = 0; i < 98; i++)
		put_empty(1, 63, 0);
	decode_file(true);
	/* The DC scan's data pay for four visits. */
	assert_too_much_work(14);
}

/* No scan repeats another one. */
static void many_legal_scans_are_refused(void **state)
{
	(void)state;
	begin_file();
	put_dc();
	for (unsigned k = 1; k < 64; k++)
		put_empty(k, k, 0);
	decode_file(true);
	assert_too_much_work(14);
	begin_file();
	put_dc();
	put_empty(1, 63, 13);
	for (unsigned low = 13; low > 0; low--)
		put_empty(1, 63, low << 4 | (low - 1));
	decode_file(true);
	assert_too_much_work(14);
}

static void repeated_refinements_lose_pixels(void **state)
{
	(void)state;
	begin_file();
	put_dc();
	put_empty(1, 63, 1);
	put_empty(1, 63, 0x10);
	put_empty(1, 63, 0x10);
	decode_file(true);
	assert_int_equal(decoder.fault, DECODER_DAMAGED);
	assert_non_null(strstr(decoder.fault_text, "progression"));
	/* With damaged = accept the work is bounded all the same. */
	begin_file();
	for (unsigned i = 0; i < 99; i++)
		put_empty(1, 63, 0x10);
	decode_file(false);
	assert_too_much_work(10);
}

/* AC before DC is out of order, but nothing is lost. */
static void ac_before_dc_is_accepted(void **state)
{
	(void)state;
	begin_file();
	put_empty(1, 63, 0);
	put_dc();
	PUT("\xff\xd9");
	struct picture *p = decode_to(&decoder, file, length, SIDE, SIDE, 100, true);

	assert_non_null(p);
	picture_unref(p);
	begin_file();
	put_empty(1, 63, 0);
	decode_file(true);
	assert_int_equal(decoder.fault, DECODER_DAMAGED);
	assert_non_null(strstr(decoder.fault_text, "a component has no data"));
}

static void a_file_with_fewer_bits_than_blocks_is_cut(void **state)
{
	(void)state;
	begin_file();
	put_empty(1, 63, 0);
	assert_int_equal(decoder_open(&decoder, file, length), DECODER_MORE);
	assert_true(decoder_is_cut(&decoder));
	decoder_close(&decoder);
	begin_file();
	put_dc();
	assert_int_equal(decoder_open(&decoder, file, length), DECODER_MORE);
	assert_false(decoder_is_cut(&decoder));
	decoder_close(&decoder);
}

static void data_pay_for_scans(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTURE_COUNT; i++) {
		size_t size;
		uint8_t *jpeg = fixture_make(&structures[i], &size);

		if (!structures[i].is_arithmetic) {
			assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
			assert_false(decoder_is_cut(&decoder));
			decoder_close(&decoder);
		}
		free(jpeg);
	}
}

/* ---- bytes left over ---- */

/* Decodes the structure with n bytes put in before the marker `at`. */
static bool is_lost(const char *name, unsigned marker, const char *bytes, size_t n)
{
	size_t size, at, header;
	uint8_t *jpeg = fixture_make(structure(name), &size), *bad = malloc(size + n);

	header = find_marker(jpeg, size, 0xda);
	at = marker == 0xd9 ? size - 2 : header + find_marker(jpeg + header, size - header, marker);
	memcpy(bad, jpeg, at);
	memcpy(bad + at, bytes, n);
	memcpy(bad + at + n, jpeg + at, size - at);
	struct picture *p =
		decode_to(&decoder, bad, size + n, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true);
	bool lost = !p;

	if (lost) {
		assert_int_equal(decoder.fault, DECODER_DAMAGED);
		assert_non_null(strstr(decoder.fault_text, "left over"));
	}
	picture_unref(p);
	free(bad);
	free(jpeg);
	return lost;
}

static void bytes_left_over_in_a_scan_are_loss(void **state)
{
	static const struct {
		const char *name;
		unsigned marker;
	} places[] = { { "4:2:0", 0xd9 },
		       { "restart markers", 0xd9 },
		       { "restart markers", 0xd1 },
		       { "grey", 0xd9 },
		       { "progressive 4:2:0", 0xd9 },
		       { "progressive 4:2:0", 0xc4 },
		       { "a scan per component", 0xda } };
	char rest[100], zeros[100] = { 0 };

	(void)state;
	memset(rest, 'x', sizeof rest);
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		assert_true(is_lost(places[i].name, places[i].marker, rest, sizeof rest));
		assert_true(is_lost(places[i].name, places[i].marker, rest, 48));
		assert_false(is_lost(places[i].name, places[i].marker, rest, 20));
		assert_false(is_lost(places[i].name, places[i].marker, zeros, sizeof zeros));
	}
}

/* Without an EOI, the bytes that follow are not the scan's. */
static void bytes_instead_of_an_eoi_are_harmless(void **state)
{
	static const char *const which[] = { "4:2:0", "grey", "progressive 4:2:0" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		size_t size;
		uint8_t *jpeg = fixture_make(structure(which[i]), &size);
		uint8_t *longer = malloc(size + 500);

		memcpy(longer, jpeg, size - 2);
		memset(longer + size - 2, 'x', 500);
		struct picture *p = decode_to(&decoder, longer, size + 498, STRUCTURE_WIDTH,
		                              STRUCTURE_HEIGHT, 100, true);

		if (!p)
			fail_msg("%s: %s", which[i], decoder.fault_text);
		picture_unref(p);
		free(longer);
		free(jpeg);
	}
}

/* ---- range ---- */

/* Decodes the structure with DC coefficients of the first table multiplied by tenths / 10. */
static bool is_out_of_range(const char *name, unsigned tenths)
{
	size_t size, at;
	uint8_t *jpeg = fixture_make(structure(name), &size);

	at = find_marker(jpeg, size, 0xdb) + 5; /* the step of the DC coefficient */
	jpeg[at] = (uint8_t)((jpeg[at] * tenths + 9) / 10);
	struct picture *p =
		decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true);
	bool is_refused = !p;

	if (is_refused)
		assert_non_null(strstr(decoder.fault_text, "DC coefficient"));
	picture_unref(p);
	free(jpeg);
	return is_refused;
}

static void dc_coefficients_out_of_range_are_loss(void **state)
{
	static const char *const which[] = { "4:2:0", "4:4:4", "grey", "restart markers" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		assert_false(is_out_of_range(which[i], 10));
		assert_int_equal(is_out_of_range(which[i], 100), libjpeg_private_is_usable());
	}
	/* Buffered files are not checked. */
	assert_false(is_out_of_range("progressive 4:2:0", 100));
}

/* ---- memory ---- */

static void coefficients_count_with_their_size_class(void **state)
{
	/* With 1448 the masks of entropy_progressive.c need a little more than a size class. */
	static const int sides[] = { 210, 270, 330, 390, 450, 510, 570, 1448 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sides); i++) {
		struct fixture f = *structure("progressive 4:4:4");
		uint64_t before, used, kept;
		size_t size;
		uint8_t *jpeg;

		f.width = f.height = sides[i];
		jpeg = fixture_make(&f, &size);
		pool_forget(); /* a larger free buffer would serve */
		pool_usage(&before, &kept);
		assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
		decoder_choose(&decoder, 16, 16, 16, 16);
		assert_int_equal(decoder_start(&decoder, 100, true), DECODER_MORE);
		pool_usage(&used, &kept);
		/* The planes take at most a 64th of the coefficients, which is in the 256 KB of
		 * libjpeg, whose own memory is not the pool's. */
		assert_in_range(used - before, 1, decoder_working_bytes(&decoder));
		decoder_close(&decoder);
		free(jpeg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeated_first_scans_are_refused),
		cmocka_unit_test(many_legal_scans_are_refused),
		cmocka_unit_test(repeated_refinements_lose_pixels),
		cmocka_unit_test(ac_before_dc_is_accepted),
		cmocka_unit_test(a_file_with_fewer_bits_than_blocks_is_cut),
		cmocka_unit_test(data_pay_for_scans),
		cmocka_unit_test(bytes_left_over_in_a_scan_are_loss),
		cmocka_unit_test(bytes_instead_of_an_eoi_are_harmless),
		cmocka_unit_test(dc_coefficients_out_of_range_are_loss),
		cmocka_unit_test(coefficients_count_with_their_size_class),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
