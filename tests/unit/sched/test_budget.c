/* test_budget.c - classes, order, shares and growth in the memory budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/core/resources.h"
#include "sched/core/stage.h"
#include "sched/limits/budget.h"

#define TOTAL 2048 /* half for bodies; 128 of it for small ones alone, which have at most 16 */
#define SMALL_SLICE 128
#define LARGE_MAX (TOTAL / 2 - SMALL_SLICE)

/* Takes the place of push.c, and records which events are queued in which order. */
static struct event *pushed[256];
static unsigned pushed_count;

void stage_push(struct stage *s, unsigned instance, struct event *ev)
{
	(void)s;
	(void)instance;
	pushed[pushed_count++] = ev;
}

static struct event events[8];
static const unsigned none = BUDGET_NO_CLIENT, one = 0, two = BUDGET_CLIENTS - 1;
static struct budget b;

static struct budget_waiter waiter(unsigned i)
{
	return (struct budget_waiter){ .event = &events[i] };
}

static struct budget_body body(enum budget_class class, unsigned client)
{
	struct budget_body result;

	budget_body_init(&b, &result, class, client);
	return result;
}

/* A large body that holds bytes. */
static struct budget_body holder(unsigned client, uint64_t bytes)
{
	struct budget_body result = body(BUDGET_BODY, client);

	assert_true(budget_body_try(&b, &result, bytes));
	return result;
}

static int setup(void **state)
{
	(void)state;
	pushed_count = 0;
	budget_init(&b, TOTAL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	budget_fini(&b); /* asserts that nothing is held */
	return 0;
}

static void assert_pushed(unsigned index, unsigned event)
{
	assert_true(index < pushed_count);
	assert_ptr_equal(pushed[index], &events[event]);
}

/* ---- classes ---- */

static void bodies_leave_half_to_images(void **state)
{
	struct budget_body small = body(BUDGET_SMALL_BODY, none);
	struct budget_waiter image = waiter(0), second = waiter(1);

	(void)state;
	assert_int_equal(budget_max(&b), TOTAL / 2);
	assert_int_equal(budget_small_max(&b), 16);
	struct budget_body large = holder(none, LARGE_MAX);

	assert_true(budget_body_try(&b, &small, SMALL_SLICE));
	assert_false(budget_body_try(&b, &small, 1));
	assert_true(budget_reserve_image(&b, TOTAL / 2, &image)); /* always possible for one */
	assert_false(budget_reserve_image(&b, 1, &second));
	budget_body_release(&b, &large);
	budget_body_release(&b, &small);
	assert_pushed(0, 1); /* images may use all that bodies leave */
	budget_release_image(&b, TOTAL / 2 + 1);
}

static void small_bodies_have_a_slice_of_their_own(void **state)
{
	struct budget_body full = holder(none, LARGE_MAX), other = body(BUDGET_BODY, none),
			   small = body(BUDGET_SMALL_BODY, none);
	struct budget_waiter w = waiter(0);

	(void)state;
	assert_false(budget_body_reserve(&b, &other, 1, &w));
	assert_true(budget_is_contended(&b));
	assert_true(budget_body_try(&b, &small, 16));
	budget_body_release(&b, &full);
	assert_pushed(0, 0);
	budget_body_release(&b, &other);
	budget_body_release(&b, &small);
}

static void a_large_body_alone_may_have_the_slice(void **state)
{
	struct budget_body large = holder(none, LARGE_MAX);

	(void)state;
	assert_true(budget_body_try(&b, &large, SMALL_SLICE));
	budget_body_release(&b, &large);
}

/* ---- order ---- */

static void reservations_are_granted_in_order(void **state)
{
	struct budget_waiter first = waiter(2), large = waiter(0), small = waiter(1);

	(void)state;
	assert_true(budget_reserve_image(&b, 1000, &first));
	assert_true(budget_reserve_image(&b, 1000, &first));
	assert_false(budget_reserve_image(&b, 1000, &large));
	assert_false(budget_reserve_image(&b, 10, &small)); /* would fit, but must not overtake */
	assert_int_equal(pushed_count, 0);
	budget_release_image(&b, 1000);
	assert_pushed(0, 0);
	assert_pushed(1, 1);
	budget_release_image(&b, 2010);
}

static void a_cancelled_reservation_lets_smaller_ones_pass(void **state)
{
	struct budget_body all = holder(none, LARGE_MAX - 20), body0 = body(BUDGET_BODY, none),
			   body1 = body(BUDGET_BODY, none), body2 = body(BUDGET_BODY, none);
	struct budget_waiter large = waiter(0), small = waiter(1), last = waiter(2);

	(void)state;
	assert_false(budget_body_reserve(&b, &body0, 50, &large));
	assert_false(budget_body_reserve(&b, &body1, 10, &small));
	assert_false(budget_body_reserve(&b, &body2, 10, &last));
	assert_true(budget_cancel(&b, &last));
	assert_int_equal(pushed_count, 0);
	assert_true(budget_cancel(&b, &large));
	assert_int_equal(pushed_count, 1);
	assert_pushed(0, 1);
	assert_false(budget_cancel(&b, &small)); /* queued already */
	budget_body_release(&b, &all);
	budget_body_release(&b, &body1);
}

static void a_release_grants_reservations_of_the_other_class(void **state)
{
	struct budget_waiter image = waiter(1), w = waiter(0);
	struct budget_body late = body(BUDGET_BODY, none);

	(void)state;
	assert_true(budget_reserve_image(&b, TOTAL / 2, &image));
	assert_true(budget_reserve_image(&b, TOTAL / 2, &image));
	assert_false(budget_body_reserve(&b, &late, 20, &w));
	assert_false(w.is_refused); /* images release */
	budget_release_image(&b, TOTAL / 2);
	assert_pushed(0, 0);
	budget_release_image(&b, TOTAL / 2);
	budget_body_release(&b, &late);
}

/* ---- clients ---- */

static void the_line_is_fair_to_clients(void **state)
{
	struct budget_body all = holder(none, LARGE_MAX), line[4];
	struct budget_waiter w[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++) { /* three of one client, then one of another */
		line[i] = body(BUDGET_BODY, i < 3 ? one : two);
		w[i] = waiter(i);
		assert_false(budget_body_reserve(&b, &line[i], 10, &w[i]));
	}
	budget_body_release(&b, &all);
	assert_int_equal(pushed_count, 4);
	assert_pushed(0, 0);
	assert_pushed(1, 3);
	assert_pushed(2, 1);
	assert_pushed(3, 2);
	for (unsigned i = 0; i < 4; i++)
		budget_body_release(&b, &line[i]);
}

static void a_client_leaves_a_quarter_to_others(void **state)
{
	struct budget_body first = holder(one, 500), second = holder(one, 260),
			   other = body(BUDGET_BODY, two);
	struct budget_waiter w = waiter(0), unused = waiter(1);

	(void)state;
	assert_false(budget_body_reserve(&b, &second, 10, &w)); /* more than 768 */
	assert_true(budget_body_reserve(&b, &other, 100, &unused));
	assert_int_equal(pushed_count, 0);
	budget_body_release(&b, &first);
	assert_pushed(0, 0);
	assert_true(budget_body_try(&b, &second, 510)); /* the only one of its client */
	budget_body_release(&b, &second);
	budget_body_release(&b, &other);
}

/* ---- bodies that wait for each other ---- */

static void the_last_of_bodies_that_wait_for_each_other_is_refused(void **state)
{
	struct budget_body first = holder(none, 450), second = holder(none, 440);
	struct budget_waiter w0 = waiter(0), w1 = waiter(1);

	(void)state;
	assert_false(budget_body_reserve(&b, &first, 450, &w0));
	assert_int_equal(pushed_count, 0); /* the second may still release */
	assert_false(budget_body_reserve(&b, &second, 440, &w1));
	assert_int_equal(pushed_count, 1);
	assert_pushed(0, 1);
	assert_true(w1.is_refused);
	assert_int_equal(second.bytes, 440);
	budget_body_release(&b, &second);
	assert_pushed(1, 0);
	assert_false(w0.is_refused);
	assert_int_equal(first.bytes, 900);
	budget_body_release(&b, &first);
}

static void a_release_that_helps_no_body_refuses_the_last(void **state)
{
	struct budget_body first = holder(none, 400), second = holder(none, 400),
			   third = holder(none, 90);
	struct budget_waiter w0 = waiter(0), w1 = waiter(1);

	(void)state;
	assert_false(budget_body_reserve(&b, &first, 400, &w0));
	assert_false(budget_body_reserve(&b, &second, 400, &w1));
	assert_int_equal(pushed_count, 0);
	budget_body_release(&b, &third);
	assert_int_equal(pushed_count, 1);
	assert_pushed(0, 1);
	assert_true(w1.is_refused);
	budget_body_release(&b, &second);
	assert_pushed(1, 0);
	budget_body_release(&b, &first);
}

static void bodies_of_one_client_that_wait_for_its_share_do_not_wait_forever(void **state)
{
	struct budget_body first = holder(one, 350), second = holder(one, 350);
	struct budget_waiter w0 = waiter(0), w1 = waiter(1);

	(void)state;
	assert_false(budget_body_reserve(&b, &first, 80, &w0));
	assert_int_equal(pushed_count, 0);
	assert_false(budget_body_reserve(&b, &second, 80, &w1));
	assert_int_equal(pushed_count, 1);
	assert_pushed(0, 1);
	assert_true(w1.is_refused);
	budget_body_release(&b, &second);
	assert_pushed(1, 0);
	budget_body_release(&b, &first);
}

static void a_copy_counts_for_the_same_client(void **state)
{
	struct budget_body small = body(BUDGET_SMALL_BODY, one), copy, other;

	(void)state;
	assert_true(budget_body_try(&b, &small, 16));
	assert_true(budget_body_try_copy(&b, &small, BUDGET_BODY, 700, &copy));
	budget_body_release(&b, &small);
	other = holder(one, 60);
	assert_false(budget_body_try(&b, &other, 10)); /* over the share */
	budget_body_release(&b, &copy);
	assert_true(budget_body_try(&b, &other, 10));
	budget_body_release(&b, &other);
}

/* Responses: they are there already. */
static void added_bytes_may_exceed_the_limits(void **state)
{
	struct budget_body large = holder(none, LARGE_MAX), small = body(BUDGET_SMALL_BODY, one),
			   late = body(BUDGET_SMALL_BODY, two);
	struct budget_waiter w = waiter(0), image = waiter(1);

	(void)state;
	assert_true(budget_body_try(&b, &small, SMALL_SLICE));
	budget_body_add(&b, &small, 200);
	assert_int_equal(small.bytes, SMALL_SLICE + 200);
	assert_false(budget_body_reserve(&b, &late, 1, &w));
	assert_false(w.is_refused); /* they are released */
	assert_false(budget_reserve_image(&b, TOTAL / 2 - 199, &image));
	budget_body_release(&b, &small);
	assert_int_equal(pushed_count, 2);
	assert_pushed(0, 1);
	assert_pushed(1, 0);
	budget_body_release(&b, &large);
	budget_body_release(&b, &late);
	budget_release_image(&b, TOTAL / 2 - 199);
}

static void added_bytes_count_for_their_client(void **state)
{
	struct budget_body response = body(BUDGET_SMALL_BODY, one), large = body(BUDGET_BODY, one);

	(void)state;
	budget_body_add(&b, &response, TOTAL / 2);
	assert_false(budget_body_try(&b, &large, 1)); /* over the share */
	budget_body_release(&b, &response);
	assert_true(budget_body_try(&b, &large, LARGE_MAX));
	budget_body_release(&b, &large);
}

/* ---- images that need much, and images that need little ---- */

enum { SMALL_IMAGE = 100 };

/* All images end, also those that wait. */
static void end_all_images(void)
{
	struct budget_usage usage;

	for (budget_usage(&b, &usage); usage.used[BUDGET_IMAGE]; budget_usage(&b, &usage))
		budget_release_image(&b, usage.used[BUDGET_IMAGE]);
}

/* A new small image comes whenever one ends. */
static void a_huge_image_waits_only_for_those_that_came_before_it(void **state)
{
	enum { STREAM = 200 };
	static struct budget_waiter w[STREAM];
	struct budget_waiter huge = waiter(7);
	unsigned ended = 0, begun = 0;

	(void)state;
	for (; begun < TOTAL / SMALL_IMAGE; begun++)
		assert_true(budget_reserve_image(&b, SMALL_IMAGE, &w[begun]));
	assert_false(budget_reserve_image(&b, budget_max(&b), &huge));
	for (; pushed_count == 0 && begun < STREAM; begun++, ended++) {
		w[begun] = waiter(0);
		assert_false(budget_reserve_image(&b, SMALL_IMAGE, &w[begun]));
		budget_release_image(&b, SMALL_IMAGE);
	}
	assert_pushed(0, 7); /* none of those that came later has passed it */
	assert_int_equal(ended, (TOTAL / 2 + SMALL_IMAGE - 1) / SMALL_IMAGE - 1);
	end_all_images();
	assert_int_equal(pushed_count, 1 + ended); /* all of the stream had their turn */
}

/* A new huge image comes whenever one ends. */
static void a_small_image_waits_only_for_those_that_came_before_it(void **state)
{
	enum { STREAM = 8 };
	static struct budget_waiter w[STREAM];
	struct budget_waiter small = waiter(7);
	unsigned begun, ended = 0;

	(void)state;
	for (begun = 0; begun < 5; begun++) {
		w[begun] = waiter(begun);
		budget_reserve_image(&b, budget_max(&b), &w[begun]);
	}
	assert_false(budget_reserve_image(&b, SMALL_IMAGE, &small)); /* behind three that wait */
	while (pushed_count == 0 || pushed[pushed_count - 1] != &events[7]) {
		if (begun < STREAM) {
			w[begun] = waiter(begun % 5);
			assert_false(budget_reserve_image(&b, budget_max(&b), &w[begun++]));
		}
		budget_release_image(&b, budget_max(&b));
		ended++;
		assert_true(ended <= 4);
	}
	assert_int_equal(ended, 4); /* two that held all memory, and two that preceded */
	end_all_images();
}

/* ---- the limit ---- */

static void the_budget_tells_that_it_is_near_its_limit(void **state)
{
	struct scarcity scarcity = { .near = 0 };
	struct budget_waiter w = waiter(0), other = waiter(1);

	(void)state;
	b.scarcity = &scarcity;
	assert_true(budget_reserve_image(&b, 1000, &w));
	assert_true(budget_reserve_image(&b, 842, &w));
	assert_int_equal(scarcity.near, 0);
	assert_true(budget_reserve_image(&b, 1, &w)); /* of 2048 */
	assert_int_equal(scarcity.near, 1);
	budget_release_image(&b, 843);
	assert_int_equal(scarcity.near, 0);
	assert_true(budget_reserve_image(&b, 200, &w));
	assert_false(budget_reserve_image(&b, 1000, &other)); /* it waits: six tenths are used */
	assert_int_equal(scarcity.near, 1);
	budget_release_image(&b, 200);
	assert_pushed(0, 1);
	assert_int_equal(scarcity.near, 1); /* 2000 are used */
	budget_release_image(&b, 1000);
	assert_int_equal(scarcity.near, 0);
	assert_int_equal(scarcity.shortages[RESOURCE_MEMORY], 2);
	budget_release_image(&b, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(bodies_leave_half_to_images),
		TEST(small_bodies_have_a_slice_of_their_own),
		TEST(a_large_body_alone_may_have_the_slice),
		TEST(reservations_are_granted_in_order),
		TEST(a_cancelled_reservation_lets_smaller_ones_pass),
		TEST(a_release_grants_reservations_of_the_other_class),
		TEST(the_line_is_fair_to_clients),
		TEST(a_client_leaves_a_quarter_to_others),
		TEST(the_last_of_bodies_that_wait_for_each_other_is_refused),
		TEST(a_release_that_helps_no_body_refuses_the_last),
		TEST(bodies_of_one_client_that_wait_for_its_share_do_not_wait_forever),
		TEST(a_copy_counts_for_the_same_client),
		TEST(added_bytes_may_exceed_the_limits),
		TEST(added_bytes_count_for_their_client),
		TEST(a_huge_image_waits_only_for_those_that_came_before_it),
		TEST(a_small_image_waits_only_for_those_that_came_before_it),
		TEST(the_budget_tells_that_it_is_near_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
