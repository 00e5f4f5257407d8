/* test_recovery_pass.c - the order of recovery, its waits and its retries. */
#include "support/recovery_harness.h"

/* ---- order and room ---- */

static void four_images_are_in_flight_at_once(void **state)
{
	(void)state;
	for (char c = 'A'; c <= 'G'; c++)
		spool_one(c, 0);
	assert_false(pass_once());
	assert_int_equal(started_total, 7);
	assert_int_equal(started_most, RECOVERY_AT_ONCE);
	assert_int_equal(r->recovered, 7);
}

static void check_alone(struct image *image)
{
	int attempts = attempts_of(image->id);

	/* The others have been started before, and have ended. */
	if (attempts > 1)
		assert_int_equal(started_count, 1);
	assert_int_equal(r->waiting, started_total < 4 ? 6 - (started_total - started_count)
	                                               : 7 - started_total);
}

static void images_with_attempts_come_last_and_alone(void **state)
{
	(void)state;
	spool_one('A', 2);
	spool_one('B', 0);
	spool_one('C', 1);
	spool_one('D', 0);
	spool_one('E', 0);
	spool_one('F', 1);
	when_started = check_alone;
	assert_false(pass_once());
	assert_int_equal(started_total, 6);
	assert_int_equal(started_most, 3);
	assert_int_equal(r->recovered, 6);
}

static void a_pass_ends_after_a_delayed_image(void **state)
{
	(void)state;
	for (char c = 'A'; c <= 'H'; c++)
		spool_one(c, 0);
	result_next = RECOVERY_LATER;
	assert_true(pass_once());
	assert_int_equal(started_total, RECOVERY_AT_ONCE);
	assert_int_equal(r->waiting, 8 - RECOVERY_AT_ONCE);
	assert_int_equal(r->recovered, 0);
}

static void an_image_in_flight_is_not_started_again(void **state)
{
	const char *id = spool_one('A', 0);
	struct spooled list[4];

	(void)state;
	spool_one('B', 0);
	struct budget_body none = { 0 };
	struct upload *u = upload_new(&service, 0, NULL, &none, 1, 0);
	struct image *image = upload_add_image(u, NULL, 0, "", 0, "", 0);

	memcpy(image->id, id, sizeof image->id);
	inflight_add(&service.inflight, image);
	assert_int_equal(spool_list(&service.store, list, 4), 2);
	assert_int_equal(drop_known(r, list, 2), 1);
	assert_string_equal(list[0].id + ULID_LENGTH - 1, "B");
	assert_false(pass_once());
	assert_int_equal(started_total, 1);
	assert_null(inflight_remove(&service.inflight, image));
	upload_unref(u);
}

static bool is_held;

static void release_after_three_waits(void)
{
	if (wait_count == 3 && is_held)
		release_memory();
	else if (wait_count == 3)
		atomic_fetch_sub(&service.in_flight, IMAGES_MAX);
}

static void recovery_waits_for_memory(void **state)
{
	(void)state;
	spool_one('A', 0);
	hold_memory();
	is_held = true;
	during_wait = release_after_three_waits;
	assert_false(pass_once());
	assert_int_equal(r->recovered, 1);
	assert_int_equal(wait_count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(waited_ms[i], ROOM_POLL_MS, ROOM_POLL_MS + 1);
}

static void recovery_waits_for_a_place(void **state)
{
	(void)state;
	spool_one('A', 0);
	is_held = false;
	atomic_fetch_add(&service.in_flight, IMAGES_MAX);
	during_wait = release_after_three_waits;
	assert_false(pass_once());
	assert_int_equal(r->recovered, 1);
	assert_int_equal(wait_count, 3);
}

static void one_place_is_enough(void **state)
{
	(void)state;
	spool_one('A', 0);
	atomic_fetch_add(&service.in_flight, IMAGES_MAX - 1);
	assert_false(pass_once());
	assert_int_equal(wait_count, 0);
	assert_int_equal(r->recovered, 1);
	atomic_fetch_sub(&service.in_flight, IMAGES_MAX - 1);
}

static void stop(void)
{
	r->is_stopping = true;
}

static void a_stop_ends_the_waiting_for_room(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	during_wait = stop;
	for (unsigned i = 0; i < 2; i++) {
		r->is_stopping = false;
		if (i == 0)
			hold_memory();
		else
			atomic_fetch_add(&service.in_flight, IMAGES_MAX);
		wait_count = 0;
		assert_false(reserve_room(r, &room, 4));
		assert_int_equal(wait_count, 1);
		if (i == 0)
			release_memory();
		else
			atomic_fetch_sub(&service.in_flight, IMAGES_MAX);
		struct spooled list[8];
		struct spooling_list spool = { .image = list, .max = LIST_MAX };
		bool is_delayed = false;

		assert_false(pass(r, &spool, &is_delayed)); /* it starts no image */
		struct spooled spooled = { .attempts = 0 };

		memcpy(spooled.id, id, sizeof spooled.id);
		if (i == 0)
			hold_memory();
		else
			atomic_fetch_add(&service.in_flight, IMAGES_MAX);
		assert_false(begin(r, &spooled, &is_delayed));
		if (i == 0)
			release_memory();
		else
			atomic_fetch_sub(&service.in_flight, IMAGES_MAX);
		assert_int_equal(started_total, 0);
		assert_int_equal(attempts_of(id), 0);
	}
}

static void a_pause_ends_at_its_time(void **state)
{
	(void)state;
	assert_false(pause_for(r, 1500));
	assert_int_equal(wait_count, 1);
	assert_in_range(now_ns, START_NS + 1500 * NS_PER_MS, START_NS + 1501 * NS_PER_MS);
	assert_false(pause_for(r, 0));
	assert_int_equal(wait_count, 1);
	r->is_stopping = true;
	assert_true(pause_for(r, 1500));
	assert_int_equal(wait_count, 1);
}

/* ---- calls, retries and the end ---- */

static void a_failed_image_calls_recovery(void **state)
{
	static struct upload u;
	static struct image image = { .upload = &u };

	(void)state;
	recovery_image_ended(r, &image);
	assert_false(r->is_called);
	assert_int_equal(signal_count, 1);
	image.stays_spooled = true;
	recovery_image_ended(r, &image);
	assert_true(r->is_called);
	assert_true(is_called(r, true));
	assert_false(r->is_called);
	image.stays_spooled = false;
	atomic_store(&image.has_failed, true);
	image.problem.status = 507;
	image.problem.slug = "storage-full";
	recovery_image_ended(r, &image);
	assert_true(r->is_called);
	r->is_called = false;
	/* The pass that started it learns the result. */
	u.recovery_slot = &r->slot[0];
	recovery_image_ended(r, &image);
	assert_false(r->is_called);
	assert_int_equal(r->slot[0].result, RECOVERY_LATER);
	u.recovery_slot = NULL;
	r->slot[0].result = 0;
}

static void a_refused_image_says_why(void **state)
{
	static struct upload u;
	static struct image image = { .upload = &u };

	(void)state;
	u.recovery_slot = &r->slot[0];
	strcpy(r->slot[0].why, "before");
	recovery_image_ended(r, &image); /* it is stored */
	assert_string_equal(r->slot[0].why, "before");
	atomic_store(&image.has_failed, true);
	image.problem.status = 422;
	image.problem.slug = "damaged-image";
	image.problem.title = "The image is damaged";
	strcpy(image.problem.detail, "no end");
	recovery_image_ended(r, &image);
	assert_int_equal(r->slot[0].result, RECOVERY_REFUSED);
	assert_string_equal(r->slot[0].why, "The image is damaged: no end");
	u.recovery_slot = NULL; /* of an upload whose client was answered */
	recovery_image_ended(r, &image);
	r->slot[0] = (struct recovery_slot){ .why = "" };
	r->is_called = false;
}

static void a_call_is_noted_and_wakes(void **state)
{
	unsigned before = signal_count;

	(void)state;
	recovery_call(r);
	assert_int_equal(signal_count, before + 1);
	assert_true(is_called(r, true));
	assert_false(r->is_called);
}

static void succeed_after_eight_waits(void)
{
	result_next = wait_count == 8 ? RECOVERY_STORED : RECOVERY_LATER;
	if (wait_count == 10)
		r->is_stopping = true;
}

static void call_again(void)
{
	assert_int_equal(r->recovered, 1);
	assert_int_equal(sleep_count, 1);
	assert_int_equal(report_count, 1);
	spool_one('B', 0);
	r->is_called = true;
	result_next = RECOVERY_LATER;
}

static void retries_come_later_each_time(void **state)
{
	static const uint64_t expected[] = { 500,   1000,  2000,  4000, 8000,
		                             16000, 16000, 16000, 500,  1000 };

	(void)state;
	spool_one('A', 0);
	result_next = RECOVERY_LATER;
	during_wait = succeed_after_eight_waits;
	during_sleep = call_again;
	assert_null(recovery_run(r));
	assert_int_equal(wait_count, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(waited_ms[i], expected[i], expected[i] + 1);
	assert_int_equal(sleep_count, 1);
	assert_int_equal(report_count, 1);
	assert_int_equal(error_count, 0);
	assert_int_equal(rest_count, 1);
	assert_int_equal(started_total, 11);
}

static void recovery_sleeps_until_it_is_called(void **state)
{
	(void)state;
	during_sleep = stop;
	assert_null(recovery_run(r));
	assert_int_equal(sleep_count, 1);
	assert_int_equal(wait_count, 0);
}

static void a_result_is_settled_at_the_end(void **state)
{
	const char *id = spool_one('A', 0);
	struct spooled spooled = { .attempts = 0 };
	uint64_t size;

	(void)state;
	memcpy(spooled.id, id, sizeof spooled.id);
	int fd = open_one(&spooled, &size);

	atomic_store(&r->waiting, 1);
	assert_int_equal(feed(r, &spooled, fd, size, &room, &lake), 0);
	assert_true(r->slot[0].is_taken);
	end_image(RECOVERY_STORED);
	assert_int_equal(r->recovered, 0);
	recovery_fini(r);
	assert_int_equal(r->recovered, 1);
	assert_int_equal(r->waiting, 0);
	assert_false(r->slot[0].is_taken);
	assert_int_equal(recovery_init(r, &service), 0);
}

static void the_thread_starts_and_stops(void **state)
{
	(void)state;
	create_error = EAGAIN;
	assert_int_equal(recovery_start(r), -EAGAIN);
	assert_int_equal(error_count, 1);
	assert_false(r->is_started);
	recovery_stop(r); /* there is no thread to join */
	create_error = 0;
	assert_int_equal(recovery_start(r), 0);
	assert_true(r->is_started);
	assert_int_equal(error_count, 1);
	signal_count = 0;
	recovery_stop(r);
	assert_int_equal(signal_count, 1);
	assert_int_equal(join_count, 1);
	assert_false(r->is_started);
	assert_true(r->is_stopping);
	recovery_stop(r);
	assert_int_equal(join_count, 1);
	r->is_stopping = false;
	recovery_fini(r); /* stops it, too */
	assert_true(r->is_stopping);
	assert_int_equal(recovery_init(r, &service), 0);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(four_images_are_in_flight_at_once),
		WITH_STORE(images_with_attempts_come_last_and_alone),
		WITH_STORE(a_pass_ends_after_a_delayed_image),
		WITH_STORE(an_image_in_flight_is_not_started_again),
		WITH_STORE(recovery_waits_for_memory),
		WITH_STORE(recovery_waits_for_a_place),
		WITH_STORE(one_place_is_enough),
		WITH_STORE(a_stop_ends_the_waiting_for_room),
		WITH_STORE(a_pause_ends_at_its_time),
		WITH_STORE(a_failed_image_calls_recovery),
		WITH_STORE(retries_come_later_each_time),
		WITH_STORE(a_refused_image_says_why),
		WITH_STORE(a_call_is_noted_and_wakes),
		WITH_STORE(recovery_sleeps_until_it_is_called),
		WITH_STORE(a_result_is_settled_at_the_end),
		WITH_STORE(the_thread_starts_and_stops),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
