/* test_conf_degrade.c - the notation of overload.degrade, and what a level makes of a variant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "conf/conf_degrade.h"

static struct conf_degrade degrade;

static void no_text_has_no_steps(void **state)
{
	(void)state;
	assert_true(conf_degrade_parse("", &degrade));
	assert_int_equal(degrade.count, 0);
	assert_true(conf_degrade_parse(" \t", &degrade));
	assert_int_equal(degrade.count, 0);
}

static void steps_keep_their_order(void **state)
{
	(void)state;
	assert_true(conf_degrade_parse(" skip   blurred ,quality 65,no-progressive , no-optimize",
	                               &degrade));
	assert_int_equal(degrade.count, 4);
	assert_int_equal(degrade.step[0].kind, CONF_DEGRADE_SKIP);
	assert_string_equal(degrade.step[0].variant, "blurred");
	assert_string_equal(degrade.step[0].text, "skip blurred");
	assert_int_equal(degrade.step[1].kind, CONF_DEGRADE_QUALITY);
	assert_int_equal(degrade.step[1].quality, 65);
	assert_string_equal(degrade.step[1].text, "quality 65");
	assert_int_equal(degrade.step[2].kind, CONF_DEGRADE_NO_PROGRESSIVE);
	assert_int_equal(degrade.step[3].kind, CONF_DEGRADE_NO_OPTIMIZE);
	assert_string_equal(degrade.step[3].text, "no-optimize");
	assert_true(conf_degrade_is_valid("skip a, skip b, skip c, skip d, skip e, skip f, "
	                                  "quality 1, quality 100"));
	assert_true(conf_degrade_is_valid("skip 1234567890123456789012345678901"));
}

static void other_forms_are_refused(void **state)
{
	static const char *const bad[] = {
		",",
		"quality",
		"quality 65,",
		",quality 65",
		"quality 65,,no-optimize",
		"quality 0",
		"quality 101",
		"quality 1000",
		"quality x",
		"quality 65x",
		"quality -1",
		"quality 65 66",
		"quality65",
		"no-optimize 1",
		"no-optimise",
		"skip",
		"skip a b",
		"skip A",
		"skip a.jpg",
		"skip 12345678901234567890123456789012",
		"fast-dct",
		"quality 65, quality 65",
		"skip a, quality 3, skip  a",
		"skip a, skip b, skip c, skip d, skip e, skip f, skip g, skip h, skip i",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		if (conf_degrade_is_valid(bad[i]))
			fail_msg("%s", bad[i]);
}

static void a_level_has_the_steps_before_it(void **state)
{
	const struct conf_variant blurred = {
		.name = "blurred", .quality = 75, .optimize = CONF_YES, .progressive = CONF_YES
	};
	struct conf_variant made;

	(void)state;
	assert_true(conf_degrade_parse(
		"quality 80, quality 65, no-optimize, no-progressive, skip blurred, quality 70",
		&degrade));
	assert_true(conf_degrade_variant(&degrade, 0, &blurred, &made));
	assert_memory_equal(&made, &blurred, sizeof made);
	assert_true(conf_degrade_variant(&degrade, 1, &blurred, &made));
	assert_int_equal(made.quality, 75);
	assert_true(conf_degrade_variant(&degrade, 2, &blurred, &made));
	assert_int_equal(made.quality, 65);
	assert_int_equal(made.optimize, CONF_YES);
	assert_true(conf_degrade_variant(&degrade, 4, &blurred, &made));
	assert_int_equal(made.optimize, CONF_NO);
	assert_int_equal(made.progressive, CONF_NO);
	assert_false(conf_degrade_variant(&degrade, 5, &blurred, &made));
	assert_false(conf_degrade_variant(&degrade, 99, &blurred, &made));
	assert_int_equal(made.quality, 65);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_text_has_no_steps),
		cmocka_unit_test(steps_keep_their_order),
		cmocka_unit_test(other_forms_are_refused),
		cmocka_unit_test(a_level_has_the_steps_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
