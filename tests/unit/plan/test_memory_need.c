/* test_memory_need.c - the computed bound of an image's memory, against what it takes. */
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
#include "pixel/encoder.h"
#include "pixel/picture_job.h"
#include "plan/geometry.h"
#include "plan/memory_need.h"
#include "stage_ids.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/one_call.h"
#include "support/plan_fixture.h"

/* The test has one thread, and a sanitizer has its own heap: a sixth of the cases runs all code. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PART 6
#else
#define PART 1
#endif

/* Builds the plan. A kind other than 0 enlarges (1), has full chroma (2), optimises (3), or does
 * all of that and is progressive (4). */
static void make(const char *const *operations, size_t kind)
{
	plan_reset(NULL);
	conf.limits.width = conf.limits.height = 1000;
	conf.limits.pixels = 1000000;
	for (; *operations; operations++) {
		plan_add_variant("v", *operations);
		struct conf_variant *v = &conf.variant[conf.variant_count - 1];

		v->enlarge = kind == 1 || kind == 4 ? CONF_YES : CONF_NO;
		v->chroma = kind == 2 || kind == 4 ? CONF_CHROMA_444 : CONF_CHROMA_420;
		v->optimize = kind == 3 ? CONF_YES : CONF_NO;
		v->progressive = kind == 4 ? CONF_YES : CONF_NO;
	}
	assert_int_equal(plan_make(), 0);
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

/* Encodes a file. Measures the heap between rows, because libjpeg frees some memory at the end. */
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

/* Opens the decoder and computes the bound. The image has EXIF orientation 6. */
static void open_image(const uint8_t *jpeg, size_t size, struct memory_need *f, int64_t *bound)
{
	struct memory_need_step need;

	*f = (struct memory_need){ .orientation = 6 };
	assert_int_equal(decoder_open(&decoder, jpeg, size), DECODER_MORE);
	f->height = (int)decoder.in.image_width;
	f->width = (int)decoder.in.image_height;
	memory_need_root(&plan, f->width, f->height, f->orientation, &need);
	decoder_choose(&decoder, need.width, need.height, need.chroma_width, need.chroma_height);
	f->color_space = (int)decoder.in.jpeg_color_space;
	f->plane_count = decoder_shapes(&decoder, f->shape);
	f->working_bytes = decoder_working_bytes(&decoder);
	*bound = (int64_t)memory_need_bytes(f, &plan, 0);
}

static struct picture *decode(int64_t before, int64_t *most)
{
	enum decoder_result r = decoder_start(&decoder, 100, true);

	while (r == DECODER_MORE)
		r = decoder_advance(&decoder, 100);
	assert_int_equal(r, DECODER_DONE);
	note_most(before, most);
	struct picture *root = decoder_take(&decoder);

	decoder_close(&decoder);
	return root;
}

static struct picture *make_picture(unsigned index, const struct memory_need *f, struct picture *in)
{
	const struct operation_image image = { f->width, f->height, f->orientation, NULL };

	return picture_job_finish(operation_begin(&plan, index, in, &image), &resampler);
}

/* Runs the whole plan and frees nothing before its end. Returns how much the heap grew at most. */
static int64_t run_plan(const uint8_t *jpeg, size_t size, int64_t *bound)
{
	struct picture *result[PLAN_STEP_MAX] = { NULL };
	uint8_t *file[PLAN_STEP_MAX] = { NULL };
	int64_t before, most = 0;
	struct memory_need f;

	pool_thread_fini();
	pool_fini();
	open_image(jpeg, size, &f, bound);
	before = heap_bytes();
	struct picture *root = decode(before, &most);

	for (unsigned i = 0; i < plan.step_count; i++) {
		const struct plan_step *s = &plan.step[i];
		struct picture *in = s->parent == PLAN_ROOT ? root : result[s->parent];

		if (s->op.class == &operation_encode)
			file[i] = encode(&s->encoding, in, before, &most);
		else
			result[i] = make_picture(i, &f, in);
		assert_true(result[i] || file[i]);
		note_most(before, &most); /* the pool still keeps the step's scratch */
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

static void an_image_takes_no_more_memory_than_computed(void **state)
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

			make(plans[p], n % 5);
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

/* Numbers too large to run: they must neither overflow nor be small. */
static void a_decompression_bomb_needs_much_memory(void **state)
{
	static const char *const whole[] = { "", NULL };
	struct memory_need f = { .plane_count = 4,
		                 .color_space = JCS_CMYK,
		                 .width = 65500,
		                 .height = 65500,
		                 .orientation = 5 };

	(void)state;
	make(whole, 0);
	for (unsigned c = 0; c < 4; c++)
		picture_shapes(&f.shape[c], CHROMA_NONE, 65500, 65500);
	f.working_bytes = UINT64_C(65500) * 65500 * 8;
	assert_true(memory_need_bytes(&f, &plan, 0) > UINT64_C(65500) * 65500 * 12);
	assert_true(memory_need_bytes(&f, &plan, 0) < UINT64_C(65500) * 65500 * 40);
}

static void the_decoder_is_asked_for_the_shown_part_only(void **state)
{
	struct memory_need_step need;

	(void)state;
	plan_reset(NULL);
	conf.limits.width = conf.limits.height = 65500;
	conf.limits.pixels = UINT64_C(1) << 32;
	plan_add_variant("v", "scale 100x100 cover");
	assert_int_equal(plan_make(), 0);
	memory_need_root(&plan, 4000, 1000, 1, &need);
	assert_int_equal(need.width, 400);
	assert_int_equal(need.height, 100);
	assert_int_equal(need.chroma_width, 200);
	memory_need_root(&plan, 4000, 1000, 6, &need);
	assert_int_equal(need.width, 100);
	assert_int_equal(need.chroma_height, 200);
	memory_need_root(&plan, 400, 10, 1, &need);
	assert_int_equal(need.width, 400);
	assert_int_equal(need.height, 10);
	conf.variant[0].enlarge = CONF_YES;
	conf.variant[0].chroma = CONF_CHROMA_444;
	assert_int_equal(plan_make(), 0);
	memory_need_root(&plan, 400, 10, 1, &need);
	assert_int_equal(need.width, 400);
	assert_int_equal(need.height, 10);
	assert_int_equal(need.chroma_width, 400);
	snprintf(conf.variant[0].operations, sizeof(conf.variant[0].operations),
	         "scale 100x100 cover, grayscale");
	assert_int_equal(plan_make(), 0);
	memory_need_root(&plan, 4000, 1000, 1, &need);
	assert_int_equal(need.width, 400);
	assert_int_equal(need.chroma_width, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_takes_no_more_memory_than_computed),
		cmocka_unit_test(a_decompression_bomb_needs_much_memory),
		cmocka_unit_test(the_decoder_is_asked_for_the_shown_part_only),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
