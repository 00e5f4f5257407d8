/* test_make_missing.c - the line of images of which a variant is asked for: its bounds, and its
 * waiters. No thread serves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "background/remake.c"

static struct image_service images;
static struct remake remake;
static struct waiter waiter[64];

static int set_up(void **state)
{
	(void)state;
	memset(waiter, 0, sizeof waiter);
	memset(&remake, 0, sizeof remake);
	return inflight_init(&remake.asked, MISSING_MAX) ||
	       feeder_init(&remake.feeder, &remake_class, &images);
}

static int tear_down(void **state)
{
	(void)state;
	remake_fini(&remake);
	return 0;
}

/* client < 0: none. */
static enum missing ask(unsigned image, int client, unsigned w)
{
	struct client_key key = { { 1, (uint8_t)client } };
	char id[ULID_LENGTH + 1];

	snprintf(id, sizeof id, "%026u", image);
	return remake_ask(&remake, id, client < 0 ? NULL : &key, &waiter[w]);
}

static unsigned taken(void)
{
	unsigned n = 0;

	forget_unasked(&remake);
	for (unsigned i = 0; i < MISSING_MAX; i++)
		n += remake.image[i].is_taken;
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
		assert_true(inflight_cancel(&remake.asked, &waiter[w]));
		assert_false(inflight_cancel(&remake.asked, &waiter[w]));
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
	assert_true(inflight_cancel(&remake.asked, &waiter[0]));
	assert_int_equal(ask(11, 5, 13), MISSING_WAITS);
	assert_int_equal(remake.missing_refused, 1);
	for (unsigned w = 1; w < 14; w++)
		inflight_cancel(&remake.asked, &waiter[w]);
	assert_int_equal(taken(), 0);
}

static void the_line_is_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MISSING_MAX; i++)
		assert_int_equal(ask(i, -1, i), MISSING_WAITS);
	assert_int_equal(ask(100, -1, 40), MISSING_FULL);
	assert_int_equal(ask(31, 3, 40), MISSING_WAITS);
	assert_true(inflight_cancel(&remake.asked, &waiter[3]));
	assert_int_equal(ask(100, -1, 41), MISSING_WAITS);
	for (unsigned w = 0; w < 42; w++)
		inflight_cancel(&remake.asked, &waiter[w]);
	assert_int_equal(taken(), 0);
}

static void nothing_is_asked_of_a_daemon_that_stops(void **state)
{
	(void)state;
	remake_stop(&remake);
	assert_int_equal(ask(1, -1, 0), MISSING_FULL);
	assert_int_equal(taken(), 0);
}

/* Other images are in flight, and the one that is asked for is, too: it cannot begin. */
static void an_image_without_room_is_tried_again_soon(void **state)
{
	static const char id[] = "00000000000000000000000001";
	static _Atomic uint32_t size;
	struct inflight_image other = { .id = id, .width = &size, .height = &size };

	(void)state;
	assert_int_equal(inflight_init(&images.inflight, 1), 0);
	inflight_add(&images.inflight, &other);
	atomic_store(&images.admission.in_flight, 9);
	assert_int_equal(ask(1, -1, 0), MISSING_WAITS);
	for (unsigned i = 0; i < 3; i++) {
		struct feeder_item item = { .attempts = 0 };

		assert_int_equal(remake_front(&remake.feeder, &item), 0);
		assert_string_equal(item.id, id);
		struct feeder_slot slot = { .feeder = &remake.feeder,
			                    .item = item,
			                    .result = FEEDER_AGAIN };

		assert_int_equal(remake_start(&remake.feeder, &slot), -EALREADY);
		remake_ended(&remake.feeder, &slot);
		assert_int_equal(remake_front(&remake.feeder, &item), TURN_POLL_MS);
		usleep(RETRY_NS / 1000);
	}
	assert_true(inflight_cancel(&remake.asked, &waiter[0]));
	assert_int_equal(taken(), 0);
	inflight_remove(&images.inflight, &other);
	inflight_fini(&images.inflight);
	atomic_store(&images.admission.in_flight, 0);
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
		cmocka_unit_test_setup_teardown(an_image_without_room_is_tried_again_soon, set_up,
		                                tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
