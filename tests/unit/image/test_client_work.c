/* test_client_work.c - how much admitted work comes before an upload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image/client_work.h"

static int begin(void **state)
{
	static struct client_work w;

	client_work_init(&w);
	*state = &w;
	return 0;
}

static void work_of_others_counts_up_to_that_of_the_client(void **state)
{
	struct client_work *w = *state;

	client_work_add(w, 1, 1000000);
	client_work_add(w, 2, 30);
	assert_int_equal(client_work_ahead(w, 3, 50), 50 + 50 + 30);
	client_work_add(w, 3, 40);
	assert_int_equal(client_work_ahead(w, 3, 50), 90 + 90 + 30);
	client_work_end(w, 1, 999990);
	assert_int_equal(client_work_ahead(w, 3, 50), 90 + 10 + 30);
}

static void a_client_has_all_its_own_work_ahead(void **state)
{
	struct client_work *w = *state;

	client_work_add(w, 1, 1000000);
	client_work_add(w, CLIENT_WORK_SLOTS - 1, 7);
	assert_int_equal(client_work_ahead(w, 1, 50), 1000050 + 7);
}

static void among_clients_that_have_the_same_all_work_is_ahead(void **state)
{
	struct client_work *w = *state;

	for (unsigned i = 0; i < 100; i++)
		client_work_add(w, i, 10);
	assert_int_equal(client_work_ahead(w, 500, 10), 1010);
}

static void an_announced_length_does_not_overflow(void **state)
{
	struct client_work *w = *state;

	for (unsigned i = 0; i < CLIENT_WORK_SLOTS; i++)
		client_work_add(w, i, UINT64_C(1) << 40);
	assert_true(client_work_ahead(w, 1, UINT64_MAX) >= UINT64_C(1) << 50);
}

static void a_client_keeps_its_slot(void **state)
{
	struct client_work *w = *state;
	const struct client_key one = { .address = { 1 } }, two = { .address = { 2 } };
	unsigned different = 0;

	assert_int_equal(client_work_slot(w, &one), client_work_slot(w, &one));
	for (unsigned i = 0; i < 16; i++) { /* a new seed each time */
		client_work_init(w);
		different += client_work_slot(w, &one) != client_work_slot(w, &two);
		assert_true(client_work_slot(w, &one) < CLIENT_WORK_SLOTS);
	}
	assert_true(different > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(work_of_others_counts_up_to_that_of_the_client, begin),
		cmocka_unit_test_setup(a_client_has_all_its_own_work_ahead, begin),
		cmocka_unit_test_setup(among_clients_that_have_the_same_all_work_is_ahead, begin),
		cmocka_unit_test_setup(an_announced_length_does_not_overflow, begin),
		cmocka_unit_test_setup(a_client_keeps_its_slot, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
