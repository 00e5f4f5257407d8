/* test_clients.c - what clients have, up to a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/clients.h"

static struct clients t;

static int setup(void **state)
{
	(void)state;
	clients_init(&t);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	clients_fini(&t); /* asserts that no client is left */
	return 0;
}

static struct client client(unsigned number)
{
	const struct client_key key = { .address = { [14] = 1, [15] = (uint8_t)number } };

	return clients_find(&t, &key);
}

static uint64_t add(const struct client *c, unsigned n, uint64_t max)
{
	return clients_add(&t, c, CLIENT_IMAGES, n, max);
}

static void a_client_gets_at_most_its_limit(void **state)
{
	struct client one = client(1), two = client(2);

	(void)state;
	assert_int_equal(add(&one, 2, 3), 2);
	assert_int_equal(add(&one, 2, 3), 4); /* not counted */
	assert_int_equal(add(&one, 1, 3), 3);
	assert_int_equal(add(&one, 1, 3), 4);
	assert_int_equal(clients_count(&t, &one, CLIENT_IMAGES), 3);
	assert_int_equal(add(&two, 3, 3), 3);
	clients_drop(&t, &one, CLIENT_IMAGES);
	assert_int_equal(add(&one, 1, 3), 3);
	for (unsigned i = 0; i < 3; i++) {
		clients_drop(&t, &one, CLIENT_IMAGES);
		clients_drop(&t, &two, CLIENT_IMAGES);
	}
	assert_int_equal(clients_count(&t, &one, CLIENT_IMAGES), 0);
}

static void a_refusal_leaves_no_entry(void **state)
{
	struct client one = client(1);

	(void)state;
	assert_int_equal(add(&one, 5, 4), 5);
}

static void connections_and_images_are_counted_apart(void **state)
{
	struct client one = client(1);

	(void)state;
	assert_int_equal(clients_add(&t, &one, CLIENT_CONNECTIONS, 1, 1), 1);
	assert_int_equal(add(&one, 1, 1), 1);
	clients_drop(&t, &one, CLIENT_CONNECTIONS);
	assert_int_equal(clients_count(&t, &one, CLIENT_CONNECTIONS), 0);
	assert_int_equal(clients_count(&t, &one, CLIENT_IMAGES), 1);
	clients_drop(&t, &one, CLIENT_IMAGES);
}

/* Clients of one slot share it, and are told apart. */
static void clients_of_one_slot_have_their_own_counts(void **state)
{
	struct client one = client(1), two = client(2);

	(void)state;
	one.slot = two.slot = 7;
	assert_int_equal(add(&one, 2, 2), 2);
	assert_int_equal(add(&two, 1, 2), 1);
	clients_drop(&t, &two, CLIENT_IMAGES);
	assert_int_equal(clients_count(&t, &one, CLIENT_IMAGES), 2);
	clients_drop(&t, &one, CLIENT_IMAGES);
	clients_drop(&t, &one, CLIENT_IMAGES);
}

static void a_client_keeps_its_slot(void **state)
{
	unsigned different = 0;

	(void)state;
	assert_int_equal(client(1).slot, client(1).slot);
	for (unsigned i = 0; i < 16; i++) { /* a new seed each time */
		clients_init(&t);
		different += client(1).slot != client(2).slot;
		assert_true(client(1).slot < CLIENT_SLOTS);
	}
	assert_true(different > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_gets_at_most_its_limit),
		TEST(a_refusal_leaves_no_entry),
		TEST(connections_and_images_are_counted_apart),
		TEST(clients_of_one_slot_have_their_own_counts),
		TEST(a_client_keeps_its_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
