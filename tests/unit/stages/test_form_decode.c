/* test_form_decode.c - the names of formats that are not accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "form_decode.c"

static const struct {
	const char *bytes;
	size_t size;
	const char *name;
} formats[] = {
	{ "GIF8", 4, "GIF" },
	{ "....ftypheic", 12, "HEIC" },
	{ "....ftypmif1", 12, "HEIF" },
	{ "....ftypheix", 12, "HEIC" },
	{ "II*", 3, "TIFF or raw" },
	{ "MM", 2, "TIFF or raw" },
	{ "BM", 2, "BMP" },
	{ "%PDF", 4, "PDF" },
	{ "PK\x03\x04", 4, "ZIP" },
	{ "\xff\x0a", 2, "JPEG XL" },
	{ "<svg", 4, "SVG" },
	{ "<?xml", 5, "XML" },
};

/* Copies the bytes to memory of their size, so that a sanitizer sees reads beyond it. */
static const char *name_of(const char *bytes, size_t size)
{
	uint8_t *copy = malloc(size + !size);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	const char *name = format_name(copy, size);

	free(copy);
	return name;
}

static void formats_are_known_by_their_first_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		assert_string_equal(name_of(formats[i].bytes, formats[i].size), formats[i].name);
		for (size_t size = 0; size < formats[i].size; size++)
			assert_null(name_of(formats[i].bytes, size));
	}
	assert_null(name_of("....WEBP....", 12));
}

static void the_problem_names_what_was_found(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *expected;
	} cases[] = {
		{ "", 0, "the body is empty; expected a JPEG" },
		{ "GIF89a", 6, "the body looks like GIF; expected a JPEG" },
		{ "abc", 3, "the body is no picture, or of an unknown kind; expected a JPEG" },
		{ "ab", 2, "the body is no picture, or of an unknown kind; expected a JPEG" },
		{ "\x89PNG\r\n\x1a\n", 8,
		  "the body is a PNG, which is not accepted here (input.formats); expected a JPEG" },
		{ "....ftypavif", 12,
		  "the body is an AVIF, which is not accepted here (input.formats); expected a JPEG" },
		{ "RIFF....WEBP", 12,
		  "the body is a WebP, which is not accepted here (input.formats); expected a JPEG" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct problem p;

		problem_not_accepted(&p, "body", (const uint8_t *)cases[i].bytes, cases[i].size);
		assert_int_equal(p.status, 415);
		assert_string_equal(p.detail, cases[i].expected);
	}
}

static void a_jpeg_begins_with_three_bytes(void **state)
{
	static const uint8_t jpeg[] = { 0xff, 0xd8, 0xff };

	(void)state;
	assert_true(is_accepted(jpeg, 3));
	assert_false(is_accepted(jpeg, 2));
	for (size_t i = 0; i < 3; i++) {
		uint8_t other[3];

		memcpy(other, jpeg, 3);
		other[i]--;
		assert_false(is_accepted(other, 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_are_known_by_their_first_bytes),
		cmocka_unit_test(the_problem_names_what_was_found),
		cmocka_unit_test(a_jpeg_begins_with_three_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
