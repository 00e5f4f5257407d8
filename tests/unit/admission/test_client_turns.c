/* test_client_turns.c - the order of clients at jpeg_decode. */
#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/client_turns.h"
#include "base/check.h"
#include "base/clock.h"

#define IMAGES 200

static struct client_turns turns;
static struct item {
	struct turn turn; /* first */
	unsigned client;
	bool has_begun;
} item[IMAGES];
static struct turn *queue[2 * IMAGES];
static size_t queued;
static unsigned added;
static bool is_direct;

static int setup(void **state)
{
	(void)state;
	client_turns_init(&turns, 1000);
	queued = added = 0;
	return 0;
}

static void add_sized(unsigned client, unsigned n, uint64_t bytes)
{
	for (; n > 0; n--) {
		struct item *i = &item[added++];
		*i = (struct item){ .client = client };
		client_turns_add(&turns, &i->turn, client, 10 * bytes); /* ns */
		queue[queued++] = &i->turn;
	}
}

static void add(unsigned client, unsigned n)
{
	add_sized(client, n, 1000);
}

static void requeue(struct turn *list)
{
	for (; list; list = list->next)
		queue[queued++] = list;
}

/* Takes images from the queue's begin, or from its end (a stack), until one may be decoded. Returns
 * NULL if the queue is empty. */
static struct item *take(bool from_end)
{
	while (queued > 0) {
		struct turn *resumed, *popped = queue[from_end ? queued - 1 : 0];

		queued--;
		if (!from_end)
			memmove(queue, queue + 1, queued * sizeof *queue);
		struct turn *turn = client_turns_take(&turns, popped, is_direct, &resumed);

		requeue(resumed);
		if (turn) {
			((struct item *)turn)->has_begun = true;
			return (struct item *)turn;
		}
	}
	return NULL;
}

static void end(struct item *i)
{
	i->has_begun = false;
	requeue(client_turns_ended(&turns, &i->turn, i->turn.expected_ns));
}

static void end_all(void)
{
	while (take(false))
		continue;
	for (unsigned i = 0; i < added; i++)
		if (item[i].has_begun)
			end(&item[i]);
}

static int teardown(void **state)
{
	(void)state;
	end_all();
	client_turns_fini(&turns);
	return 0;
}

static unsigned client_taken(void)
{
	struct item *i = take(false);

	return i ? i->client : 0;
}

static bool have_slots_of_their_own(void)
{
	struct turn turn[3];
	struct turn *resumed;

	for (unsigned i = 0; i < 3; i++) {
		client_turns_add(&turns, &turn[i], i + 1, 10000);
		client_turns_take(&turns, &turn[i], true, &resumed);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_null(client_turns_ended(&turns, &turn[i], turn[i].expected_ns));
	return turn[0].slot != turn[1].slot && turn[1].slot != turn[2].slot &&
	       turn[0].slot != turn[2].slot;
}

/* The seed is random: takes another one if two of the test's clients share a slot. */
static void separate_clients(void)
{
	while (!have_slots_of_their_own()) {
		client_turns_fini(&turns);
		client_turns_init(&turns, 1000);
	}
}

static void one_client_keeps_the_order_of_the_queue(void **state)
{
	(void)state;
	add(1, 50);
	for (unsigned i = 0; i < 25; i++)
		assert_ptr_equal(take(false), &item[i]);
	for (unsigned i = 50; i > 25; i--)
		assert_ptr_equal(take(true), &item[i - 1]);
}

static void another_client_is_next(void **state)
{
	(void)state;
	separate_clients();
	add(1, 64);
	assert_int_equal(client_taken(), 1);
	add(2, 1);
	assert_int_equal(client_taken(), 2);
	/* All images of the first client come, and in their order. */
	for (unsigned i = 1; i < 64; i++)
		assert_ptr_equal(take(false), &item[i]);
	assert_null(take(false));
}

static void clients_take_turns(void **state)
{
	unsigned count[4] = { 0 };

	(void)state;
	separate_clients();
	add(1, 40);
	add(2, 20);
	add(3, 20);
	for (unsigned i = 0; i < 60; i++)
		count[client_taken()]++;
	assert_int_equal(count[1], 20);
	assert_int_equal(count[2], 20);
	assert_int_equal(count[3], 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(client_taken(), 1);
	assert_null(take(false));
}

/* Clients get equal service, and not equal numbers of images. */
static void small_images_do_not_wait_behind_large_ones(void **state)
{
	(void)state;
	separate_clients();
	for (unsigned client = 1; client <= 2; client++)
		add_sized(client, 10, 1000000);
	for (unsigned i = 0; i < 4; i++)
		client_taken();
	add_sized(3, 20, 1000);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(client_taken(), 3);
	assert_int_not_equal(client_taken(), 3);
}

/* Nothing is saved up while a client sends nothing. */
static void an_absent_client_gathers_no_claim(void **state)
{
	unsigned second = 0;

	(void)state;
	separate_clients();
	add_sized(1, 40, 20 << 20);
	for (unsigned i = 0; i < 20; i++)
		client_taken();
	add_sized(2, 20, 20 << 20);
	for (unsigned i = 0; i < 10; i++)
		second += client_taken() == 2;
	assert_in_range(second, 5, 6);
}

/* As if the clients had come to a daemon that runs for long. */
static void begin_late(void)
{
	turns.served_ns = 100 * NS_PER_S;
}

/* 60 clients have an image each, and for each that ends another client comes. The second image of a
 * client waits for those that came before, and not until all clients have had one. */
static void a_crowd_is_served_in_the_order_of_arrival(void **state)
{
	unsigned n = 0;

	(void)state;
	begin_late();
	for (unsigned client = 1; client <= 60; client++)
		add_sized(client, 1, 1000000);
	struct item *i = take(false), *second = &item[added];

	add_sized(1, 1, 1000000);
	for (; i != second; n++) {
		assert_in_range(n, 0, 64);
		end(i);
		add_sized(100 + n, 1, 1000000);
		i = take(false);
	}
	assert_in_range(n, 58, 64);
}

/* Ten clients have a large image each, and send the next one when it has ended. A small one
 * does not wait behind those that came before. */
static void a_small_image_precedes_large_ones_of_ten_clients(void **state)
{
	(void)state;
	begin_late();
	for (unsigned client = 1; client <= 10; client++)
		add_sized(client, 1, 4000000);
	for (unsigned n = 0; n < 170; n++) {
		struct item *i = take(false);

		end(i);
		add_sized(i->client, 1, 4000000);
		if (n < 150 || n % 5)
			continue;
		add_sized(11, 1, 100000);
		assert_int_equal((i = take(false))->client, 11);
		end(i);
	}
}

static unsigned urgent_of(unsigned client, unsigned n, uint64_t bytes)
{
	unsigned first = added, count = 0;

	add_sized(client, n, bytes);
	for (unsigned i = first; i < added; i++)
		count += item[i].turn.is_urgent;
	return count;
}

static void few_images_beside_many_are_urgent(void **state)
{
	(void)state;
	separate_clients();
	assert_int_equal(urgent_of(1, 20, 1000), 0);
	assert_int_equal(urgent_of(2, 8, 1000), 20 / 4);
	assert_int_equal(urgent_of(1, 1, 1000), 0);
	/* Images that would put their client 100 ms ahead are not. */
	assert_int_equal(urgent_of(3, 1, 20 << 20), 0);
}

static void few_images_in_a_crowd_are_not_urgent(void **state)
{
	(void)state;
	for (unsigned client = 1; client <= 64; client++)
		add(client, 1);
	assert_int_equal(urgent_of(65, 4, 1000), 0);
	assert_int_equal(urgent_of(66, 1, 1000), 0);
	assert_int_equal(urgent_of(65, 1, 1000), 0); /* it has 5 of 70 now */
	assert_int_equal(urgent_of(67, 1, 1000), 1);
}

static void a_short_image_beside_a_long_one_is_urgent(void **state)
{
	(void)state;
	separate_clients();
	assert_int_equal(urgent_of(1, 1, 20 << 20), 0); /* 210 ms */
	assert_int_equal(urgent_of(2, 1, 1000), 0);
	assert_int_equal(client_taken(), 1);
	assert_int_equal(urgent_of(2, 1, 1000), 1);
	assert_int_equal(urgent_of(2, 1, 3000000), 0); /* not short */
	/* 24 ms each: until the client would be served more than that with the long one */
	assert_int_equal(urgent_of(2, 8, 2400000), 5);
	end(&item[0]);
	assert_int_equal(urgent_of(3, 1, 1000), 1); /* few beside many */
	assert_int_equal(urgent_of(2, 1, 1000), 0);
}

static void an_urgent_image_precedes_a_client_that_was_served_less(void **state)
{
	(void)state;
	separate_clients();
	add_sized(1, 20, 1000000);
	add_sized(2, 1, 1000000);
	assert_ptr_equal(take(true), &item[20]);
	add_sized(2, 1, 1000000);
	assert_ptr_equal(take(true), &item[21]);
	assert_int_equal(client_taken(), 1);
}

/* Otherwise all images of the flood would have begun when the other client comes again. */
static void direct_calls_keep_the_window_for_a_second(void **state)
{
	(void)state;
	separate_clients();
	is_direct = true;
	turns.window = 2;
	add(1, 2);
	assert_ptr_equal(take(false), &item[0]);
	assert_ptr_equal(take(false), &item[1]);
	add(2, 1);
	assert_ptr_equal(take(false), &item[2]);
	end(&item[2]);
	add(1, 2);
	assert_null(take(false));
	end(&item[0]);
	assert_ptr_equal(take(false), &item[3]);
	fake_clock_advance(NS_PER_S);
	add(1, 10);
	for (unsigned i = 0; i < 11; i++)
		assert_non_null(take(false));
	is_direct = false;
}

/* The cost of a file that takes much more time than its size tells is charged when it is known. */
static void expensive_images_count_by_their_time(void **state)
{
	struct turn *resumed;
	struct item *i;

	(void)state;
	separate_clients();
	add(1, 10);
	add(2, 10);
	do
		i = take(false);
	while (i->client != 1);
	i->has_begun = false;
	resumed = client_turns_ended(&turns, &i->turn, 3 * i->turn.expected_ns);
	requeue(resumed);
	assert_int_equal(client_taken(), 2);
	assert_int_equal(client_taken(), 2);
}

/* An image that waits for memory holds back its client's images and no others. */
static void a_wait_for_memory_holds_back_one_client(void **state)
{
	(void)state;
	separate_clients();
	add(1, 30);
	struct item *waits = take(false);

	client_turns_memory_wait(&turns, waits->turn.slot);
	assert_null(take(false));
	add(2, 2);
	assert_int_equal(client_taken(), 2);
	assert_int_equal(client_taken(), 2);
	assert_null(take(false));
	requeue(client_turns_memory_granted(&turns, waits->turn.slot));
	for (unsigned i = 1; i < 30; i++)
		assert_int_equal(client_taken(), 1);
	assert_null(take(false));
}

/* With several clients, each has a limited number of images between the begin and the end. */
static void clients_have_a_window(void **state)
{
	(void)state;
	separate_clients();
	turns.window = 4;
	add(1, 30);
	for (unsigned i = 0; i < 10; i++)
		assert_ptr_equal(take(false), &item[i]);
	add(2, 6);
	for (unsigned i = 30; i < 34; i++)
		assert_ptr_equal(take(false), &item[i]);
	assert_null(take(false));
	for (unsigned i = 0; i < 6; i++) {
		end(&item[i]);
		assert_null(take(false));
	}
	end(&item[6]);
	assert_ptr_equal(take(false), &item[10]);
	assert_null(take(false));
	end(&item[30]);
	assert_ptr_equal(take(false), &item[34]);
	end(&item[31]);
	assert_ptr_equal(take(false), &item[35]);
	/* When the second client has gone, the first one has no window. */
	for (unsigned i = 32; i < 36; i++)
		end(&item[i]);
	for (unsigned i = 11; i < 30; i++)
		assert_ptr_equal(take(false), &item[i]);
	assert_null(take(false));
}

/* The memory may be granted before the wait for it is counted. */
static void a_grant_may_precede_its_wait(void **state)
{
	(void)state;
	add(1, 2);
	struct item *waits = take(false);

	assert_null(client_turns_memory_granted(&turns, waits->turn.slot));
	client_turns_memory_wait(&turns, waits->turn.slot);
	assert_ptr_equal(take(false), &item[1]);
}

/* No image is lost or taken twice, whatever the order of the queue, and an image is always found
 * while one may be decoded. */
static void random_orders_lose_nothing(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 200; seed++) {
		bool taken[IMAGES] = { false };
		struct item *waits = NULL;
		unsigned left = IMAGES;

		end_all();
		client_turns_fini(&turns);
		setup(NULL);
		turns.window = 1 + seed % 20;
		srand(seed);
		while (left > 0) {
			if (added < IMAGES && rand() % 2)
				add(1 + (unsigned)rand() % 5, 1);
			if (waits && rand() % 4 == 0) {
				requeue(client_turns_memory_granted(&turns, waits->turn.slot));
				waits = NULL;
			}
			if (rand() % 3 && added < IMAGES)
				continue;
			struct item *i = take(rand() % 2);

			if (!i) {
				/* Each slot that has images waits for memory, or has its window. */
				for (unsigned k = 0; k < CLIENT_SLOTS; k++)
					assert_true(!turns.slot[k].kept ||
					            turns.slot[k].memory_waits ||
					            turns.slot[k].begun >= turns.window);
				assert_true(waits || added < IMAGES || turns.present > 1);
				end_all();
				continue;
			}
			assert_false(taken[i - item]);
			taken[i - item] = true;
			left--;
			if (rand() % 3 == 0 && i != waits)
				end(i);
			else if (!waits && rand() % 5 == 0) {
				waits = i;
				client_turns_memory_wait(&turns, i->turn.slot);
			}
		}
		if (waits)
			client_turns_memory_granted(&turns, waits->turn.slot);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_client_keeps_the_order_of_the_queue),
		TEST(another_client_is_next),
		TEST(clients_take_turns),
		TEST(small_images_do_not_wait_behind_large_ones),
		TEST(an_absent_client_gathers_no_claim),
		TEST(a_crowd_is_served_in_the_order_of_arrival),
		TEST(a_small_image_precedes_large_ones_of_ten_clients),
		TEST(few_images_beside_many_are_urgent),
		TEST(few_images_in_a_crowd_are_not_urgent),
		TEST(a_short_image_beside_a_long_one_is_urgent),
		TEST(an_urgent_image_precedes_a_client_that_was_served_less),
		TEST(direct_calls_keep_the_window_for_a_second),
		TEST(expensive_images_count_by_their_time),
		TEST(a_wait_for_memory_holds_back_one_client),
		TEST(clients_have_a_window),
		TEST(a_grant_may_precede_its_wait),
		TEST(random_orders_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
