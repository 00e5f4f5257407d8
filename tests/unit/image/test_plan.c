/* test_plan.c - the grammar of operations, and the tree that is made of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "image/geometry.h"
#include "image/memory_need.h"
#include "image/plan.h"
#include "stage_ids.h"

static struct conf conf;
static struct plan plan;
static char error[256];
static unsigned at_fault;

static void add(const char *name, const char *operations)
{
	struct conf_variant *v = &conf.variant[conf.variant_count++];

	snprintf(v->name, sizeof(v->name), "%s", name);
	snprintf(v->operations, sizeof(v->operations), "%s", operations);
	v->quality = 80;
}

static int setup(void **state)
{
	(void)state;
	memset(&conf, 0, sizeof(conf));
	error[0] = '\0';
	return 0;
}

static int build(void)
{
	return plan_build(&plan, &conf, &at_fault, error, sizeof(error));
}

static void assert_step(int index, unsigned stage, int parent, unsigned children)
{
	assert_true(index >= 0 && (unsigned)index < plan.step_count);
	assert_int_equal(plan.step[index].stage, stage);
	assert_int_equal(plan.step[index].parent, parent);
	assert_int_equal(plan.step[index].child_count, children);
}

/* The step that encodes a variant. */
static int file_of(unsigned variant)
{
	for (unsigned i = 0; i < plan.step_count; i++)
		if (plan.step[i].stage == STAGE_JPEG_ENCODE && plan.step[i].variant == variant)
			return (int)i;
	return -1;
}

static const struct plan_step *parent_of(int index)
{
	assert_true(index >= 0 && plan.step[index].parent >= 0);
	return &plan.step[plan.step[index].parent];
}

static void reference_variants(void **state)
{
	(void)state;
	add("medium", "scale 800x800 inside");
	add("thumb", "scale 160x160 inside");
	add("blurred", "scale 800x800 inside, blur 8");
	assert_int_equal(build(), 0);
	/* medium and blurred share their scale, and thumb is made from it */
	assert_int_equal(plan.step_count, 6);
	assert_int_equal(plan.root_child_count, 1);
	assert_int_equal(plan.variant_count, 3);
	assert_step(0, STAGE_SCALE, PLAN_ROOT, 3);
	assert_int_equal(plan.step[0].width, 800);
	assert_step(1, STAGE_SCALE, 0, 1);
	assert_int_equal(plan.step[1].width, 160);
	assert_step(file_of(0), STAGE_JPEG_ENCODE, 0, 0);
	assert_step(file_of(1), STAGE_JPEG_ENCODE, 1, 0);
	assert_int_equal(parent_of(file_of(2))->stage, STAGE_BLUR);
	assert_int_equal(parent_of(file_of(2))->parent, 0);
	assert_true(parent_of(file_of(2))->sigma > 7.99 && parent_of(file_of(2))->sigma < 8.01);
}

static void parents_stand_before_children(void **state)
{
	(void)state;
	add("tiny", "scale 20x20 inside");
	add("small", "scale 100x100 inside, blur 1.5");
	add("large", "scale 2000x2000 inside");
	add("same", "scale 2000x2000 inside, blur 3, scale 50x50 inside");
	add("whole", "");
	assert_int_equal(build(), 0);
	for (unsigned i = 0; i < plan.step_count; i++)
		assert_true(plan.step[i].parent < (int)i);
	/* whole <- large <- small <- tiny: each from the nearest that is large enough */
	assert_int_equal(plan.root_child_count, 1);
	assert_int_equal(parent_of(file_of(4))->width, 0);
	assert_int_equal(parent_of(file_of(2))->width, 2000);
	assert_int_equal(plan.step[parent_of(file_of(2))->parent].width, 0);
	assert_int_equal(plan.step[parent_of(file_of(0))->parent].width, 100);
}

static void no_derivation_unless_larger_both_ways(void **state)
{
	(void)state;
	add("wide", "scale 800x100 inside");
	add("high", "scale 100x800 inside");
	add("near", "scale 500x90 inside");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 3);
}

static void every_chain_begins_with_a_scale(void **state)
{
	(void)state;
	add("empty", "  ");
	add("blurred", "blur 2");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 1);
	assert_step(0, STAGE_SCALE, PLAN_ROOT, 2);
	assert_int_equal(plan.step[0].width, 0);
	assert_int_equal(plan.step[0].height, 0);
}

static void blanks_are_free(void **state)
{
	(void)state;
	add("v", " scale\t7x9   inside ,blur .5,scale 65500x1 inside");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.step_count, 4);
	assert_int_equal(plan.step[0].width, 7);
	assert_int_equal(plan.step[0].height, 9);
}

static void errors_say_what_was_expected(void **state)
{
	static const struct {
		const char *operations, *says;
	} wrong[] = {
		{ "scal 8x8 inside",
		  "variant.v: operations: 'scal' is not an operation; expected scale, blur, sharpen, grayscale or rotate" },
		{ "scale", "'' is not a size for scale" },
		{ "scale 800 inside",
		  "'800' is not a size for scale; expected WIDTHxHEIGHT, each 1..65500" },
		{ "scale 0x9 inside", "'0x9' is not a size" },
		{ "scale 9x0 inside", "'9x0' is not a size" },
		{ "scale 65501x9 inside", "is not a size" },
		{ "scale 99999999999999999999x9 inside", "is not a size" },
		{ "scale 8x8x8 inside", "is not a size" },
		{ "scale -8x8 inside", "is not a size" },
		{ "scale 8x8", "expected 'inside', 'cover' or 'exact'" },
		{ "scale 8x8 outside",
		  "followed by 'outside'; expected 'inside', 'cover' or 'exact'" },
		{ "scale 8x8 inside blur 8", "expected a comma" },
		{ "scale 8x8 inside,", "missing after the last comma" },
		{ ",", "'' is not an operation" },
		{ "blur", "'' is not a sigma for blur; expected a number of pixels, 0.3..200" },
		{ "blur 0.2", "'0.2' is not a sigma" },
		{ "blur 201", "is not a sigma" },
		{ "blur nan", "is not a sigma" },
		{ "blur 1e2", "is not a sigma" },
		{ "blur 1.2.3", "is not a sigma" },
		{ "blur .", "is not a sigma" },
		{ "blur 00000000000000000000000000000000000000008", "is not a sigma" },
		{ "blur 8,, blur 8", "'' is not an operation" },
		{ "scale 8x8 insidecover", "expected 'inside', 'cover' or 'exact'" },
		{ "sharpen", "'' is not an amount for sharpen; expected a number, 0.05..10" },
		{ "sharpen 0", "'0' is not an amount" },
		{ "sharpen 0.04", "'0.04' is not an amount" },
		{ "sharpen 10.1", "'10.1' is not an amount" },
		{ "sharpen -1", "'-1' is not an amount" },
		{ "sharpen 1 0.2",
		  "'0.2' is not a sigma for sharpen; expected a number of pixels, 0.3..20, or none for 1" },
		{ "sharpen 1 21", "'21' is not a sigma for sharpen" },
		{ "sharpen 1 x", "'x' is not a sigma for sharpen" },
		{ "sharpen 1 1 1", "expected a comma" },
		{ "grayscale 1", "expected a comma" },
		{ "greyscale",
		  "'greyscale' is not an operation; expected scale, blur, sharpen, grayscale or rotate" },
		{ "rotate",
		  "'' is not an angle for rotate; expected 90, 180 or 270, degrees clockwise" },
		{ "rotate 45", "'45' is not an angle" },
		{ "rotate -90", "'-90' is not an angle" },
		{ "rotate 360", "'360' is not an angle" },
		{ "rotate 90 blur 8", "expected a comma" },
	};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		setup(state);
		add("good", "");
		add("v", wrong[i].operations);
		at_fault = 99;
		assert_int_equal(build(), -EINVAL);
		assert_int_equal(at_fault, 1);
		if (!strstr(error, wrong[i].says))
			fail_msg("%s: %s", wrong[i].operations, error);
	}
}

/* Squares of several sizes are cut once. */
static void covers_of_the_same_proportions_are_derived(void **state)
{
	(void)state;
	add("large", "scale 800x600 cover");
	add("small", "scale 400x300 cover, blur 2");
	add("other", "scale 300x300 cover");
	add("inside", "scale 100x100 inside");
	add("exact", "scale 100x75 exact");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 4);
	assert_int_equal(plan.step[0].fit, PLAN_COVER);
	assert_int_equal(plan.step[0].width, 800);
	assert_int_equal(parent_of(file_of(1))->parent, 1);
	assert_int_equal(plan.step[1].parent, 0);
	assert_int_equal(parent_of(file_of(2))->parent, PLAN_ROOT);
	assert_int_equal(parent_of(file_of(3))->parent, PLAN_ROOT);
	assert_int_equal(parent_of(file_of(4))->parent, PLAN_ROOT);
}

static void anything_is_derived_from_the_whole(void **state)
{
	(void)state;
	add("whole", "blur 3");
	add("cover", "scale 800x600 cover");
	add("exact", "scale 800x600 exact");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 1);
	assert_int_equal(parent_of(file_of(1))->parent, 0);
	assert_int_equal(parent_of(file_of(2))->parent, 0);
}

static void what_is_enlarged_is_no_source(void **state)
{
	(void)state;
	conf.limits.width = conf.limits.height = 1000;
	conf.limits.pixels = 500000;
	add("large", "scale 800x600 inside");
	add("small", "scale 100x100 inside");
	conf.variant[0].enlarge = CONF_YES;
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 2);
	/* but it may be made from one */
	conf.variant[0].enlarge = CONF_NO;
	conf.variant[1].enlarge = CONF_YES;
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 1);
	assert_true(parent_of(file_of(1))->may_enlarge);
}

static void enlarging_has_the_limits_of_uploads(void **state)
{
	static const struct {
		const char *operations, *says;
	} wrong[] = {
		{ "scale 1001x10 inside",
		  "variant.v: operations: scale 1001x10 with enlarge = yes exceeds limits.width = 1000; expected no more than that" },
		{ "scale 10x901 exact", "exceeds limits.height = 900" },
		{ "blur 1, scale 900x900 cover", "exceeds limits.pixels = 500000" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		setup(state);
		conf.limits.width = 1000;
		conf.limits.height = 900;
		conf.limits.pixels = 500000;
		add("v", wrong[i].operations);
		assert_int_equal(build(), 0);
		conf.variant[0].enlarge = CONF_YES;
		assert_int_equal(build(), -EINVAL);
		if (!strstr(error, wrong[i].says))
			fail_msg("%s: %s", wrong[i].operations, error);
	}
}

static void chroma_is_shared_downwards(void **state)
{
	(void)state;
	add("grey", "grayscale, scale 800x800 inside, blur 3");
	add("fine", "scale 1600x1600 inside");
	add("coarse", "scale 800x800 inside, blur 3");
	add("fine2", "scale 800x800 inside");
	add("alone", "scale 80x90 cover, grayscale");
	conf.variant[1].chroma = conf.variant[3].chroma = CONF_CHROMA_444;
	assert_int_equal(build(), 0);
	/* grey has no steps of its own but its file; coarse is not made with more chroma than it
	 * wants */
	assert_int_equal(plan.step[file_of(0)].parent, plan.step[file_of(2)].parent);
	assert_true(plan.step[file_of(0)].encoding.is_grey);
	assert_false(plan.step[file_of(2)].encoding.is_grey);
	assert_int_equal(parent_of(file_of(2))->chroma, CHROMA_420);
	assert_int_equal(parent_of(file_of(3))->chroma, CHROMA_444);
	assert_int_equal(parent_of(file_of(1))->parent, PLAN_ROOT);
	assert_int_equal(parent_of(file_of(3))->parent, plan.step[file_of(1)].parent);
	assert_int_equal(parent_of(file_of(4))->chroma, CHROMA_NONE);
}

static void less_chroma_is_never_made_to_more(void **state)
{
	(void)state;
	add("large", "scale 1600x1600 inside");
	add("small", "scale 160x160 inside");
	conf.variant[1].chroma = CONF_CHROMA_444;
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 2);
	add("grey", "scale 100x100 inside, grayscale");
	conf.variant[1].chroma = CONF_CHROMA_420;
	assert_int_equal(build(), 0);
	assert_int_equal(plan.root_child_count, 1);
}

static void rotations_come_last(void **state)
{
	(void)state;
	add("plain", "scale 800x600 inside, blur 2");
	add("turned", "rotate 90, scale 600x800 inside, rotate 180, blur 2");
	add("not", "rotate 90, rotate 270");
	add("back", "rotate 180");
	assert_int_equal(build(), 0);
	assert_int_equal(parent_of(file_of(1))->rotation, 270);
	assert_int_equal(parent_of(file_of(1))->parent, plan.step[file_of(0)].parent);
	assert_int_equal(parent_of(file_of(2))->rotation, 0);
	assert_int_equal(parent_of(file_of(3))->rotation, 180);
	assert_int_equal(parent_of(file_of(3))->parent, plan.step[file_of(2)].parent);
}

static void sharpening_is_not_blurring(void **state)
{
	(void)state;
	add("a", "blur 1");
	add("b", "sharpen .5");
	add("c", "sharpen 0.5 1");
	add("d", "sharpen .5 2");
	assert_int_equal(build(), 0);
	assert_int_equal(plan.step[0].child_count, 3);
	assert_int_equal(plan.step[file_of(1)].parent, plan.step[file_of(2)].parent);
	assert_true(parent_of(file_of(1))->amount > .49 && parent_of(file_of(1))->sigma > .99);
}

static void files_are_as_configured(void **state)
{
	(void)state;
	add("a", "");
	conf.variant[0].progressive = CONF_YES;
	add("b", "");
	conf.variant[1].optimize = CONF_YES;
	conf.variant[1].quality = 33;
	assert_int_equal(build(), 0);
	assert_true(plan.step[file_of(0)].encoding.is_progressive &&
	            !plan.step[file_of(0)].encoding.is_optimized);
	assert_true(!plan.step[file_of(1)].encoding.is_progressive &&
	            plan.step[file_of(1)].encoding.is_optimized);
	assert_int_equal(plan.step[file_of(0)].encoding.quality, 80);
	assert_int_equal(plan.step[file_of(1)].encoding.quality, 33);
}

static void too_many_steps(void **state)
{
	char operations[CONF_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < CONF_VARIANT_MAX; i++) {
		char name[8];

		snprintf(name, sizeof(name), "v%u", i);
		snprintf(operations, sizeof(operations),
		         "scale %ux9 inside, blur 1, blur 2, blur 3", 10 + i);
		add(name, operations);
	}
	assert_int_equal(build(), -EINVAL);
	assert_non_null(strstr(error, "more than 64 different steps"));
}

static void too_many_operations(void **state)
{
	char operations[CONF_TEXT_MAX] = "blur 1";

	(void)state;
	for (unsigned i = 0; i < 33; i++)
		strcat(operations, ",blur 1");
	add("v", operations);
	assert_int_equal(build(), -EINVAL);
	assert_non_null(strstr(error, "more than 32 operations"));
}

/* A hostile or sleepy operator: whatever the text, an answer and no overrun (for the sanitizers).
 */
static void any_text(void **state)
{
	static const char alphabet[] = "scale blur inside cover rotate sharpen 0123456789xx.,, \t";
	unsigned seed = 1;

	for (unsigned n = 0; n < 20000; n++) {
		char text[40];
		unsigned length = n % (sizeof(text) - 1);

		for (unsigned i = 0; i < length; i++) {
			seed = seed * 1103515245U + 12345U;
			text[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
		}
		text[length] = '\0';
		setup(state);
		add("v", text);
		if (build())
			assert_true(error[0] != '\0');
	}
}

static void sizes_are_those_from_the_whole_image(void **state)
{
	struct geometry g;

	(void)state;
	add("medium", "scale 800x800 inside");
	add("thumb", "scale 160x160 inside");
	add("up", "scale 100x100 inside, scale 400x400 inside");
	assert_int_equal(build(), 0);
	for (int w = 1; w < 5000; w += 37)
		for (int h = 1; h < 5000; h += 41) {
			int width, height;

			size_fit(w, h, 160, 160, &width, &height);
			geometry_of_step(&g, &plan, 1, w, h);
			assert_int_equal(g.width, width);
			assert_int_equal(g.height, height);
		}
	/* a later scale never enlarges what an earlier one has made small */
	geometry_of_step(&g, &plan, (unsigned)file_of(2), 1000, 500);
	assert_int_equal(g.width, 100);
	assert_int_equal(g.height, 50);
}

static void assert_size(unsigned variant, int width, int height, int wanted_width,
                        int wanted_height)
{
	struct geometry g;

	geometry_of_step(&g, &plan, (unsigned)file_of(variant), width, height);
	if (g.width != wanted_width || g.height != wanted_height)
		fail_msg("%s of %dx%d: %dx%d, not %dx%d", conf.variant[variant].operations, width,
		         height, g.width, g.height, wanted_width, wanted_height);
}

static void sizes_of_every_fit(void **state)
{
	(void)state;
	conf.limits.width = conf.limits.height = 65500;
	conf.limits.pixels = UINT64_C(1) << 32;
	add("cover", "scale 300x200 cover");
	add("exact", "scale 300x200 exact");
	add("cover+", "scale 300x200 cover");
	add("exact+", "scale 300x200 exact");
	add("inside+", "scale 300x200 inside");
	add("chain", "scale 300x200 cover, scale 150x150 inside, rotate 90");
	add("turned", "rotate 270, scale 300x200 cover");
	for (unsigned i = 2; i < 5; i++)
		conf.variant[i].enlarge = CONF_YES;
	assert_int_equal(build(), 0);
	assert_size(0, 1000, 1000, 300, 200);
	assert_size(0, 299, 1000, 299, 199);
	assert_size(0, 1000, 150, 225, 150);
	assert_size(0, 1, 1000, 1, 1);
	assert_size(1, 1000, 1000, 300, 200);
	assert_size(1, 100, 1000, 100, 200);
	assert_size(1, 100, 100, 100, 100);
	assert_size(2, 10, 10, 300, 200);
	assert_size(3, 10, 10, 300, 200);
	assert_size(4, 10, 10, 200, 200);
	assert_size(4, 1, 1000, 1, 200);
	assert_size(4, 30, 1, 300, 10);
	assert_size(5, 1000, 1000, 100, 150);
	assert_size(6, 1000, 1000, 300, 200);
	assert_size(6, 1000, 250, 250, 167);
}

/* Whatever the image, a cover made by way of another has the size that it has without, and cuts off
 * nothing more. */
static void derived_covers_are_the_same(void **state)
{
	static const int boxes[][2] = { { 160, 160 }, { 100, 70 }, { 7, 300 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(boxes); i++) {
		struct plan both;
		char text[64];

		setup(state);
		for (int by = 3; by >= 1; by -= 2) {
			snprintf(text, sizeof(text), "scale %dx%d cover", boxes[i][0] * by,
			         boxes[i][1] * by);
			add("v", text);
		}
		assert_int_equal(build(), 0);
		both = plan;
		assert_int_equal(both.root_child_count, 1);
		conf.variant[0] = conf.variant[1];
		conf.variant_count = 1;
		assert_int_equal(build(), 0);
		for (int w = 1; w < 1200; w += 7)
			for (int h = 1; h < 1200; h += 11) {
				struct geometry a, b;

				geometry_of_step(&a, &plan, 0, w, h);
				geometry_of_step(&b, &both, 1, w, h);
				assert_int_equal(a.width, b.width);
				assert_int_equal(a.height, b.height);
				if (b.shown_width < 1 || b.shown_height < 1)
					fail_msg("%dx%d: %dx%d %g %g", w, h, a.width, a.height,
					         b.shown_width, b.shown_height);
			}
	}
}

static void the_decoder_is_asked_for_what_is_shown(void **state)
{
	struct memory_need_step need;

	(void)state;
	conf.limits.width = conf.limits.height = 65500;
	conf.limits.pixels = UINT64_C(1) << 32;
	add("v", "scale 100x100 cover");
	assert_int_equal(build(), 0);
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
	assert_int_equal(build(), 0);
	memory_need_root(&plan, 400, 10, 1, &need);
	assert_int_equal(need.width, 400);
	assert_int_equal(need.height, 10);
	assert_int_equal(need.chroma_width, 400);
	snprintf(conf.variant[0].operations, sizeof(conf.variant[0].operations),
	         "scale 100x100 cover, grayscale");
	assert_int_equal(build(), 0);
	memory_need_root(&plan, 4000, 1000, 1, &need);
	assert_int_equal(need.width, 400);
	assert_int_equal(need.chroma_width, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(reference_variants, setup),
		cmocka_unit_test_setup(parents_stand_before_children, setup),
		cmocka_unit_test_setup(no_derivation_unless_larger_both_ways, setup),
		cmocka_unit_test_setup(every_chain_begins_with_a_scale, setup),
		cmocka_unit_test_setup(blanks_are_free, setup),
		cmocka_unit_test_setup(errors_say_what_was_expected, setup),
		cmocka_unit_test_setup(covers_of_the_same_proportions_are_derived, setup),
		cmocka_unit_test_setup(anything_is_derived_from_the_whole, setup),
		cmocka_unit_test_setup(what_is_enlarged_is_no_source, setup),
		cmocka_unit_test_setup(enlarging_has_the_limits_of_uploads, setup),
		cmocka_unit_test_setup(chroma_is_shared_downwards, setup),
		cmocka_unit_test_setup(less_chroma_is_never_made_to_more, setup),
		cmocka_unit_test_setup(rotations_come_last, setup),
		cmocka_unit_test_setup(sharpening_is_not_blurring, setup),
		cmocka_unit_test_setup(files_are_as_configured, setup),
		cmocka_unit_test_setup(too_many_steps, setup),
		cmocka_unit_test_setup(too_many_operations, setup),
		cmocka_unit_test_setup(any_text, setup),
		cmocka_unit_test_setup(sizes_are_those_from_the_whole_image, setup),
		cmocka_unit_test_setup(sizes_of_every_fit, setup),
		cmocka_unit_test_setup(derived_covers_are_the_same, setup),
		cmocka_unit_test_setup(the_decoder_is_asked_for_what_is_shown, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
