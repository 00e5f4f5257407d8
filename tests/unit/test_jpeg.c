/* test_jpeg.c - decoder and encoder: every structure of JPEG, damage, limits, hostile files, memory. */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/check.h"
#include "../../src/clock.h"
#include "../../src/conf.h"
#include "../../src/mem/pool.h"
#include "../../stages/pixel/decoder.h"
#include "../../stages/pixel/encoder.h"
#include "../../stages/pixel/footprint.h"
#include "../../stages/pixel/metadata.h"
#include "../../stages/pixel/picture.h"
#include "../../stages/pixel/resample.h"
#include "../../stages/plan.h"
#include "../../stages/stages.h"
#include "jpeg_fixture.h"

#define W 117
#define H 83

#define YCC .width = W, .height = H, .from = JCS_YCbCr, .in = JCS_YCbCr, .components = 3
#define GREY .width = W, .height = H, .from = JCS_GRAYSCALE, .in = JCS_GRAYSCALE, .components = 1
#define CMYK .width = W, .height = H, .from = JCS_CMYK, .components = 4
#define RGB .width = W, .height = H, .from = JCS_RGB, .components = 3

static const struct fixture structures[] = {
	{.name = "4:2:0", YCC},
	{.name = "4:4:4", YCC, .sampling = {{1, 1}, {1, 1}, {1, 1}}},
	{.name = "4:2:2", YCC, .sampling = {{2, 1}, {1, 1}, {1, 1}}},
	{.name = "4:4:0", YCC, .sampling = {{1, 2}, {1, 1}, {1, 1}}},
	{.name = "4:1:1", YCC, .sampling = {{4, 1}, {1, 1}, {1, 1}}},
	{.name = "4:1:0", YCC, .sampling = {{4, 2}, {1, 1}, {1, 1}}},
	{.name = "4:4:1", YCC, .sampling = {{1, 4}, {1, 1}, {1, 1}}},
	{.name = "2x4", YCC, .sampling = {{2, 4}, {1, 1}, {1, 1}}},
	{.name = "3x1", YCC, .sampling = {{3, 1}, {1, 1}, {1, 1}}},
	{.name = "1x3", YCC, .sampling = {{1, 3}, {1, 1}, {1, 1}}},
	{.name = "4:2:2 as 2x2,1x2", YCC, .sampling = {{2, 2}, {1, 2}, {1, 2}}},
	{.name = "4:4:4 as 2x2", YCC, .sampling = {{2, 2}, {2, 2}, {2, 2}}, .is_per_component = true},
	{.name = "4:4:0 as 2x2,2x1", YCC, .sampling = {{2, 2}, {2, 1}, {2, 1}}},
	{.name = "Cb unlike Cr", YCC, .sampling = {{2, 2}, {1, 1}, {2, 1}}},
	{.name = "chroma larger than luma", YCC, .sampling = {{1, 1}, {2, 2}, {2, 2}}},
	{.name = "fractional 3x2,2x1", YCC, .sampling = {{3, 2}, {2, 1}, {2, 1}}, .is_raw = true},
	{.name = "fractional 3x1,2x1", YCC, .sampling = {{3, 1}, {2, 1}, {2, 1}}, .is_raw = true},
	{.name = "fractional 2x3,1x2", YCC, .sampling = {{2, 3}, {1, 2}, {1, 2}}, .is_raw = true},
	{.name = "progressive 4:2:0", YCC, .is_progressive = true},
	{.name = "progressive 4:4:4", YCC, .sampling = {{1, 1}, {1, 1}, {1, 1}}, .is_progressive = true},
	{.name = "a scan per component", YCC, .is_per_component = true},
	{.name = "restart markers", YCC, .restart_rows = 1},
	{.name = "grey", GREY},
	{.name = "grey 2x2", GREY, .sampling = {{2, 2}}},
	{.name = "grey 4x1", GREY, .sampling = {{4, 1}}},
	{.name = "grey progressive", GREY, .is_progressive = true},
	{.name = "RGB", RGB, .in = JCS_RGB},
	{.name = "RGB subsampled", RGB, .in = JCS_RGB, .sampling = {{2, 2}, {1, 1}, {1, 1}}},
	{.name = "RGB progressive", RGB, .in = JCS_RGB, .is_progressive = true},
	{.name = "CMYK", CMYK, .in = JCS_CMYK},
	{.name = "CMYK without Adobe", CMYK, .in = JCS_CMYK, .no_adobe = true},
	{.name = "YCCK", CMYK, .in = JCS_YCCK},
	{.name = "YCCK subsampled", CMYK, .in = JCS_YCCK, .sampling = {{2, 2}, {1, 1}, {1, 1}, {2, 2}}},
	{.name = "CMYK progressive", CMYK, .in = JCS_CMYK, .is_progressive = true},
};

static struct decoder decoder;
static struct encoder encoder;
static struct resampler resampler;

/* Decodes to planes that serve width x height; NULL: decoder.fault. */
static struct picture *decode_to(const uint8_t *jpeg, size_t size, int width, int height, unsigned scans, bool stop)
{
	enum decoder_result result = decoder_open(&decoder, jpeg, size);
	struct picture *p = NULL;

	if (result == DECODER_FAILED)
		return NULL;
	decoder_choose(&decoder, width, height);
	result = decoder_start(&decoder, scans, stop);
	while (result == DECODER_MORE)
		result = decoder_advance(&decoder, 3);
	if (result == DECODER_DONE)
		p = decoder_take(&decoder);
	decoder_close(&decoder);
	return p;
}

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
			double e = p->plane[0].data[y * p->plane[0].stride + x] - luma_of(f, x * f->width / p->width, y * f->height / p->height);

			sum += e * e;
		}
	return sum / p->width / p->height;
}

static void every_structure_is_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		const struct fixture *f = &structures[i];
		static const int sizes[][2] = {{W, H}, {58, 41}, {20, 14}};
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);

		for (size_t k = 0; k < COUNT_OF(sizes); k++) {
			struct picture *root = decode_to(jpeg, size, sizes[k][0], sizes[k][1], 100, true), *p;

			if (!root)
				fail_msg("%s: %s", f->name, decoder.fault_text);
			assert_true(root->plane[0].width >= sizes[k][0] || f->components > 1);
			p = picture_scale(&resampler, root, sizes[k][0], sizes[k][1], 1);
			assert_non_null(p);
			assert_int_equal(p->plane_count, f->components == 1 ? 1 : 3);
			assert_int_equal(p->width, sizes[k][0]);
			assert_int_equal(p->height, sizes[k][1]);
			/* the fixture is sampled at pixels' corners, so reduced pictures are off by a slope */
			if (luma_error(f, p) > (k ? 80 : 12))
				fail_msg("%s at %d: error %g", f->name, sizes[k][0], luma_error(f, p));
			picture_unref(root);
			picture_unref(p);
		}
		free(jpeg);
	}
}

/* The undocumented part of libjpeg that we rely on: 4:2:0 at half size must come with chroma at half of that. */
static void components_get_the_sizes_that_were_chosen(void **state)
{
	struct fixture f = {.name = "hook", .width = 640, .height = 480, .from = JCS_YCbCr, .in = JCS_YCbCr, .components = 3};
	static const int chosen[][4] = {{320, 240, 320, 160}, {321, 200, 640, 320}, {160, 120, 160, 80}, {80, 60, 80, 40}};

	(void)state;
	for (int s = 0; s < 2; s++) {
		uint8_t *jpeg;
		size_t size;

		f.is_progressive = s;
		jpeg = fixture_make(&f, &size);
		for (size_t i = 0; i < COUNT_OF(chosen); i++) {
			struct picture *p = decode_to(jpeg, size, chosen[i][0], chosen[i][1], 100, true);

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
		if (jpeg[i] == 0xff && (jpeg[i + 1] == 0xc0 || jpeg[i + 1] == 0xc1 || jpeg[i + 1] == 0xc2))
			return i;
	return 0;
}

static void assert_fault(const uint8_t *jpeg, size_t size, enum decoder_fault fault, const char *text)
{
	assert_null(decode_to(jpeg, size, W, H, 100, true));
	if (decoder.fault != fault || !strstr(decoder.fault_text, text))
		fail_msg("fault %d, %s; expected %d, %s", decoder.fault, decoder.fault_text, fault, text);
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
	free(jpeg);
	for (int n = 2; n <= 5; n += 3) {
		f = (struct fixture){.name = "n", .width = W, .height = H, .from = JCS_UNKNOWN, .in = JCS_UNKNOWN, .components = n, .is_per_component = n > 4};
		jpeg = fixture_make(&f, &size);
		assert_fault(jpeg, size, DECODER_UNSUPPORTED, n == 2 ? "2 components" : "5 components");
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
	picture_unref(decode_to(jpeg, size, W, H, 100, true));
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
	assert_null(decode_to(jpeg, size, W, H, 9, true));
	assert_int_equal(decoder.fault, DECODER_TOO_MANY_SCANS);
	p = decode_to(jpeg, size, W, H, 10, true);
	assert_non_null(p);
	picture_unref(p);
	free(jpeg);
}

/* Cut anywhere: rejected, or accepted as damaged, unless only the EOI is missing. */
static void truncation_is_noticed(void **state)
{
	static const size_t which[] = {0, 1, 18, 20, 21, 22, 25, 29};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		const struct fixture *f = &structures[which[i]];
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);
		struct picture *p;

		for (size_t cut = 3; cut < size; cut += cut > size - 40 ? 1 : 13) {
			uint8_t *part = malloc(cut);
			bool is_whole = cut >= size - 2;

			memcpy(part, jpeg, cut);
			p = decode_to(part, cut, W, H, 100, true);
			if (is_whole && !p)
				fail_msg("%s: only the EOI is missing: %s", f->name, decoder.fault_text);
			if (!is_whole && p && cut < size - 4)
				fail_msg("%s: cut at %zu of %zu was not noticed", f->name, cut, size);
			if (!p)
				assert_int_equal(decoder.fault, DECODER_DAMAGED);
			picture_unref(p);
			p = decode_to(part, cut, W, H, 100, false);
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

static size_t find_marker(const uint8_t *jpeg, size_t size, unsigned marker)
{
	for (size_t i = 2; i + 1 < size; i++)
		if (jpeg[i] == 0xff && jpeg[i + 1] == marker)
			return i;
	return 0;
}

static void what_cameras_do_wrong_is_accepted(void **state)
{
	static const size_t which[] = {0, 18, 21};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		size_t size, n;
		uint8_t *jpeg = fixture_make(&structures[which[i]], &size), *bad;
		struct picture *p;
		static const char rubbish[] = "eighteen extraneous";

		/* before a marker; after EOI; in place of EOI's position, in front of it */
		const size_t places[] = {find_marker(jpeg, size, 0xdb), size, size - 2};

		for (size_t k = 0; k < COUNT_OF(places); k++) {
			n = size;
			bad = spliced(jpeg, &n, places[k], rubbish, sizeof(rubbish) - 1);
			p = decode_to(bad, n, W, H, 100, true);
			if (!p)
				fail_msg("%s, place %zu: %s", structures[which[i]].name, k, decoder.fault_text);
			assert_false(decoder.has_lost);
			picture_unref(p);
			free(bad);
		}
		/* a sequential scan with the parameters of a progressive one, as Samsung writes them */
		if (which[i] != 18) {
			size_t sos = find_marker(jpeg, size, 0xda);

			jpeg[sos + 11] = 0;
			jpeg[sos + 12] = 0;
			p = decode_to(jpeg, size, W, H, 100, true);
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
	p = decode_to(bad, n, W, H, 100, false);
	assert_non_null(p);
	assert_true(decoder.has_lost);
	assert_non_null(strstr(decoder.lost_text, "Corrupt JPEG data"));
	picture_unref(p);
	free(bad);
	free(jpeg);
	/* a restart marker out of turn */
	jpeg = fixture_make(&structures[21], &size);
	jpeg[find_marker(jpeg, size, 0xd1) + 1] = 0xd5;
	p = decode_to(jpeg, size, W, H, 100, true);
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

/* ---- encoder -------------------------------------------------------------------------------------- */

static struct picture *drawn(int width, int height, unsigned plane_count)
{
	struct fixture f = {.width = width, .height = height};
	struct plane_shape shape[PLANE_MAX];
	struct picture *p;

	picture_shapes(shape, plane_count, width, height);
	p = picture_new(shape, plane_count, plane_count == 1 ? JCS_GRAYSCALE : JCS_YCbCr);
	assert_non_null(p);
	for (unsigned c = 0; c < plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++)
				p->plane[c].data[y * p->plane[c].stride + x] = (uint8_t)fixture_sample(&f, c ? 2 * x : x, c ? 2 * y : y, (int)c);
	picture_pad(p);
	return p;
}

static void check_round_trip(int width, int height, unsigned plane_count)
{
	struct picture *p = drawn(width, height, plane_count), *back;
	uint8_t *data;
	size_t size;
	double sum = 0;

	assert_int_equal(encoder_encode(&encoder, 0, p, NULL, 0, &data, &size), 0);
	assert_true(size <= encoder_bytes(100, plane_count, width, height, 0));
	back = decode_to(data, size, width, height, 1, true);
	if (!back)
		fail_msg("%d x %d: %s", width, height, decoder.fault_text);
	assert_int_equal(decoder.errors.mgr.num_warnings, 0);
	assert_int_equal(back->plane_count, plane_count);
	assert_int_equal(back->width, width);
	assert_int_equal(back->height, height);
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			double e = back->plane[0].data[y * back->plane[0].stride + x] - p->plane[0].data[y * p->plane[0].stride + x];

			sum += e * e;
		}
	assert_true(sum / width / height < 30);
	picture_unref(back);
	picture_unref(p);
	pool_put(data);
}

static void every_size_is_encoded(void **state)
{
	static const int odd[][2] = {{65500, 1}, {1, 65500}, {20000, 3}, {3, 20000}, {800, 533}, {4099, 17}};

	(void)state;
	for (unsigned planes = 1; planes <= 3; planes += 2) {
		for (int w = 1; w <= 34; w += w > 18 ? 3 : 1)
			for (int h = 1; h <= 34; h += h > 18 ? 3 : 1)
				check_round_trip(w, h, planes);
		for (size_t i = 0; i < COUNT_OF(odd); i++)
			check_round_trip(odd[i][0], odd[i][1], planes);
	}
}

static void noise_grows_the_file(void **state)
{
	struct picture *p = drawn(640, 480, 3);
	uint8_t *data;
	size_t size;
	unsigned seed = 1;

	(void)state;
	for (unsigned c = 0; c < 3; c++)
		for (int i = 0; i < p->plane[c].height * p->plane[c].stride; i++) {
			seed = seed * 1103515245U + 12345U;
			p->plane[c].data[i] = seed >> 31 ? 255 : 0; /* nothing is worse to encode */
		}
	for (unsigned q = 0; q < 2; q++) {
		assert_int_equal(encoder_encode(&encoder, q, p, NULL, 0, &data, &size), 0);
		print_message("noise: %.2f bytes per sample\n", (double)size / (640 * 480 * 1.5));
		if (q == 0)
			assert_true(size <= encoder_bytes(100, 3, 640, 480, 0));
		pool_put(data);
	}
	picture_unref(p);
}

static void profile_make(uint8_t *icc, size_t size, const char *space)
{
	for (size_t i = 0; i < size; i++)
		icc[i] = (uint8_t)(i * 7);
	icc[0] = (uint8_t)(size >> 24);
	icc[1] = (uint8_t)(size >> 16);
	icc[2] = (uint8_t)(size >> 8);
	icc[3] = (uint8_t)size;
	memcpy(icc + 16, space, 4);
	memcpy(icc + 36, "acsp", 4);
}

static void profiles_go_through_if_they_fit(void **state)
{
	static uint8_t icc[150000];
	struct fixture f = structures[0];
	struct picture *p = drawn(50, 40, 3);
	struct metadata m;
	uint8_t *jpeg, *kept, *data;
	size_t size, kept_size, data_size;

	(void)state;
	for (size_t n = 128; n <= sizeof(icc); n = n == 128 ? 3144 : n + 60000) {
		profile_make(icc, n, "RGB ");
		f.icc = icc;
		f.icc_size = n;
		jpeg = fixture_make(&f, &size);
		metadata_read(&m, jpeg, size);
		assert_int_equal(metadata_copy_icc(&m, ICC_GRAY, &kept, &kept_size), 0);
		assert_null(kept);
		assert_int_equal(metadata_copy_icc(&m, ICC_RGB, &kept, &kept_size), 0);
		assert_int_equal(kept_size, n);
		assert_memory_equal(kept, icc, n);
		assert_int_equal(encoder_encode(&encoder, 1, p, kept, kept_size, &data, &data_size), 0);
		free(kept);
		metadata_read(&m, data, data_size);
		assert_int_equal(metadata_copy_icc(&m, ICC_RGB, &kept, &kept_size), 0);
		assert_int_equal(kept_size, n);
		assert_memory_equal(kept, icc, n);
		free(kept);
		pool_put(data);
		/* the profile's header says another size: not a profile */
		jpeg[find_marker(jpeg, size, 0xe2) + 4 + 14 + 3] ^= 1;
		metadata_read(&m, jpeg, size);
		assert_int_equal(metadata_copy_icc(&m, ICC_RGB, &kept, &kept_size), 0);
		assert_null(kept);
		/* the chunks' numbers are wrong */
		jpeg[find_marker(jpeg, size, 0xe2) + 4 + 12] = 9;
		metadata_read(&m, jpeg, size);
		assert_int_equal(m.icc_bytes, 0);
		free(jpeg);
	}
	picture_unref(p);
}

/* ---- several threads with one picture ------------------------------------------------------------- */

struct job {
	struct picture *picture;
	uint8_t *data;
	size_t size;
};

static void *encode_and_scale(void *arg)
{
	struct job *job = arg;
	static const unsigned quality[] = {80};
	struct encoder *e = malloc(sizeof(*e));
	struct resampler *r = malloc(sizeof(*r));

	resampler_init(r);
	if (encoder_init(e, quality, 1) || encoder_encode(e, 0, job->picture, NULL, 0, &job->data, &job->size))
		abort();
	for (unsigned exif = 1; exif <= 8; exif++)
		picture_unref(picture_scale(r, job->picture, 50, 50, exif));
	picture_unref(picture_blur(r, job->picture, 5));
	picture_unref(job->picture);
	encoder_fini(e);
	free(e);
	free(r);
	pool_thread_fini();
	return NULL;
}

static void pictures_are_shared_by_threads(void **state)
{
	struct job jobs[4];
	pthread_t thread[4];
	size_t size;
	uint8_t *jpeg = fixture_make(&structures[0], &size);
	struct picture *root = decode_to(jpeg, size, W, H, 1, true);

	(void)state;
	for (int i = 0; i < 4; i++) {
		picture_ref(root);
		jobs[i] = (struct job){.picture = root};
		assert_int_equal(pthread_create(&thread[i], NULL, encode_and_scale, &jobs[i]), 0);
	}
	picture_unref(root);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(jobs[i].size, jobs[0].size);
		assert_memory_equal(jobs[i].data, jobs[0].data, jobs[0].size);
	}
	for (int i = 0; i < 4; i++)
		pool_put(jobs[i].data);
	free(jpeg);
}

/* ---- memory --------------------------------------------------------------------------------------- */

static struct conf conf;
static struct plan plan;

static void plan_make(const char *const *operations)
{
	unsigned at;
	char error[256];

	memset(&conf, 0, sizeof(conf));
	for (; *operations; operations++) {
		struct conf_variant *v = &conf.variant[conf.variant_count++];

		snprintf(v->name, sizeof(v->name), "v%u", conf.variant_count);
		snprintf(v->operations, sizeof(v->operations), "%s", *operations);
	}
	assert_int_equal(plan_build(&plan, &conf, &at, error, sizeof(error)), 0);
}

static int64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2(); /* zeros under the address sanitizer */

	return (int64_t)(m.uordblks + m.hblkhd);
}

/* Runs the whole plan and lets go of nothing. Returns the most that the heap grew by. */
static int64_t run_plan(const uint8_t *jpeg, size_t size, int64_t *bound)
{
	const unsigned quality[CONF_VARIANT_MAX] = {80, 80, 80, 80, 80};
	struct picture *result[PLAN_STEP_MAX] = {NULL}, *root;
	uint8_t *file[PLAN_STEP_MAX] = {NULL};
	struct footprint f = {.orientation = 6};
	enum decoder_result r;
	int64_t before, most;
	size_t n;
	int w, h;

	pool_thread_fini();
	assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
	f.height = (int)decoder.in.image_width;
	f.width = (int)decoder.in.image_height;
	footprint_root_size(&plan, f.width, f.height, f.orientation, &w, &h);
	decoder_choose(&decoder, w, h);
	f.color_space = (int)decoder.in.jpeg_color_space;
	f.plane_count = decoder_shapes(&decoder, f.shape);
	f.working_bytes = decoder_working_bytes(&decoder);
	*bound = (int64_t)footprint_bytes(&f, &plan, quality);
	before = heap_bytes();
	r = decoder_start(&decoder, 100, true);
	while (r == DECODER_MORE)
		r = decoder_advance(&decoder, 100);
	assert_int_equal(r, DECODER_DONE);
	most = heap_bytes() - before;
	root = decoder_take(&decoder);
	decoder_close(&decoder);
	for (unsigned i = 0; i < plan.step_count; i++) {
		const struct plan_step *s = &plan.step[i];
		struct picture *in = s->parent == PLAN_ROOT ? root : result[s->parent];
		bool is_root = s->parent == PLAN_ROOT;

		step_size(&plan, i, f.width, f.height, is_root ? f.width : in->width, is_root ? f.height : in->height, &w, &h);
		if (s->stage == STAGE_SCALE)
			result[i] = picture_scale(&resampler, in, w, h, is_root ? f.orientation : 1);
		else if (s->stage == STAGE_BLUR)
			result[i] = picture_blur(&resampler, in, s->sigma);
		else
			assert_int_equal(encoder_encode(&encoder, 1, in, NULL, 0, &file[i], &n), 0);
		assert_true(result[i] || file[i]);
		/* the pool still keeps the step's scratch */
		if (heap_bytes() - before > most)
			most = heap_bytes() - before;
		pool_thread_fini();
	}
	for (unsigned i = 0; i < plan.step_count; i++) {
		picture_unref(result[i]);
		pool_put(file[i]);
	}
	picture_unref(root);
	return most;
}

static void memory_is_bounded_as_foretold(void **state)
{
	static const char *const plans[][5] = {
		{"scale 800x800 inside", "scale 160x160 inside", "scale 800x800 inside, blur 8", NULL},
		{"", "blur 3", "scale 300x300 inside", "scale 50x50 inside, blur 1", NULL},
		{"scale 7x7 inside", NULL},
	};
	static const int sizes[][2] = {{900, 600}, {16, 16}, {3000, 20}, {401, 703}};
	double worst = 0;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(structures) * COUNT_OF(sizes); n++) {
		struct fixture f = structures[n / COUNT_OF(sizes)];
		uint8_t *jpeg;
		size_t size;

		if (f.is_raw)
			continue;
		f.width = sizes[n % COUNT_OF(sizes)][0];
		f.height = sizes[n % COUNT_OF(sizes)][1];
		jpeg = fixture_make(&f, &size);
		for (size_t p = 0; p < COUNT_OF(plans); p++) {
			int64_t bound, most;

			plan_make(plans[p]);
			most = run_plan(jpeg, size, &bound);
			if (most > bound)
				fail_msg("%s %dx%d plan %zu: %lld of %lld bytes", f.name, f.width, f.height, p, (long long)most,
				         (long long)bound);
			if (most > 1 << 20 && (double)bound / (double)most > worst)
				worst = (double)bound / (double)most;
		}
		free(jpeg);
	}
	print_message("the bound is at most %.1f times what was needed\n", worst);
}

/* ---- hostile files -------------------------------------------------------------------------------- */

static void run_everything(const uint8_t *jpeg, size_t size, bool stop)
{
	struct metadata m;
	struct picture *root = decode_to(jpeg, size, 40, 40, 20, stop), *p, *blurred;
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
	assert_int_equal(encoder_encode(&encoder, 0, blurred, NULL, 0, &data, &n), 0);
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
		if (count % 50 == 0) { /* and the next good one is not harmed by the bad ones before it */
			struct picture *p = decode_to(jpeg[i], size[i], W, H, 100, true);

			assert_non_null(p);
			picture_unref(p);
		}
	}
	print_message("%u mutated files\n", count);
	for (size_t i = 0; i < COUNT_OF(structures); i++)
		free(jpeg[i]);
}

static int setup(void **state)
{
	static const unsigned quality[] = {100, 75};

	(void)state;
	resampler_init(&resampler);
	return decoder_init(&decoder) || encoder_init(&encoder, quality, 2);
}

static int teardown(void **state)
{
	uint64_t used, kept;

	(void)state;
	decoder_fini(&decoder);
	encoder_fini(&encoder);
	pool_usage(&used, &kept);
	assert_int_equal(used, 0);
	pool_thread_fini();
	return 0;
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
		cmocka_unit_test(every_size_is_encoded),
		cmocka_unit_test(noise_grows_the_file),
		cmocka_unit_test(profiles_go_through_if_they_fit),
		cmocka_unit_test(pictures_are_shared_by_threads),
		cmocka_unit_test(memory_is_bounded_as_foretold),
		cmocka_unit_test(mutated_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
