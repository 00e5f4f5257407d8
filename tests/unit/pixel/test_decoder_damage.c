/* test_decoder_damage.c - truncated, damaged and hostile files, and common mistakes of cameras. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "pixel/encoder.h"
#include "pixel/metadata.h"
#include "pixel/picture_job.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/one_call.h"

/* A file cut anywhere is rejected or marked as damaged, unless only the EOI is missing. */
static void truncated_files_are_damaged(void **state)
{
	static const char *const which[] = {
		"4:2:0",           "4:4:4", "progressive 4:2:0", "a scan per component",
		"restart markers", "grey",  "grey progressive",  "CMYK",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		const struct fixture *f = structure(which[i]);
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);
		struct picture *p;

		for (size_t cut = 3; cut<size; cut += cut> size - 40 ? 1 : 13) {
			uint8_t *part = malloc(cut);
			bool is_whole = cut >= size - 2;

			memcpy(part, jpeg, cut);
			p = decode_to(&decoder, part, cut, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100,
			              true);
			if (is_whole && !p)
				fail_msg("%s: only the EOI is missing: %s", f->name,
				         decoder.fault_text);
			if (!is_whole && p && cut < size - 4)
				fail_msg("%s: cut at %zu of %zu was not noticed", f->name, cut,
				         size);
			if (!p)
				assert_int_equal(decoder.fault, DECODER_DAMAGED);
			picture_unref(p);
			p = decode_to(&decoder, part, cut, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100,
			              false);
			if (p && cut < size - 4)
				assert_true(decoder.has_lost);
			if (!p)
				assert_int_equal(decoder.fault, DECODER_DAMAGED);
			picture_unref(p);
			free(part);
		}
		free(jpeg);
	}
}

/* Returns a copy with n bytes inserted at offset `at`, and adds n to *size. */
static uint8_t *spliced(const uint8_t *jpeg, size_t *size, size_t at, const char *bytes, size_t n)
{
	uint8_t *copy = malloc(*size + n);

	memcpy(copy, jpeg, at);
	memcpy(copy + at, bytes, n);
	memcpy(copy + at + n, jpeg + at, *size - at);
	*size += n;
	return copy;
}

static void common_mistakes_of_cameras_are_accepted(void **state)
{
	static const char *const which[] = { "4:2:0", "progressive 4:2:0", "restart markers" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		const struct fixture *f = structure(which[i]);
		size_t size, n;
		uint8_t *jpeg = fixture_make(f, &size), *bad;
		struct picture *p;
		static const char rubbish[] = "eighteen extraneous";

		/* before a marker, after EOI, directly before EOI */
		const size_t places[] = { find_marker(jpeg, size, 0xdb), size, size - 2 };

		for (size_t k = 0; k < COUNT_OF(places); k++) {
			n = size;
			bad = spliced(jpeg, &n, places[k], rubbish, sizeof(rubbish) - 1);
			p = decode_to(&decoder, bad, n, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100,
			              true);
			if (!p)
				fail_msg("%s, place %zu: %s", f->name, k, decoder.fault_text);
			assert_false(decoder.has_lost);
			picture_unref(p);
			free(bad);
		}
		/* a sequential scan with the parameters of a progressive one, written by Samsung */
		if (!f->is_progressive) {
			size_t sos = find_marker(jpeg, size, 0xda);

			jpeg[sos + 11] = 0;
			jpeg[sos + 12] = 0;
			p = decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100,
			              true);
			assert_non_null(p);
			picture_unref(p);
		}
		free(jpeg);
	}
}

static void lost_pixels_are_damage(void **state)
{
	size_t size, n;
	uint8_t *jpeg = fixture_make(&structures[0], &size), *bad;
	struct picture *p;

	(void)state;
	/* a marker in the middle of the scan */
	n = size;
	bad = spliced(jpeg, &n, size - size / 4, "\xff\xd9", 2);
	assert_fault(bad, n, DECODER_DAMAGED, "Corrupt JPEG data");
	p = decode_to(&decoder, bad, n, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, false);
	assert_non_null(p);
	assert_true(decoder.has_lost);
	picture_unref(p);
	free(bad);
	free(jpeg);
	/* a restart marker out of order */
	jpeg = fixture_make(structure("restart markers"), &size);
	jpeg[find_marker(jpeg, size, 0xd1) + 1] = 0xd5;
	p = decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true);
	assert_null(p);
	assert_int_equal(decoder.fault, DECODER_DAMAGED);
	free(jpeg);
	/* the last scan, with all data of a component, is missing */
	jpeg = fixture_make(structure("a scan per component"), &size);
	n = find_marker(jpeg, size, 0xda);
	n += 2 + find_marker(jpeg + n, size - n, 0xda);
	n = n - 2;
	n += find_marker(jpeg + n, size - n, 0xda);
	jpeg[n + 1] = 0xd9;
	assert_fault(jpeg, n + 2, DECODER_DAMAGED, "a component has no data");
	free(jpeg);
}

/* ---- hostile files ---- */

/* Decodes, scales, blurs and encodes the file, or asserts a fault. */
static void run_everything(const uint8_t *jpeg, size_t size, bool stop)
{
	struct metadata m;
	struct picture *root = decode_to(&decoder, jpeg, size, 40, 40, 20, stop), *p, *blurred;
	uint8_t *data;
	size_t n;
	int w, h;

	if (!root) {
		assert_true(decoder.fault && decoder.fault_text[0]);
		return;
	}
	metadata_read(&m, jpeg, size);
	w = root->width < 40 ? root->width : 40;
	h = root->height < 40 ? root->height : 40;
	p = picture_scale(&resampler, root, w, h, m.orientation);
	blurred = picture_blur(&resampler, p, 2.5);
	assert_int_equal(
		encoder_encode(&(struct encoding){ .quality = 100 }, blurred, NULL, 0, &data, &n),
		0);
	pool_put(data);
	picture_unref(blurred);
	picture_unref(p);
	picture_unref(root);
}

static void mutated_files_are_harmless(void **state)
{
	const uint64_t end = clock_ns() + 2 * NS_PER_S;
	unsigned seed = 20261121, count;
	uint8_t *jpeg[COUNT_OF(structures)];
	size_t size[COUNT_OF(structures)];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++)
		jpeg[i] = fixture_make(&structures[i], &size[i]);
	for (count = 0; count < 6000 && clock_ns() < end; count++) {
		size_t i = count % COUNT_OF(structures), n = size[i];
		uint8_t *copy = malloc(n);
		size_t sof;

		memcpy(copy, jpeg[i], n);
		for (unsigned k = 0; k <= count % 5; k++) {
			unsigned value;

			seed = seed * 1103515245U + 12345U;
			value = seed >> 24;
			seed = seed * 1103515245U + 12345U;
			/* half of the mutations are in the headers */
			copy[(seed >> 4) % (k % 2 ? n : n < 650 ? n : 650)] = (uint8_t)value;
		}
		/* Huge sizes would take too long. */
		sof = find_sof(copy, n);
		if (sof)
			copy[sof + 5] &= 1, copy[sof + 7] &= 1;
		seed = seed * 1103515245U + 12345U;
		if (count % 7 == 0)
			n = (seed >> 8) % n + 1;
		run_everything(copy, n, count % 2);
		free(copy);
		/* A sound file after the bad ones is decoded. */
		if (count % 50 == 0) {
			struct picture *p = decode_to(&decoder, jpeg[i], size[i], STRUCTURE_WIDTH,
			                              STRUCTURE_HEIGHT, 100, true);

			assert_non_null(p);
			picture_unref(p);
		}
	}
	print_message("%u mutated files\n", count);
	for (size_t i = 0; i < COUNT_OF(structures); i++)
		free(jpeg[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncated_files_are_damaged),
		cmocka_unit_test(common_mistakes_of_cameras_are_accepted),
		cmocka_unit_test(lost_pixels_are_damage),
		cmocka_unit_test(mutated_files_are_harmless),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
