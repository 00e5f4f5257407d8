/* test_setup.c - configurations in use: what is replaced lives as long as somebody refers to it, or a visit may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../stages/setup.h"

static struct setups setups;
static struct conf conf;
static struct plan plan;

static unsigned alive(void)
{
	unsigned n = 0;

	for (const struct setup *s = setups.all; s; s = s->next)
		n++;
	return n;
}

static int begin(void **state)
{
	(void)state;
	conf = (struct conf){ .variant_count = 1, .variant[0].name = "thumb" };
	plan = (struct plan){ .step_count = 5 };
	return setups_init(&setups, &conf, &plan);
}

static int end(void **state)
{
	(void)state;
	setups_fini(&setups);
	return 0;
}

/* With another number of steps, for it to be known by. */
static void change(unsigned step_count)
{
	plan.step_count = step_count;
	assert_int_equal(setups_prepare(&setups, &conf, &plan), 0);
	assert_int_equal(setups_commit(&setups)->plan.step_count, step_count);
}

static void the_first_is_in_force(void **state)
{
	(void)state;
	struct setup *s = setup_take(&setups);

	assert_int_equal(s->plan.step_count, 5);
	assert_string_equal(s->file_name[0], "thumb.jpg");
	setup_drop(&setups, s);
	assert_int_equal(alive(), 1);
}

static void what_is_replaced_lives_until_the_change_after(void **state)
{
	(void)state;
	change(6);
	assert_int_equal(alive(), 2);
	change(7);
	assert_int_equal(alive(), 2);
	assert_int_equal(setups.replaced->plan.step_count, 6);
}

static void a_reference_keeps_it(void **state)
{
	(void)state;
	struct setup *first = setup_take(&setups);

	change(6);
	change(7);
	assert_int_equal(alive(), 3);
	assert_int_equal(first->plan.step_count, 5);
	setup_drop(&setups, first);
	assert_int_equal(alive(), 2);
}

static void what_is_cancelled_was_never_in_force(void **state)
{
	(void)state;
	plan.step_count = 9;
	assert_int_equal(setups_prepare(&setups, &conf, &plan), 0);
	struct setup *s = setup_take(&setups);

	assert_int_equal(s->plan.step_count, 5);
	setup_drop(&setups, s);
	setups_cancel(&setups);
	assert_int_equal(alive(), 1);
}

static void the_most_steps_of_all_that_are_used(void **state)
{
	const struct plan small = { .step_count = 2 };

	(void)state;
	change(20);
	change(3);
	assert_int_equal(setups_step_count_max(&setups, &small), 20);
	change(4); /* that with 20 goes */
	assert_int_equal(setups_step_count_max(&setups, &small), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_is_in_force, begin, end),
		cmocka_unit_test_setup_teardown(what_is_replaced_lives_until_the_change_after, begin, end),
		cmocka_unit_test_setup_teardown(a_reference_keeps_it, begin, end),
		cmocka_unit_test_setup_teardown(what_is_cancelled_was_never_in_force, begin, end),
		cmocka_unit_test_setup_teardown(the_most_steps_of_all_that_are_used, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
