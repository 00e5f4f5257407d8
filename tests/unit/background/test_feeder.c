/* test_feeder.c - the order of a feeder's images, its passes and its retries. The test calls what
 * the thread calls; time passes when a pass waits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "image/image.h"
#include "image/image_service.h"
#include "image/remade.h"
#include "store/directory.h"
#include "telemetry/counter.h"

static uint64_t now_ns;

static uint64_t fake_clock(void)
{
	return now_ns;
}

static DIR *fake_list(int at, const char *name);
static const char *fake_next(DIR *dir);

#define clock_ns fake_clock
#define directory_list fake_list
#define directory_next_id fake_next
#define closedir(dir) assert_non_null(dir)
#include "background/feeder.c"
#undef clock_ns
#undef closedir

#define AT_ONCE 3

static const struct store_class files, objects = { .is_shared = true };
static struct image_service service;
static struct feeder feeder;
static struct {
	const char *name; /* one letter for each image; those in capitals have attempts */
	char started[64], ended[64];
	int answer; /* of start() */
	const char *next;
	_Atomic unsigned lists;
	int list_error, pace_ms;
} world;

static DIR *fake_list(int at, const char *name)
{
	assert_int_equal(at, service.store.root_fd);
	assert_string_equal(name, "names");
	world.lists++;
	world.next = world.name;
	errno = world.list_error;
	return world.list_error ? NULL : (DIR *)&world;
}

static const char *fake_next(DIR *dir)
{
	static char id[ULID_LENGTH + 1];

	assert_ptr_equal(dir, &world);
	id[0] = *world.next;
	return *world.next ? (world.next++, id) : NULL;
}

static int fake_attempts(struct feeder *f, const char *id)
{
	assert_ptr_equal(f, &feeder);
	return *id == '-' ? -1 : *id < 'a';
}

static int fake_pace(struct feeder *f, unsigned busy)
{
	assert_true(busy < f->class->at_once);
	return world.pace_ms;
}

static int fake_start(struct feeder *f, struct feeder_slot *slot)
{
	(void)f;
	strcat(world.started, slot->item.id);
	return world.answer;
}

static int fake_set_attempts(struct feeder *f, const char *id, unsigned attempts)
{
	(void)f;
	(void)id;
	(void)attempts;
	return 0;
}

/* The slot is free for the next image by now. */
static void fake_ended(struct feeder *f, const struct feeder_slot *slot)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < FEEDER_SLOTS; i++)
		taken += f->slot[i].is_taken && strcmp(f->slot[i].item.id, slot->item.id) == 0;
	assert_int_equal(taken, 0);
	strcat(world.ended, slot->item.id);
}

static struct feeder_class class = {
	.name = "test",
	.directory = "names",
	.task = "images",
	.made = "made",
	.gone = "gone",
	.failed = "failed",
	.more = 6,
	.at_once = AT_ONCE,
	.next = feeder_feed,
	.attempts = fake_attempts,
	.pace = fake_pace,
	.start = fake_start,
	.set_attempts = fake_set_attempts,
	.ended = fake_ended,
};

/* Feeds until the feeder waits. Returns for how many ms. */
static int feed(void)
{
	int ms;

	for (unsigned i = 0; (ms = feeder_feed(&feeder)) == 0; i++)
		assert_true(i < 100);
	return ms;
}

/* Ends the image with the problem, by whose status and slug the result follows. */
static void end(const char *name, unsigned status)
{
	static struct upload upload;
	static struct image image = { .upload = &upload };
	struct feeder_slot *slot = feeder.slot;

	while (!slot->is_taken || strcmp(slot->item.id, name) != 0)
		assert_true(++slot < feeder.slot + AT_ONCE);
	atomic_store(&image.has_failed, status != 0);
	image.problem = (struct problem){ .status = status, .slug = "storage-full", .title = "No" };
	strcpy(image.problem.detail, "why");
	upload.slot = slot;
	slot_ended(NULL, &image);
}

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof world);
	world.name = "";
	class.quiet_ms = 0;
	now_ns = 5 * NS_PER_S;
	service.storage.class = &files;
	return feeder_init(&feeder, &class, &service);
}

static int tear_down(void **state)
{
	(void)state;
	feeder_fini(&feeder);
	return 0;
}

static void few_images_are_in_flight_at_once(void **state)
{
	(void)state;
	world.name = "abcde";
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "abc");
	assert_int_equal(feeder.waiting, 5);
	end("b", 0);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "abcd");
	assert_int_equal(feeder.waiting, 4);
	end("a", 0);
	end("c", 0);
	end("d", 0);
	assert_int_equal(feed(), -1);
	world.name = "";
	end("e", 0);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "abcde");
	assert_int_equal(feeder.waiting, 0);
	assert_int_equal(world.lists, 1);
}

static void images_with_attempts_come_last_and_alone(void **state)
{
	(void)state;
	world.name = "AbCd";
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "bd");
	assert_int_equal(feeder.waiting, 4);
	end("b", 0);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "bd");
	end("d", 0);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "bdA");
	end("A", 0);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "bdAC");
	assert_int_equal(feeder.waiting, 1);
	end("C", 0);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.ended, "bdAC");
	assert_int_equal(feeder.waiting, 0);
}

static void a_pass_ends_after_an_image_that_is_retried(void **state)
{
	(void)state;
	world.name = "abcdE";
	assert_int_equal(feed(), -1);
	end("a", 507);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "abc");
	end("b", 0);
	end("c", 0);
	assert_int_equal(feed(), 501);
	assert_int_equal(world.lists, 1);
	now_ns += 500 * NS_PER_MS;
	assert_int_equal(feed(), -1);
	assert_int_equal(world.lists, 2);
	assert_string_equal(world.started, "abcabc");
	end("a", 0);
	end("b", 0);
	end("c", 0);
	assert_int_equal(feed(), -1);
	end("d", 0);
	assert_int_equal(feed(), -1);
	end("E", 0);
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "abcabcdE");
}

static void retries_come_later_each_time(void **state)
{
	static const int expected[] = { 500, 1000, 2000, 4000, 8000, 16000, 16000, 16000 };

	(void)state;
	world.name = "a";
	for (unsigned i = 0; i < 8; i++) {
		world.answer = i % 2 ? -ENOMEM : -EIO;
		assert_int_equal(feed(), expected[i] + 1);
		feeder_call(&feeder); /* a call does not hasten it */
		assert_int_equal(feed(), expected[i] + 1);
		now_ns += (uint64_t)expected[i] * NS_PER_MS;
	}
	world.answer = -ENOENT;
	assert_int_equal(feed(), -1);
	world.answer = -ENOMEM;
	feeder_call(&feeder);
	assert_int_equal(feed(), 501); /* the first one again */
	assert_int_equal(feeder.waiting, 0);
}

static void an_s3_store_is_tried_again_soon(void **state)
{
	static const int expected[] = { 500, 1000, 1000 };

	(void)state;
	service.storage.class = &objects;
	world.name = "a";
	world.answer = -EIO;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(feed(), expected[i] + 1);
		now_ns += (uint64_t)expected[i] * NS_PER_MS;
	}
}

static void a_list_that_fails_is_retried(void **state)
{
	(void)state;
	world.list_error = EIO;
	assert_int_equal(feed(), 501);
	world.list_error = 0;
	world.name = "a";
	now_ns += 500 * NS_PER_MS;
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "a");
	world.name = "";
	end("a", 0);
	assert_int_equal(feed(), -1);
}

static void a_pass_follows_a_call_or_a_full_list(void **state)
{
	(void)state;
	assert_int_equal(feed(), -1); /* the first pass needs no call */
	assert_int_equal(world.lists, 1);
	assert_int_equal(feed(), -1);
	assert_int_equal(world.lists, 1);
	assert_true(feeder.has_news == false);
	feeder_call(&feeder);
	assert_true(feeder.has_news);
	assert_int_equal(feed(), -1);
	assert_int_equal(world.lists, 2);
	world.name = "abcdef";
	world.answer = -ENOENT;
	feeder_call(&feeder);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(feeder_feed(&feeder), 0);
	world.name = "abc"; /* as many do not call for another list */
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "abcdefabc");
	assert_int_equal(world.lists, 4);
}

static void an_image_may_be_left_out(void **state)
{
	(void)state;
	world.name = "a-b-";
	world.answer = -EAGAIN;
	feed();
	assert_int_equal(feeder.count, 2);
	assert_int_equal(feeder.waiting, 2);
	world.answer = -ENOENT;
	world.name = "";
	assert_int_equal(feed(), -1);
	assert_string_equal(world.ended, "ab");
	assert_int_equal(feeder.waiting, 0);
}

/* A call lets it begin at once, and without one it does not look again. */
static void the_end_is_told_when_it_was_quiet_for_a_while(void **state)
{
	(void)state;
	class.quiet_ms = 50;
	assert_int_equal(feed(), -1); /* nothing was done */
	world.name = "a";
	world.answer = -ENOENT;
	feeder_call(&feeder);
	assert_int_equal(feed(), 51);
	world.name = "b";
	now_ns += 40 * NS_PER_MS;
	assert_int_equal(feed(), 11);
	assert_int_equal(world.lists, 2);
	feeder_call(&feeder);
	assert_int_equal(feed(), 51);
	assert_string_equal(world.ended, "ab");
	assert_true(feeder.is_told);
	now_ns += 50 * NS_PER_MS;
	assert_int_equal(feed(), -1);
	assert_false(feeder.is_told);
	assert_int_equal(world.lists, 3);
}

static void an_image_waits_for_room(void **state)
{
	(void)state;
	world.name = "ab";
	world.answer = -EAGAIN;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(feed(), ROOM_POLL_MS);
	assert_string_equal(world.started, "aaa");
	assert_int_equal(feeder.waiting, 2);
	world.answer = -ENOENT;
	world.started[0] = '\0';
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "ab");
	assert_string_equal(world.ended, "ab");
}

static void an_image_waits_for_its_pace(void **state)
{
	(void)state;
	world.name = "a";
	world.pace_ms = 20;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(feed(), 20);
	assert_string_equal(world.started, "");
	world.pace_ms = 0;
	assert_int_equal(feed(), -1);
	assert_string_equal(world.started, "a");
	end("a", 0);
	world.name = "";
	feed();
}

static void results_follow_from_the_problem(void **state)
{
	static const struct {
		unsigned status;
		const char *slug;
		enum feeder_result result;
	} cases[] = {
		{ 413, "too-many-pixels", FEEDER_REFUSED },
		{ 499, "too-many-pixels", FEEDER_REFUSED },
		{ 500, "storage-failed", FEEDER_LATER },
		{ 500, "internal", FEEDER_FAULT },
		{ 503, "overloaded", FEEDER_LATER },
		{ 507, "storage-full", FEEDER_LATER },
	};
	static struct remade gone = { .is_gone = true }, stale = { .is_stale = true };
	static struct image image;

	(void)state;
	assert_int_equal(feeder_result_of(&image), FEEDER_MADE);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		atomic_store(&image.has_failed, true);
		image.problem.status = cases[i].status;
		image.problem.slug = cases[i].slug;
		assert_int_equal(feeder_result_of(&image), cases[i].result);
	}
	image.remade = &gone;
	assert_int_equal(feeder_result_of(&image), FEEDER_GONE);
	image.remade = &stale;
	assert_int_equal(feeder_result_of(&image), FEEDER_AGAIN);
}

static void a_refused_image_says_why(void **state)
{
	(void)state;
	world.name = "a";
	assert_int_equal(feed(), -1);
	end("a", 422);
	assert_int_equal(feeder.slot[0].result, FEEDER_REFUSED);
	assert_string_equal(feeder.slot[0].why, "No: why");
}

static void a_result_is_settled_at_the_end(void **state)
{
	(void)state;
	world.name = "a";
	assert_int_equal(feed(), -1);
	end("a", 0);
	assert_string_equal(world.ended, "");
	feeder_fini(&feeder);
	assert_string_equal(world.ended, "a");
	assert_int_equal(feeder.waiting, 0);
	assert_int_equal(feeder_init(&feeder, &class, &service), 0);
}

static _Atomic bool has_ended;

/* An image that has ended gives back what it holds, and finds the feeder by its slot. */
static void *look_at_slot(void *arg)
{
	struct feeder_slot *slot = arg;

	while (!atomic_load(&has_ended))
		if (*(struct feeder *const volatile *)&slot->feeder != &feeder)
			return slot;
	return NULL;
}

static void a_slot_keeps_its_feeder(void **state)
{
	pthread_t thread;
	void *found;

	(void)state;
	world.name = "a";
	world.answer = -ENOENT;
	assert_int_equal(feed(), -1);
	assert_int_equal(pthread_create(&thread, NULL, look_at_slot, &feeder.slot[0]), 0);
	for (unsigned i = 0; i < 200000; i++) {
		world.started[0] = world.ended[0] = '\0';
		start(&feeder, &(struct feeder_item){ .id = "b" });
	}
	atomic_store(&has_ended, true);
	pthread_join(thread, &found);
	assert_null(found);
}

static void the_thread_makes_a_pass_and_stops(void **state)
{
	(void)state;
	world.name = "ab";
	world.answer = -ENOENT;
	assert_int_equal(feeder_start(&feeder), 0);
	while (atomic_load(&world.lists) == 0 || atomic_load(&feeder.waiting) > 0)
		feeder_pause(&feeder, 1);
	feeder_stop(&feeder);
	assert_string_equal(world.started, "ab");
	feeder_stop(&feeder); /* nothing is left to stop */
	assert_false(feeder.is_started);
	assert_true(feeder_pause(&feeder, 1000000));
}

int main(void)
{
#define WITH_FEEDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FEEDER(few_images_are_in_flight_at_once),
		WITH_FEEDER(images_with_attempts_come_last_and_alone),
		WITH_FEEDER(a_pass_ends_after_an_image_that_is_retried),
		WITH_FEEDER(retries_come_later_each_time),
		WITH_FEEDER(an_s3_store_is_tried_again_soon),
		WITH_FEEDER(a_list_that_fails_is_retried),
		WITH_FEEDER(a_pass_follows_a_call_or_a_full_list),
		WITH_FEEDER(an_image_may_be_left_out),
		WITH_FEEDER(the_end_is_told_when_it_was_quiet_for_a_while),
		WITH_FEEDER(an_image_waits_for_room),
		WITH_FEEDER(an_image_waits_for_its_pace),
		cmocka_unit_test(results_follow_from_the_problem),
		WITH_FEEDER(a_refused_image_says_why),
		WITH_FEEDER(a_result_is_settled_at_the_end),
		WITH_FEEDER(a_slot_keeps_its_feeder),
		WITH_FEEDER(the_thread_makes_a_pass_and_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
