/* test_plan.c - the tree of steps: sharing, deriving and order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "stage_ids.h"
#include "support/plan_fixture.h"

static unsigned children(const struct plan *p, int parent)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->step_count; i++)
		n += p->step[i].parent == parent;
	return n;
}

static void assert_step(int index, unsigned stage, int parent, unsigned child_count)
{
	assert_true(index >= 0 && (unsigned)index < plan.step_count);
	assert_int_equal(plan.step[index].op.class->stage, stage);
	assert_int_equal(plan.step[index].parent, parent);
	assert_int_equal(children(&plan, index), child_count);
}

static void variants_share_their_leading_steps(void **state)
{
	(void)state;
	plan_add_variant("medium", "scale 800x800 inside");
	plan_add_variant("thumb", "scale 160x160 inside");
	plan_add_variant("blurred", "scale 800x800 inside, blur 8");
	assert_int_equal(plan_make(), 0);
	/* medium and blurred share their scale, and thumb is derived from it. */
	assert_int_equal(plan.step_count, 6);
	assert_int_equal(children(&plan, PLAN_ROOT), 1);
	assert_int_equal(plan.files.count, 3);
	assert_step(0, STAGE_SCALE, PLAN_ROOT, 3);
	assert_int_equal(plan.step[0].op.width, 800);
	assert_step(1, STAGE_SCALE, 0, 1);
	assert_int_equal(plan.step[1].op.width, 160);
	assert_step(plan_file_of(0), STAGE_JPEG_ENCODE, 0, 0);
	assert_step(plan_file_of(1), STAGE_JPEG_ENCODE, 1, 0);
	assert_int_equal(plan_parent_of(plan_file_of(2))->op.class->stage, STAGE_BLUR);
	assert_int_equal(plan_parent_of(plan_file_of(2))->parent, 0);
	assert_true(plan_parent_of(plan_file_of(2))->op.sigma > 7.99 &&
	            plan_parent_of(plan_file_of(2))->op.sigma < 8.01);
}

static void steps_of_variants_that_are_not_made_are_unneeded(void **state)
{
	(void)state;
	plan_add_variant("medium", "scale 800x800 inside");
	plan_add_variant("thumb", "scale 160x160 inside");
	plan_add_variant("blurred", "scale 800x800 inside, blur 8");
	assert_int_equal(plan_make(), 0);
	uint64_t blur = UINT64_C(1) << plan.step[plan_file_of(2)].parent, file[3];

	for (unsigned i = 0; i < 3; i++)
		file[i] = UINT64_C(1) << plan_file_of(i);
	assert_int_equal(plan_unneeded(&plan, 7), 0);
	assert_int_equal(plan_unneeded(&plan, UINT32_MAX), 0);
	assert_int_equal(plan_unneeded(&plan, 0), (1 << plan.step_count) - 1);
	/* thumb is derived from the scale of medium, which stays. */
	assert_int_equal(plan_unneeded(&plan, 2), file[0] | file[2] | blur);
	assert_int_equal(plan_unneeded(&plan, 4), file[0] | file[1] | 2);
}

static void parents_precede_their_children(void **state)
{
	(void)state;
	plan_add_variant("tiny", "scale 20x20 inside");
	plan_add_variant("small", "scale 100x100 inside, blur 1.5");
	plan_add_variant("large", "scale 2000x2000 inside");
	plan_add_variant("same", "scale 2000x2000 inside, blur 3, scale 50x50 inside");
	plan_add_variant("whole", "");
	assert_int_equal(plan_make(), 0);
	for (unsigned i = 0; i < plan.step_count; i++)
		assert_true(plan.step[i].parent < (int)i);
	/* whole <- large <- small <- tiny: each is derived from the nearest that is large enough.
	 */
	assert_int_equal(children(&plan, PLAN_ROOT), 1);
	assert_int_equal(plan_parent_of(plan_file_of(4))->op.width, 0);
	assert_int_equal(plan_parent_of(plan_file_of(2))->op.width, 2000);
	assert_int_equal(plan.step[plan_parent_of(plan_file_of(2))->parent].op.width, 0);
	assert_int_equal(plan.step[plan_parent_of(plan_file_of(0))->parent].op.width, 100);
}

static void a_step_is_derived_only_from_a_picture_larger_in_both_directions(void **state)
{
	(void)state;
	plan_add_variant("wide", "scale 800x100 inside");
	plan_add_variant("high", "scale 100x800 inside");
	plan_add_variant("near", "scale 500x90 inside");
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 3);
}

static void every_chain_begins_with_a_scale(void **state)
{
	(void)state;
	plan_add_variant("empty", "  ");
	plan_add_variant("blurred", "blur 2");
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 1);
	assert_step(0, STAGE_SCALE, PLAN_ROOT, 2);
	assert_int_equal(plan.step[0].op.width, 0);
	assert_int_equal(plan.step[0].op.height, 0);
}

static void a_cover_is_derived_from_one_of_the_same_proportions(void **state)
{
	(void)state;
	plan_add_variant("large", "scale 800x600 cover");
	plan_add_variant("small", "scale 400x300 cover, blur 2");
	plan_add_variant("other", "scale 300x300 cover");
	plan_add_variant("inside", "scale 100x100 inside");
	plan_add_variant("exact", "scale 100x75 exact");
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 4);
	assert_int_equal(plan.step[0].op.fit, PLAN_COVER);
	assert_int_equal(plan.step[0].op.width, 800);
	assert_int_equal(plan_parent_of(plan_file_of(1))->parent, 1);
	assert_int_equal(plan.step[1].parent, 0);
	assert_int_equal(plan_parent_of(plan_file_of(2))->parent, PLAN_ROOT);
	assert_int_equal(plan_parent_of(plan_file_of(3))->parent, PLAN_ROOT);
	assert_int_equal(plan_parent_of(plan_file_of(4))->parent, PLAN_ROOT);
}

static void every_fit_is_derived_from_the_whole_image(void **state)
{
	(void)state;
	plan_add_variant("whole", "blur 3");
	plan_add_variant("cover", "scale 800x600 cover");
	plan_add_variant("exact", "scale 800x600 exact");
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 1);
	assert_int_equal(plan_parent_of(plan_file_of(1))->parent, 0);
	assert_int_equal(plan_parent_of(plan_file_of(2))->parent, 0);
}

static void an_enlarged_picture_is_never_a_source(void **state)
{
	(void)state;
	conf.limits.width = conf.limits.height = 1000;
	conf.limits.pixels = 500000;
	plan_add_variant("large", "scale 800x600 inside");
	plan_add_variant("small", "scale 100x100 inside");
	conf.variant[0].enlarge = CONF_YES;
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 2);
	/* It may be derived itself. */
	conf.variant[0].enlarge = CONF_NO;
	conf.variant[1].enlarge = CONF_YES;
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 1);
	assert_true(plan_parent_of(plan_file_of(1))->op.may_enlarge);
}

static void a_step_serves_variants_with_less_chroma(void **state)
{
	(void)state;
	plan_add_variant("grey", "grayscale, scale 800x800 inside, blur 3");
	plan_add_variant("fine", "scale 1600x1600 inside");
	plan_add_variant("coarse", "scale 800x800 inside, blur 3");
	plan_add_variant("fine2", "scale 800x800 inside");
	plan_add_variant("alone", "scale 80x90 cover, grayscale");
	conf.variant[1].chroma = conf.variant[3].chroma = CONF_CHROMA_444;
	assert_int_equal(plan_make(), 0);
	/* grey has only its file to itself; coarse gets no more chroma than it asks for. */
	assert_int_equal(plan.step[plan_file_of(0)].parent, plan.step[plan_file_of(2)].parent);
	assert_true(plan.step[plan_file_of(0)].encoding.is_grey);
	assert_false(plan.step[plan_file_of(2)].encoding.is_grey);
	assert_int_equal(plan_parent_of(plan_file_of(2))->chroma, CHROMA_420);
	assert_int_equal(plan_parent_of(plan_file_of(3))->chroma, CHROMA_444);
	assert_int_equal(plan_parent_of(plan_file_of(1))->parent, PLAN_ROOT);
	assert_int_equal(plan_parent_of(plan_file_of(3))->parent,
	                 plan.step[plan_file_of(1)].parent);
	assert_int_equal(plan_parent_of(plan_file_of(4))->chroma, CHROMA_NONE);
}

static void a_step_never_serves_a_variant_with_more_chroma(void **state)
{
	(void)state;
	plan_add_variant("large", "scale 1600x1600 inside");
	plan_add_variant("small", "scale 160x160 inside");
	conf.variant[1].chroma = CONF_CHROMA_444;
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 2);
	plan_add_variant("grey", "scale 100x100 inside, grayscale");
	conf.variant[1].chroma = CONF_CHROMA_420;
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, PLAN_ROOT), 1);
}

static void sharpening_and_blurring_are_different_steps(void **state)
{
	(void)state;
	plan_add_variant("a", "blur 1");
	plan_add_variant("b", "sharpen .5");
	plan_add_variant("c", "sharpen 0.5 1");
	plan_add_variant("d", "sharpen .5 2");
	assert_int_equal(plan_make(), 0);
	assert_int_equal(children(&plan, 0), 3);
	assert_int_equal(plan.step[plan_file_of(1)].parent, plan.step[plan_file_of(2)].parent);
	assert_true(plan_parent_of(plan_file_of(1))->op.amount > .49 &&
	            plan_parent_of(plan_file_of(1))->op.sigma > .99);
}

static void a_file_is_encoded_as_its_variant_says(void **state)
{
	(void)state;
	plan_add_variant("a", "");
	conf.variant[0].progressive = CONF_YES;
	plan_add_variant("b", "");
	conf.variant[1].optimize = CONF_YES;
	conf.variant[1].quality = 33;
	assert_int_equal(plan_make(), 0);
	assert_true(plan.step[plan_file_of(0)].encoding.is_progressive &&
	            !plan.step[plan_file_of(0)].encoding.is_optimized);
	assert_true(!plan.step[plan_file_of(1)].encoding.is_progressive &&
	            plan.step[plan_file_of(1)].encoding.is_optimized);
	assert_int_equal(plan.step[plan_file_of(0)].encoding.quality, 80);
	assert_int_equal(plan.step[plan_file_of(1)].encoding.quality, 33);
}

static void too_many_steps_are_an_error(void **state)
{
	char operations[CONF_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < CONF_VARIANT_MAX; i++) {
		char name[8];

		snprintf(name, sizeof(name), "v%u", i);
		snprintf(operations, sizeof(operations),
		         "scale %ux9 inside, blur 1, blur 2, blur 3", 10 + i);
		plan_add_variant(name, operations);
	}
	assert_int_equal(plan_make(), -EINVAL);
	assert_non_null(strstr(plan_error, "more than 64 different steps"));
}

static void a_level_makes_fewer_and_cheaper_files(void **state)
{
	(void)state;
	plan_add_variant("medium", "scale 800x800 inside");
	plan_add_variant("thumb", "scale 160x160 inside");
	plan_add_variant("blurred", "scale 800x800 inside, blur 8");
	strcpy(conf.overload.degrade, "quality 65, skip medium, no-optimize, skip blurred");
	conf.variant[1].optimize = CONF_YES;
	assert_int_equal(plan_make_level(2), 0);
	assert_int_equal(plan.step_count, 5);
	assert_int_equal(plan.files.count, 3);
	assert_false(plan_makes(&plan, 0));
	assert_true(plan_makes(&plan, 1) && plan_makes(&plan, 2));
	assert_int_equal(plan_file_of(0), -1);
	assert_int_equal(plan.step[plan_file_of(1)].encoding.quality, 65);
	assert_true(plan.step[plan_file_of(1)].encoding.is_optimized);
	assert_int_equal(plan_make_level(4), 0);
	assert_int_equal(plan.step_count, 2); /* nothing of a skipped variant is left */
	assert_step(0, STAGE_SCALE, PLAN_ROOT, 1);
	assert_int_equal(plan.step[0].op.width, 160);
	assert_false(plan.step[plan_file_of(1)].encoding.is_optimized);
	assert_int_equal(plan_make(), 0);
	assert_int_equal(plan.step_count, 6);
	assert_int_equal(plan.step[plan_file_of(1)].encoding.quality, 80);
}

/* Makes three variants of a blurred picture, and says whether it is made without pixels. */
static bool is_made_for_encoders(const char *last)
{
	plan_add_variant("thumb", "scale 8x8 inside");
	plan_add_variant("blurred", "blur 8");
	plan_add_variant("last", last);
	for (unsigned i = 0; i < conf.variant_count; i++)
		conf.variant[i].optimize = CONF_YES;
	assert_int_equal(plan_make(), 0);
	return plan_parent_of(plan_file_of(1))->is_for_encoder;
}

static void a_picture_that_is_only_encoded_needs_no_pixels(void **state)
{
	assert_true(is_made_for_encoders("blur 8"));
	plan_reset(state);
	assert_true(is_made_for_encoders("blur 8, grayscale"));
	plan_reset(state);
	assert_false(is_made_for_encoders("blur 8, sharpen 1")); /* a step follows */
	plan_reset(state);
	conf.experiment.pixel_own = CONF_NO;
	assert_false(is_made_for_encoders("blur 8"));
}

static void a_picture_needs_pixels_for_other_encoders_and_for_the_placeholder(void **state)
{
	assert_true(is_made_for_encoders("blur 8"));
	conf.variant[2].progressive = CONF_YES;
	assert_int_equal(plan_make(), 0);
	assert_false(plan_parent_of(plan_file_of(1))->is_for_encoder);
	conf.variant[2].progressive = CONF_NO;
	conf.variant[2].optimize = CONF_NO;
	assert_int_equal(plan_make(), 0);
	assert_false(plan_parent_of(plan_file_of(1))->is_for_encoder);
	plan_reset(state);
	plan_add_variant("blurred", "blur 8");
	conf.variant[0].optimize = CONF_YES;
	assert_int_equal(plan_make(), 0);
	assert_int_equal(plan.placeholder, plan_file_of(0));
	assert_false(plan_parent_of(plan_file_of(0))->is_for_encoder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_level_makes_fewer_and_cheaper_files, plan_reset),
		cmocka_unit_test_setup(variants_share_their_leading_steps, plan_reset),
		cmocka_unit_test_setup(steps_of_variants_that_are_not_made_are_unneeded,
		                       plan_reset),
		cmocka_unit_test_setup(parents_precede_their_children, plan_reset),
		cmocka_unit_test_setup(
			a_step_is_derived_only_from_a_picture_larger_in_both_directions,
			plan_reset),
		cmocka_unit_test_setup(every_chain_begins_with_a_scale, plan_reset),
		cmocka_unit_test_setup(a_cover_is_derived_from_one_of_the_same_proportions,
		                       plan_reset),
		cmocka_unit_test_setup(every_fit_is_derived_from_the_whole_image, plan_reset),
		cmocka_unit_test_setup(an_enlarged_picture_is_never_a_source, plan_reset),
		cmocka_unit_test_setup(a_step_serves_variants_with_less_chroma, plan_reset),
		cmocka_unit_test_setup(a_step_never_serves_a_variant_with_more_chroma, plan_reset),
		cmocka_unit_test_setup(sharpening_and_blurring_are_different_steps, plan_reset),
		cmocka_unit_test_setup(a_file_is_encoded_as_its_variant_says, plan_reset),
		cmocka_unit_test_setup(too_many_steps_are_an_error, plan_reset),
		cmocka_unit_test_setup(a_picture_that_is_only_encoded_needs_no_pixels, plan_reset),
		cmocka_unit_test_setup(
			a_picture_needs_pixels_for_other_encoders_and_for_the_placeholder,
			plan_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
