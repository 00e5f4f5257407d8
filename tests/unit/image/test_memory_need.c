/* test_memory_need.c - the memory that an image is said to need, against what it takes. */
#include <malloc.h>
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
#include "conf/conf.h"
#include "image/geometry.h"
#include "image/memory_need.h"
#include "image/plan.h"
#include "pixel/encoder.h"
#include "pixel/picture_job.h"
#include "stage_ids.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"

#ifdef __SANITIZE_THREAD__ /* one thread, and the heap is the sanitizer's: a part of it has all \
                              the code run */
#define PART 6
#else
#define PART 1
#endif

static struct conf conf;
static struct plan plan;

/* A kind other than 0: enlarging, with full chroma, optimised, or all of that and progressive. */
static void plan_make(const char *const *operations, size_t kind)
{
	unsigned at;
	char error[256];

	memset(&conf, 0, sizeof(conf));
	conf.limits.width = conf.limits.height = 1000;
	conf.limits.pixels = 1000000;
	for (; *operations; operations++) {
		struct conf_variant *v = &conf.variant[conf.variant_count++];

		snprintf(v->name, sizeof(v->name), "v%u", conf.variant_count);
		snprintf(v->operations, sizeof(v->operations), "%s", *operations);
		v->quality = 80;
		v->enlarge = kind == 1 || kind == 4 ? CONF_YES : CONF_NO;
		v->chroma = kind == 2 || kind == 4 ? CONF_CHROMA_444 : CONF_CHROMA_420;
		v->optimize = kind == 3 ? CONF_YES : CONF_NO;
		v->progressive = kind == 4 ? CONF_YES : CONF_NO;
	}
	assert_int_equal(plan_build(&plan, &conf, &at, error, sizeof(error)), 0);
}

static int64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2(); /* zeros under the address sanitizer */

	return (int64_t)(m.uordblks + m.hblkhd);
}

static void note_most(int64_t before, int64_t *most)
{
	if (heap_bytes() - before > *most)
		*most = heap_bytes() - before;
}

/* The file. Looks at the heap between rows, too: what libjpeg keeps meanwhile is gone at the end.
 */
static uint8_t *encode(const struct encoding *how, const struct picture *p, int64_t before,
                       int64_t *most)
{
	struct encoder *e = encoder_new(how, p, NULL, 0);
	uint8_t *data;
	size_t size;
	int more;

	assert_non_null(e);
	while ((more = encoder_advance(e, 4)) > 0)
		note_most(before, most);
	assert_int_equal(more, 0);
	note_most(before, most);
	encoder_take(e, &data, &size);
	encoder_free(e);
	return data;
}

/* Runs the whole plan and lets go of nothing. Returns the most that the heap grew by. */
static int64_t run_plan(const uint8_t *jpeg, size_t size, int64_t *bound)
{
	struct picture *result[PLAN_STEP_MAX] = { NULL }, *root;
	uint8_t *file[PLAN_STEP_MAX] = { NULL };
	struct memory_need f = { .orientation = 6 };
	enum decoder_result r;
	int64_t before, most;
	struct memory_need_step need;

	pool_thread_fini();
	pool_fini();
	assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
	f.height = (int)decoder.in.image_width;
	f.width = (int)decoder.in.image_height;
	memory_need_root(&plan, f.width, f.height, f.orientation, &need);
	decoder_choose(&decoder, need.width, need.height, need.chroma_width, need.chroma_height);
	f.color_space = (int)decoder.in.jpeg_color_space;
	f.plane_count = decoder_shapes(&decoder, f.shape);
	f.working_bytes = decoder_working_bytes(&decoder);
	*bound = (int64_t)memory_need_bytes(&f, &plan);
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
		struct geometry g;
		struct scaling to;

		geometry_of_step(&g, &plan, i, f.width, f.height);
		geometry_scaling(&to, s, &g, f.orientation);
		if (s->stage == STAGE_SCALE)
			result[i] = picture_job_finish(picture_scale_begin(in, &to), &resampler);
		else if (s->stage == STAGE_BLUR && s->amount > 0)
			result[i] = picture_job_finish(
				picture_sharpen_begin(in, s->chroma, s->sigma, s->amount),
				&resampler);
		else if (s->stage == STAGE_BLUR)
			result[i] = picture_job_finish(picture_blur_begin(in, s->chroma, s->sigma),
			                               &resampler);
		else
			file[i] = encode(&s->encoding, in, before, &most);
		assert_true(result[i] || file[i]);
		/* the pool still keeps the step's scratch */
		note_most(before, &most);
		pool_thread_fini();
		pool_fini();
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
		{ "scale 800x800 inside", "scale 160x160 inside", "scale 800x800 inside, blur 8",
		  NULL },
		{ "", "blur 3", "scale 300x300 inside", "scale 50x50 inside, blur 1", NULL },
		{ "scale 7x7 inside", NULL },
		{ "scale 300x100 cover", "scale 100x300 exact, rotate 90",
		  "sharpen 2 5, rotate 180", "grayscale, blur 3", NULL },
		{ "scale 900x900 inside, sharpen 1, grayscale", "scale 64x64 cover", NULL },
		{ "scale 900x900 exact", NULL },
	};
	static const int sizes[][2] = { { 500, 300 }, { 16, 16 }, { 2000, 20 }, { 201, 353 } };
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
		for (size_t p = n % PART; p < COUNT_OF(plans); p += PART) {
			int64_t bound, most;

			plan_make(plans[p], n % 5);
			most = run_plan(jpeg, size, &bound);
			if (most > bound)
				fail_msg("%s %dx%d plan %zu: %lld of %lld bytes", f.name, f.width,
				         f.height, p, (long long)most, (long long)bound);
			if (most > 1 << 19 && (double)bound / (double)most > worst)
				worst = (double)bound / (double)most;
		}
		free(jpeg);
	}
	print_message("the bound is at most %.1f times what was needed\n", worst);
}

/* Numbers that no test can run: they must neither overflow nor be small. */
static void bombs_are_expensive(void **state)
{
	static const char *const whole[] = { "", NULL };
	struct memory_need f = { .plane_count = 4,
		                 .color_space = JCS_CMYK,
		                 .width = 65500,
		                 .height = 65500,
		                 .orientation = 5 };

	(void)state;
	plan_make(whole, 0);
	for (unsigned c = 0; c < 4; c++)
		picture_shapes(&f.shape[c], CHROMA_NONE, 65500, 65500);
	f.working_bytes = UINT64_C(65500) * 65500 * 8;
	assert_true(memory_need_bytes(&f, &plan) > UINT64_C(65500) * 65500 * 12);
	assert_true(memory_need_bytes(&f, &plan) < UINT64_C(65500) * 65500 * 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_bounded_as_foretold),
		cmocka_unit_test(bombs_are_expensive),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
