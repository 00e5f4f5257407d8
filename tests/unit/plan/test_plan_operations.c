/* test_plan_operations.c - the grammar of operations, and its errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "support/plan_fixture.h"

static void blanks_between_words_are_ignored(void **state)
{
	(void)state;
	plan_add_variant("v", " scale\t7x9   inside ,blur .5,scale 65500x1 inside");
	assert_int_equal(plan_make(), 0);
	assert_int_equal(plan.step_count, 4);
	assert_int_equal(plan.step[0].op.width, 7);
	assert_int_equal(plan.step[0].op.height, 9);
}

static const struct {
	const char *operations, *says;
} invalid[] = {
	{ "scal 8x8 inside", "variant.v: operations: 'scal' is not an operation; "
	                     "expected scale, blur, sharpen, grayscale or rotate" },
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
	{ "scale 8x8 outside", "followed by 'outside'; expected 'inside', 'cover' or 'exact'" },
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
	{ "sharpen 1 0.2", "'0.2' is not a sigma for sharpen; "
	                   "expected a number of pixels, 0.3..20, or none for 1" },
	{ "sharpen 1 21", "'21' is not a sigma for sharpen" },
	{ "sharpen 1 x", "'x' is not a sigma for sharpen" },
	{ "sharpen 1 1 1", "expected a comma" },
	{ "grayscale 1", "expected a comma" },
	{ "greyscale", "'greyscale' is not an operation; "
	               "expected scale, blur, sharpen, grayscale or rotate" },
	{ "rotate", "'' is not an angle for rotate; expected 90, 180 or 270, degrees clockwise" },
	{ "rotate 45", "'45' is not an angle" },
	{ "rotate -90", "'-90' is not an angle" },
	{ "rotate 360", "'360' is not an angle" },
	{ "rotate 90 blur 8", "expected a comma" },
};

static void errors_say_what_was_expected(void **state)
{
	for (size_t i = 0; i < COUNT_OF(invalid); i++) {
		plan_reset(state);
		plan_add_variant("good", "");
		plan_add_variant("v", invalid[i].operations);
		plan_at_fault = 99;
		assert_int_equal(plan_make(), -EINVAL);
		assert_int_equal(plan_at_fault, 1);
		if (!strstr(plan_error, invalid[i].says))
			fail_msg("%s: %s", invalid[i].operations, plan_error);
	}
}

static void enlarged_sizes_must_keep_the_limits_of_uploads(void **state)
{
	static const struct {
		const char *operations, *says;
	} wrong[] = {
		{ "scale 1001x10 inside",
		  "variant.v: operations: scale 1001x10 with enlarge = yes exceeds "
		  "limits.width = 1000; expected no more than that" },
		{ "scale 10x901 exact", "exceeds limits.height = 900" },
		{ "blur 1, scale 900x900 cover", "exceeds limits.pixels = 500000" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		plan_reset(state);
		conf.limits.width = 1000;
		conf.limits.height = 900;
		conf.limits.pixels = 500000;
		plan_add_variant("v", wrong[i].operations);
		assert_int_equal(plan_make(), 0);
		conf.variant[0].enlarge = CONF_YES;
		assert_int_equal(plan_make(), -EINVAL);
		if (!strstr(plan_error, wrong[i].says))
			fail_msg("%s: %s", wrong[i].operations, plan_error);
	}
}

static void rotations_are_merged_into_a_last_step(void **state)
{
	(void)state;
	plan_add_variant("plain", "scale 800x600 inside, blur 2");
	plan_add_variant("turned", "rotate 90, scale 600x800 inside, rotate 180, blur 2");
	plan_add_variant("not", "rotate 90, rotate 270");
	plan_add_variant("back", "rotate 180");
	assert_int_equal(plan_make(), 0);
	assert_int_equal(plan_parent_of(plan_file_of(1))->op.rotation, 270);
	assert_int_equal(plan_parent_of(plan_file_of(1))->parent,
	                 plan.step[plan_file_of(0)].parent);
	assert_int_equal(plan_parent_of(plan_file_of(2))->op.rotation, 0);
	assert_int_equal(plan_parent_of(plan_file_of(3))->op.rotation, 180);
	assert_int_equal(plan_parent_of(plan_file_of(3))->parent,
	                 plan.step[plan_file_of(2)].parent);
}

static void too_many_operations_are_an_error(void **state)
{
	char operations[CONF_TEXT_MAX] = "blur 1";

	(void)state;
	for (unsigned i = 0; i < 33; i++)
		strcat(operations, ",blur 1");
	plan_add_variant("v", operations);
	assert_int_equal(plan_make(), -EINVAL);
	assert_non_null(strstr(plan_error, "more than 32 operations"));
}

/* Every text has a result, without an overrun that a sanitizer would report. */
static void hostile_texts_are_parsed_or_refused(void **state)
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
		plan_reset(state);
		plan_add_variant("v", text);
		if (plan_make())
			assert_true(plan_error[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(blanks_between_words_are_ignored, plan_reset),
		cmocka_unit_test_setup(errors_say_what_was_expected, plan_reset),
		cmocka_unit_test_setup(enlarged_sizes_must_keep_the_limits_of_uploads, plan_reset),
		cmocka_unit_test_setup(rotations_are_merged_into_a_last_step, plan_reset),
		cmocka_unit_test_setup(too_many_operations_are_an_error, plan_reset),
		cmocka_unit_test_setup(hostile_texts_are_parsed_or_refused, plan_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
