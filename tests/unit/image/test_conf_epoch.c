/* test_conf_epoch.c - the life of configurations: a replaced one lives as long as it has
 * references, and until the next commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "image/conf_epoch.h"

static struct conf_epochs conf_epochs;
static struct conf conf;
static struct plan plan;

static unsigned alive(void)
{
	unsigned n = 0;

	for (const struct conf_epoch *s = conf_epochs.all; s; s = s->next)
		n++;
	return n;
}

static int begin(void **state)
{
	(void)state;
	conf = (struct conf){ .variant_count = 1, .variant[0].name = "thumb" };
	plan = (struct plan){ .step_count = 5 };
	return conf_epochs_init(&conf_epochs, &conf, &plan);
}

static int end(void **state)
{
	(void)state;
	conf_epochs_fini(&conf_epochs);
	return 0;
}

/* Commits an epoch, which its number of steps identifies. */
static void change_when(unsigned step_count, bool is_settled)
{
	plan.step_count = step_count;
	assert_int_equal(conf_epochs_prepare(&conf_epochs, &conf, &plan), 0);
	conf_epochs_commit(&conf_epochs, is_settled);
	assert_int_equal(conf_epochs_now(&conf_epochs)->plan.step_count, step_count);
	assert_ptr_equal(&conf_epochs_now(&conf_epochs)->conf, &conf_epochs.all->conf);
}

static void change(unsigned step_count)
{
	change_when(step_count, true);
}

static void the_first_epoch_is_the_current_one(void **state)
{
	(void)state;
	struct conf_epoch *s = conf_epoch_ref(&conf_epochs);

	assert_int_equal(s->plan.step_count, 5);
	conf_epoch_unref(&conf_epochs, s);
	assert_int_equal(alive(), 1);
}

static void a_replaced_epoch_lives_until_the_next_commit(void **state)
{
	(void)state;
	change(6);
	assert_int_equal(alive(), 2);
	change(7);
	assert_int_equal(alive(), 2);
	assert_int_equal(conf_epochs.all->next->plan.step_count, 6);
}

static void replaced_epochs_live_while_a_worker_may_use_them(void **state)
{
	(void)state;
	change(6);
	change_when(7, false);
	change_when(8, false);
	assert_int_equal(alive(), 4);
	change(9);
	assert_int_equal(alive(), 2);
	change_when(10, false);
	assert_int_equal(alive(), 3); /* and are freed at the end */
}

static void a_reference_keeps_an_epoch_alive(void **state)
{
	(void)state;
	struct conf_epoch *first = conf_epoch_ref(&conf_epochs);

	change(6);
	change(7);
	assert_int_equal(alive(), 3);
	assert_int_equal(first->plan.step_count, 5);
	conf_epoch_unref(&conf_epochs, first);
	assert_int_equal(alive(), 2);
}

static void a_cancelled_epoch_is_never_current(void **state)
{
	(void)state;
	plan.step_count = 9;
	assert_int_equal(conf_epochs_prepare(&conf_epochs, &conf, &plan), 0);
	struct conf_epoch *s = conf_epoch_ref(&conf_epochs);

	assert_int_equal(s->plan.step_count, 5);
	conf_epoch_unref(&conf_epochs, s);
	conf_epochs_cancel(&conf_epochs);
	assert_int_equal(alive(), 1);
}

static void the_largest_step_count_of_all_living_epochs_counts(void **state)
{
	(void)state;
	change(20);
	change(3);
	assert_int_equal(conf_epochs_step_count_max(&conf_epochs, 2), 20);
	change(4); /* releases the one with 20 steps */
	assert_int_equal(conf_epochs_step_count_max(&conf_epochs, 2), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_epoch_is_the_current_one, begin, end),
		cmocka_unit_test_setup_teardown(a_replaced_epoch_lives_until_the_next_commit, begin,
		                                end),
		cmocka_unit_test_setup_teardown(replaced_epochs_live_while_a_worker_may_use_them,
		                                begin, end),
		cmocka_unit_test_setup_teardown(a_reference_keeps_an_epoch_alive, begin, end),
		cmocka_unit_test_setup_teardown(a_cancelled_epoch_is_never_current, begin, end),
		cmocka_unit_test_setup_teardown(the_largest_step_count_of_all_living_epochs_counts,
		                                begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
