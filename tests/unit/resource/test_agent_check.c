/* test_agent_check.c - the weight of a server: the least free share of its room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "resource/admin_service.h"

static void the_weight_is_the_free_share_of_the_places(void **state)
{
	(void)state;
	assert_int_equal(agent_weight(0, 1024, 0, 0), 100);
	assert_int_equal(agent_weight(256, 1024, 0, 0), 75);
	assert_int_equal(agent_weight(1, 3, 0, 0), 67);
}

static void the_weight_is_the_free_share_of_the_work_if_that_is_less(void **state)
{
	(void)state;
	assert_int_equal(agent_weight(0, 1024, 1, 5), 80);
	assert_int_equal(agent_weight(512, 1024, 1, 5), 50);
	assert_int_equal(agent_weight(512, 1024, 4, 5), 20);
}

static void a_full_server_keeps_the_least_weight(void **state)
{
	(void)state;
	assert_int_equal(agent_weight(1024, 1024, 0, 5), 1);
	assert_int_equal(agent_weight(2000, 1024, 0, 5), 1); /* limits were lowered */
	assert_int_equal(agent_weight(0, 1024, 9, 5), 1);
	assert_int_equal(agent_weight(1023, 1024, 0, 5), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_weight_is_the_free_share_of_the_places),
		cmocka_unit_test(the_weight_is_the_free_share_of_the_work_if_that_is_less),
		cmocka_unit_test(a_full_server_keeps_the_least_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
