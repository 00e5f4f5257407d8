/*
 * test_trace_slot.c - one client at a time asks for a trace, and every socket is closed or passed
 * on.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "http/trace_slot.h"

static int ours = -1;

static int set_up(void **state)
{
	(void)state;
	ours = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return ours < 0;
}

static int tear_down(void **state)
{
	(void)state;
	return close(ours);
}

/* Returns the descriptor that would be opened next. */
static int next_descriptor(void)
{
	int fd = dup(ours);

	close(fd);
	return fd;
}

static void socket_is_passed_on_once(void **state)
{
	struct trace_slot slot = { .seconds = 0 };
	int next = next_descriptor();
	unsigned seconds = 0;

	(void)state;
	assert_int_equal(trace_slot_take(&slot, false, &seconds), -1);
	assert_false(trace_slot_is_on(&slot));
	assert_true(trace_slot_ask(&slot, ours, 7));
	assert_true(trace_slot_is_on(&slot));
	assert_false(trace_slot_ask(&slot, ours, 8));
	assert_int_equal(trace_slot_take(&slot, false, &seconds), next);
	assert_int_equal(seconds, 7);
	assert_int_equal(close(next), 0);
	assert_int_equal(trace_slot_take(&slot, true, &seconds), -1);
	assert_false(trace_slot_ask(&slot, ours, 9));
	assert_int_equal(trace_slot_take(&slot, false, &seconds), -1); /* it has ended */
	assert_false(trace_slot_is_on(&slot));
	assert_int_equal(next_descriptor(), next);
}

static void trace_of_another_client_wins(void **state)
{
	struct trace_slot slot = { .seconds = 0 };
	int next = next_descriptor();
	unsigned seconds = 0;

	(void)state;
	assert_true(trace_slot_ask(&slot, ours, 7));
	assert_int_equal(trace_slot_take(&slot, true, &seconds), -1);
	assert_int_equal(next_descriptor(), next);
	assert_true(trace_slot_is_on(&slot));
	assert_int_equal(trace_slot_take(&slot, false, &seconds), -1);
	assert_false(trace_slot_is_on(&slot));
	assert_int_equal(trace_slot_take(&slot, true, &seconds), -1);
	assert_true(trace_slot_is_on(&slot)); /* darkroomd ctl has started one */
	assert_false(trace_slot_ask(&slot, ours, 7));
}

static void bad_descriptor_leaves_the_slot_free(void **state)
{
	struct trace_slot slot = { .seconds = 0 };

	(void)state;
	assert_false(trace_slot_ask(&slot, -1, 7));
	assert_false(trace_slot_is_on(&slot));
}

static void seconds_are_from_1_to_30(void **state)
{
	static const struct {
		const char *query;
		unsigned seconds;
	} cases[] = { { "seconds=1", 1 },   { "seconds=30", 30 }, { "seconds=09", 9 },
		      { "seconds=0", 0 },   { "seconds=31", 0 },  { "seconds=001", 0 },
		      { "seconds=", 0 },    { "seconds", 0 },     { "", 0 },
		      { "seconds=1x", 0 },  { "seconds=-1", 0 },  { "Seconds=1", 0 },
		      { "seconds=1&a", 0 }, { "xseconds=1", 0 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(
			trace_slot_read((struct slice){ cases[i].query, strlen(cases[i].query) }),
			cases[i].seconds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(socket_is_passed_on_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(trace_of_another_client_wins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_descriptor_leaves_the_slot_free, set_up,
		                                tear_down),
		cmocka_unit_test(seconds_are_from_1_to_30),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
