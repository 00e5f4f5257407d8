/* test_client_count.c - what clients have, up to a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image/client_count.h"

static struct client_counts counts;

static int setup(void **state)
{
	(void)state;
	client_counts_init(&counts);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	client_counts_fini(&counts); /* asserts that no client is left */
	return 0;
}

static void a_client_gets_at_most_its_limit(void **state)
{
	const struct client_key one = { .address = { [15] = 1 } },
				two = { .address = { [15] = 2 } };

	(void)state;
	assert_int_equal(client_counts_add(&counts, &one, 2, 3), 2);
	assert_int_equal(client_counts_add(&counts, &one, 2, 3), 4); /* not counted */
	assert_int_equal(client_counts_add(&counts, &one, 1, 3), 3);
	assert_int_equal(client_counts_add(&counts, &one, 1, 3), 4);
	assert_int_equal(client_counts_add(&counts, &two, 3, 3), 3);
	client_counts_drop(&counts, &one);
	assert_int_equal(client_counts_add(&counts, &one, 1, 3), 3);
	for (unsigned i = 0; i < 3; i++) {
		client_counts_drop(&counts, &one);
		client_counts_drop(&counts, &two);
	}
}

static void a_refusal_leaves_no_entry(void **state)
{
	const struct client_key one = { .address = { [15] = 1 } };

	(void)state;
	assert_int_equal(client_counts_add(&counts, &one, 5, 4), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_client_gets_at_most_its_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refusal_leaves_no_entry, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
