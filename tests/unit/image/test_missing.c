/* test_missing.c - the line of images of which a variant is asked for: its bounds, and its waiters.
 * No thread serves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "image/missing.h"

static struct missing missing;
static struct missing_waiter waiter[64];

static int set_up(void **state)
{
	(void)state;
	memset(&missing, 0, sizeof missing);
	memset(waiter, 0, sizeof waiter);
	return missing_init(&missing, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	missing_fini(&missing);
	return 0;
}

/* client < 0: none. */
static enum missing_answer ask(unsigned image, int client, unsigned w)
{
	struct client_key key = { { 1, (uint8_t)client } };
	char id[ULID_LENGTH + 1];

	snprintf(id, sizeof id, "%026u", image);
	return missing_ask(&missing, id, client < 0 ? NULL : &key, &waiter[w]);
}

static unsigned taken(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MISSING_MAX; i++)
		n += missing.slot[i].is_taken;
	return n;
}

static void all_who_ask_for_an_image_share_a_slot(void **state)
{
	(void)state;
	for (unsigned w = 0; w < 20; w++)
		assert_int_equal(ask(7, (int)w, w), MISSING_WAITS);
	assert_int_equal(taken(), 1);
	for (unsigned w = 0; w < 20; w++) {
		assert_int_equal(taken(), 1);
		assert_true(missing_cancel(&missing, &waiter[w]));
		assert_false(missing_cancel(&missing, &waiter[w]));
	}
	assert_int_equal(taken(), 0);
}

static void a_client_has_few_slots_and_may_join_others(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MISSING_PER_CLIENT; i++)
		assert_int_equal(ask(i, 5, i), MISSING_WAITS);
	assert_int_equal(ask(10, 5, 10), MISSING_CLIENT_FULL);
	assert_int_equal(ask(10, 6, 11), MISSING_WAITS);
	assert_int_equal(ask(10, 5, 12), MISSING_WAITS);
	assert_true(missing_cancel(&missing, &waiter[0]));
	assert_int_equal(ask(11, 5, 13), MISSING_WAITS);
	assert_int_equal(missing.refused, 1);
	for (unsigned w = 1; w < 14; w++)
		missing_cancel(&missing, &waiter[w]);
	assert_int_equal(taken(), 0);
}

static void the_line_is_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MISSING_MAX; i++)
		assert_int_equal(ask(i, -1, i), MISSING_WAITS);
	assert_int_equal(ask(100, -1, 40), MISSING_FULL);
	assert_int_equal(ask(31, 3, 40), MISSING_WAITS);
	assert_true(missing_cancel(&missing, &waiter[3]));
	assert_int_equal(ask(100, -1, 41), MISSING_WAITS);
	for (unsigned w = 0; w < 42; w++)
		missing_cancel(&missing, &waiter[w]);
	assert_int_equal(taken(), 0);
}

static void nothing_is_asked_of_a_daemon_that_stops(void **state)
{
	(void)state;
	missing_stop(&missing);
	assert_int_equal(ask(1, -1, 0), MISSING_FULL);
	assert_int_equal(taken(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_who_ask_for_an_image_share_a_slot, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(a_client_has_few_slots_and_may_join_others, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(the_line_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_asked_of_a_daemon_that_stops, set_up,
		                                tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
