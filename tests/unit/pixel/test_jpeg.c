/* test_jpeg.c - the decoder: every structure of JPEG, damage, limits, hostile files. */
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
#include "image/geometry.h"
#include "pixel/encoder.h"
#include "pixel/metadata.h"
#include "pixel/picture_job.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"

/* Brightness of the fixture's pixel when it is shown. */
static double luma_of(const struct fixture *f, int x, int y)
{
	double v[4], k;

	for (int c = 0; c < f->components; c++)
		v[c] = fixture_sample(f, x, y, c);
	if (f->components == 1 || f->in == JCS_YCbCr)
		return v[0];
	if (f->components == 3)
		return .299 * v[0] + .587 * v[1] + .114 * v[2];
	k = f->no_adobe ? 255 - v[3] : v[3];
	for (int c = 0; c < 3; c++)
		v[c] = (f->no_adobe ? 255 - v[c] : v[c]) * k / 255;
	return .299 * v[0] + .587 * v[1] + .114 * v[2];
}

static double luma_error(const struct fixture *f, const struct picture *p)
{
	double sum = 0;

	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++) {
			double e = p->plane[0].data[y * p->plane[0].stride + x] -
			           luma_of(f, x * f->width / p->width, y * f->height / p->height);

			sum += e * e;
		}
	return sum / p->width / p->height;
}

static void every_structure_is_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		const struct fixture *f = &structures[i];
		static const int sizes[][2] = { { W, H }, { 58, 41 }, { 20, 14 } };
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);

		for (size_t k = 0; k < COUNT_OF(sizes); k++) {
			struct picture *root = decode_to(&decoder, jpeg, size, sizes[k][0],
			                                 sizes[k][1], 100, true),
				       *p;

			if (!root)
				fail_msg("%s: %s", f->name, decoder.fault_text);
			assert_true(root->plane[0].width >= sizes[k][0] || f->components > 1);
			p = picture_scale(&resampler, root, sizes[k][0], sizes[k][1], 1);
			assert_non_null(p);
			assert_int_equal(p->plane_count, f->components == 1 ? 1 : 3);
			assert_int_equal(p->width, sizes[k][0]);
			assert_int_equal(p->height, sizes[k][1]);
			/* the fixture is sampled at pixels' corners, so reduced pictures are off by
			 * a slope */
			if (luma_error(f, p) > (k ? 80 : 12))
				fail_msg("%s at %d: error %g", f->name, sizes[k][0],
				         luma_error(f, p));
			picture_unref(root);
			picture_unref(p);
		}
		free(jpeg);
	}
}

/* The undocumented part of libjpeg that we rely on: 4:2:0 at half size must come with chroma at
 * half of that. */
static void components_get_the_sizes_that_were_chosen(void **state)
{
	struct fixture f = { .name = "hook",
		             .width = 640,
		             .height = 480,
		             .from = JCS_YCbCr,
		             .in = JCS_YCbCr,
		             .components = 3 };
	static const int chosen[][4] = { { 320, 240, 320, 160 },
		                         { 321, 200, 640, 320 },
		                         { 160, 120, 160, 80 },
		                         { 80, 60, 80, 40 } };

	(void)state;
	for (int s = 0; s < 2; s++) {
		uint8_t *jpeg;
		size_t size;

		f.is_progressive = s;
		jpeg = fixture_make(&f, &size);
		for (size_t i = 0; i < COUNT_OF(chosen); i++) {
			struct picture *p = decode_to(&decoder, jpeg, size, chosen[i][0],
			                              chosen[i][1], 100, true);

			assert_non_null(p);
			assert_int_equal(p->plane[0].width, chosen[i][2]);
			assert_int_equal(p->plane[1].width, chosen[i][3]);
			assert_int_equal(p->plane[2].width, chosen[i][3]);
			assert_true(luma_error(&f, p) < 60);
			picture_unref(p);
		}
		free(jpeg);
	}
}

/* Where the frame header is; 0 if there is none. */
static size_t find_sof(const uint8_t *jpeg, size_t size)
{
	for (size_t i = 2; i + 12 < size; i++)
		if (jpeg[i] == 0xff &&
		    (jpeg[i + 1] == 0xc0 || jpeg[i + 1] == 0xc1 || jpeg[i + 1] == 0xc2))
			return i;
	return 0;
}

static void assert_fault(const uint8_t *jpeg, size_t size, enum decoder_fault fault,
                         const char *text)
{
	assert_null(decode_to(&decoder, jpeg, size, W, H, 100, true));
	if (decoder.fault != fault || !strstr(decoder.fault_text, text))
		fail_msg("fault %d, %s; expected %d, %s", decoder.fault, decoder.fault_text, fault,
		         text);
}

static void the_unsupported_is_named(void **state)
{
	struct fixture f = structures[0];
	size_t size;
	uint8_t *jpeg, *sof;

	(void)state;
	f.is_arithmetic = true;
	jpeg = fixture_make(&f, &size);
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "arithmetic");
	assert_fault(jpeg, 100, DECODER_DAMAGED, "Premature end");
	free(jpeg);
	for (int n = 2; n <= 5; n += 3) {
		f = (struct fixture){ .name = "n",
			              .width = W,
			              .height = H,
			              .from = JCS_UNKNOWN,
			              .in = JCS_UNKNOWN,
			              .components = n,
			              .is_per_component = n > 4 };
		jpeg = fixture_make(&f, &size);
		assert_fault(jpeg, size, DECODER_UNSUPPORTED,
		             n == 2 ? "2 components" : "5 components");
		free(jpeg);
	}
	jpeg = fixture_make(&structures[0], &size);
	sof = jpeg + find_sof(jpeg, size);
	sof[4] = 12;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "12 bits");
	sof[4] = 8;
	sof[1] = 0xc3;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "lossless");
	sof[1] = 0xc5;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "hierarchical");
	sof[1] = 0xc0;
	sof[5] = sof[6] = 0;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "height of 0");
	sof[5] = sof[6] = 0xff;
	assert_fault(jpeg, size, DECODER_TOO_LARGE, "");
	sof[5] = 0;
	sof[6] = H;
	sof[11] = 0x44; /* 4x4 + 1 + 1 blocks in an MCU */
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "");
	sof[11] = 0x22;
	picture_unref(decode_to(&decoder, jpeg, size, W, H, 100, true));
	assert_int_equal(decoder.fault, 0);
	free(jpeg);
}

static void scans_are_limited(void **state)
{
	struct fixture f = structures[0];
	size_t size;
	uint8_t *jpeg;
	struct picture *p;

	(void)state;
	f.is_progressive = true; /* libjpeg's standard script has 10 scans */
	jpeg = fixture_make(&f, &size);
	assert_null(decode_to(&decoder, jpeg, size, W, H, 9, true));
	assert_int_equal(decoder.fault, DECODER_TOO_MANY_SCANS);
	p = decode_to(&decoder, jpeg, size, W, H, 10, true);
	assert_non_null(p);
	picture_unref(p);
	free(jpeg);
}

/* Cut anywhere: rejected, or accepted as damaged, unless only the EOI is missing. */
static void truncation_is_noticed(void **state)
{
	static const size_t which[] = { 0, 1, 18, 20, 21, 22, 25, 29 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		const struct fixture *f = &structures[which[i]];
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);
		struct picture *p;

		for (size_t cut = 3; cut<size; cut += cut> size - 40 ? 1 : 13) {
			uint8_t *part = malloc(cut);
			bool is_whole = cut >= size - 2;

			memcpy(part, jpeg, cut);
			p = decode_to(&decoder, part, cut, W, H, 100, true);
			if (is_whole && !p)
				fail_msg("%s: only the EOI is missing: %s", f->name,
				         decoder.fault_text);
			if (!is_whole && p && cut < size - 4)
				fail_msg("%s: cut at %zu of %zu was not noticed", f->name, cut,
				         size);
			if (!p)
				assert_int_equal(decoder.fault, DECODER_DAMAGED);
			picture_unref(p);
			p = decode_to(&decoder, part, cut, W, H, 100, false);
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

static uint8_t *spliced(const uint8_t *jpeg, size_t *size, size_t at, const char *bytes, size_t n)
{
	uint8_t *copy = malloc(*size + n);

	memcpy(copy, jpeg, at);
	memcpy(copy + at, bytes, n);
	memcpy(copy + at + n, jpeg + at, *size - at);
	*size += n;
	return copy;
}

static void what_cameras_do_wrong_is_accepted(void **state)
{
	static const size_t which[] = { 0, 18, 21 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		size_t size, n;
		uint8_t *jpeg = fixture_make(&structures[which[i]], &size), *bad;
		struct picture *p;
		static const char rubbish[] = "eighteen extraneous";

		/* before a marker; after EOI; in place of EOI's position, in front of it */
		const size_t places[] = { find_marker(jpeg, size, 0xdb), size, size - 2 };

		for (size_t k = 0; k < COUNT_OF(places); k++) {
			n = size;
			bad = spliced(jpeg, &n, places[k], rubbish, sizeof(rubbish) - 1);
			p = decode_to(&decoder, bad, n, W, H, 100, true);
			if (!p)
				fail_msg("%s, place %zu: %s", structures[which[i]].name, k,
				         decoder.fault_text);
			assert_false(decoder.has_lost);
			picture_unref(p);
			free(bad);
		}
		/* a sequential scan with the parameters of a progressive one, as Samsung writes
		 * them */
		if (which[i] != 18) {
			size_t sos = find_marker(jpeg, size, 0xda);

			jpeg[sos + 11] = 0;
			jpeg[sos + 12] = 0;
			p = decode_to(&decoder, jpeg, size, W, H, 100, true);
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
	p = decode_to(&decoder, bad, n, W, H, 100, false);
	assert_non_null(p);
	assert_true(decoder.has_lost);
	assert_non_null(strstr(decoder.lost_text, "Corrupt JPEG data"));
	picture_unref(p);
	free(bad);
	free(jpeg);
	/* a restart marker out of turn */
	jpeg = fixture_make(&structures[21], &size);
	jpeg[find_marker(jpeg, size, 0xd1) + 1] = 0xd5;
	p = decode_to(&decoder, jpeg, size, W, H, 100, true);
	assert_null(p);
	assert_int_equal(decoder.fault, DECODER_DAMAGED);
	free(jpeg);
	/* a component that never comes: the last of the scans is left out */
	jpeg = fixture_make(&structures[20], &size);
	n = find_marker(jpeg, size, 0xda);
	n += 2 + find_marker(jpeg + n, size - n, 0xda);
	n = n - 2;
	n += find_marker(jpeg + n, size - n, 0xda);
	jpeg[n + 1] = 0xd9;
	assert_fault(jpeg, n + 2, DECODER_DAMAGED, "a component has no data");
	free(jpeg);
}

/* ---- hostile files ---- */

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
	size_fit(root->width, root->height, 40, 40, &w, &h);
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

static void mutated_files_do_no_harm(void **state)
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
			/* half of the time in the headers */
			copy[(seed >> 4) % (k % 2 ? n : n < 650 ? n : 650)] = (uint8_t)value;
		}
		/* a test of robustness, not of patience */
		sof = find_sof(copy, n);
		if (sof)
			copy[sof + 5] &= 1, copy[sof + 7] &= 1;
		seed = seed * 1103515245U + 12345U;
		if (count % 7 == 0)
			n = (seed >> 8) % n + 1;
		run_everything(copy, n, count % 2);
		free(copy);
		if (count % 50 ==
		    0) { /* and the next good one is not harmed by the bad ones before it */
			struct picture *p = decode_to(&decoder, jpeg[i], size[i], W, H, 100, true);

			assert_non_null(p);
			picture_unref(p);
		}
	}
	print_message("%u mutated files\n", count);
	for (size_t i = 0; i < COUNT_OF(structures); i++)
		free(jpeg[i]);
}

#define MARKER_DHT 0xc4
#define MARKER_DQT 0xdb

/* Cuts all such segments out. Returns the file's new size. */
static size_t without(uint8_t *jpeg, size_t size, unsigned marker)
{
	size_t at;

	while ((at = find_marker(jpeg, size, marker)) > 0) {
		size_t end = at + 2 + ((size_t)jpeg[at + 2] << 8 | jpeg[at + 3]);

		memmove(jpeg + at, jpeg + end, size - end);
		size -= end - at;
	}
	return size;
}

/* A file that leaves its tables out, decoded after another that has brought some: as by a decoder
 * that has seen no other. */
static void check_without(const struct fixture *f, unsigned marker, const uint8_t *before,
                          size_t before_size, bool is_possible)
{
	struct picture *fresh_picture, *picture;
	struct decoder *fresh = malloc(sizeof(*fresh));
	size_t size;
	uint8_t *jpeg = fixture_make(f, &size);

	size = without(jpeg, size, marker);
	assert_int_equal(decoder_init(fresh), 0);
	fresh_picture = decode_to(fresh, jpeg, size, W, H, 100, true);
	assert_int_equal(fresh_picture != NULL, is_possible);
	picture_unref(decode_to(&decoder, before, before_size, W, H, 100, true));
	picture = decode_to(&decoder, jpeg, size, W, H, 100, true);
	assert_int_equal(picture != NULL, is_possible);
	if (is_possible)
		for (int y = 0; y < picture->height; y++)
			assert_memory_equal(picture->plane[0].data + y * picture->plane[0].stride,
			                    fresh_picture->plane[0].data +
			                            y * fresh_picture->plane[0].stride,
			                    (size_t)picture->width);
	picture_unref(picture);
	picture_unref(fresh_picture);
	decoder_fini(fresh);
	free(fresh);
	free(jpeg);
}

static void tables_of_one_file_are_not_for_the_next(void **state)
{
	struct fixture f = structures[0], progressive = structures[0];
	size_t size, optimized_size, progressive_size;
	uint8_t *jpeg = fixture_make(&f, &size), *optimized, *other;
	struct picture *p = decode_to(&decoder, jpeg, size, W, H, 1, true),
		       *ready = picture_scale(&resampler, p, 50, 40, 1);

	(void)state;
	progressive.is_progressive = true;
	other = fixture_make(&progressive, &progressive_size);
	assert_int_equal(encoder_encode(&(struct encoding){ .quality = 40, .is_optimized = true },
	                                ready, NULL, 0, &optimized, &optimized_size),
	                 0);
	/* without Huffman tables it has the standard's; there are none of those for progressive
	 * files */
	check_without(&f, MARKER_DHT, optimized, optimized_size, true);
	check_without(&f, MARKER_DHT, other, progressive_size, true);
	check_without(&progressive, MARKER_DHT, other, progressive_size, false);
	check_without(&f, MARKER_DQT, jpeg, size, false);
	pool_put(optimized);
	picture_unref(p);
	picture_unref(ready);
	free(jpeg);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_structure_is_decoded),
		cmocka_unit_test(components_get_the_sizes_that_were_chosen),
		cmocka_unit_test(the_unsupported_is_named),
		cmocka_unit_test(scans_are_limited),
		cmocka_unit_test(truncation_is_noticed),
		cmocka_unit_test(what_cameras_do_wrong_is_accepted),
		cmocka_unit_test(lost_pixels_are_damage),
		cmocka_unit_test(tables_of_one_file_are_not_for_the_next),
		cmocka_unit_test(mutated_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
