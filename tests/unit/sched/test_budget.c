/* test_budget.c - classes, order and fairness of the memory budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/budget.h"
#include "sched/stage.h"

/* Takes the place of push.c, and records which events are queued in which order. */
static struct event *pushed[16];
static unsigned pushed_count;

void stage_push(struct stage *s, unsigned instance, struct event *ev)
{
	(void)s;
	(void)instance;
	pushed[pushed_count++] = ev;
}

static struct event events[8];

static struct budget_waiter waiter(unsigned i)
{
	return (struct budget_waiter){ .event = &events[i] };
}

static int setup(void **state)
{
	(void)state;
	pushed_count = 0;
	return 0;
}

static void bodies_leave_half_to_images(void **state)
{
	struct budget b;

	(void)state;
	budget_init(&b, 100);
	assert_int_equal(budget_max(&b), 50);
	assert_true(budget_try_reserve(&b, BUDGET_BODY, 30));
	assert_false(budget_try_reserve(&b, BUDGET_BODY, 30));
	assert_true(budget_try_reserve(&b, BUDGET_BODY, 20));
	assert_true(
		budget_try_reserve(&b, BUDGET_IMAGE, 50)); /* always possible for a single image */
	assert_false(budget_try_reserve(&b, BUDGET_IMAGE, 1));
	budget_release(&b, BUDGET_BODY, 50);
	assert_true(budget_try_reserve(&b, BUDGET_IMAGE,
	                               50)); /* images may use all that bodies leave */
	budget_release(&b, BUDGET_IMAGE, 100);
	budget_fini(&b);
}

static void reservations_are_granted_in_order(void **state)
{
	struct budget b;
	struct budget_waiter large = waiter(0), small = waiter(1);

	(void)state;
	budget_init(&b, 100);
	assert_true(budget_try_reserve(&b, BUDGET_IMAGE, 30));
	assert_true(budget_try_reserve(&b, BUDGET_IMAGE, 40));
	assert_false(budget_reserve(&b, BUDGET_IMAGE, 50, &large));
	assert_false(budget_reserve(&b, BUDGET_IMAGE, 10,
	                            &small)); /* would fit, but must not overtake */
	assert_int_equal(pushed_count, 0);
	budget_release(&b, BUDGET_IMAGE, 30);
	assert_int_equal(pushed_count, 2);
	assert_ptr_equal(pushed[0], &events[0]);
	assert_ptr_equal(pushed[1], &events[1]);
	assert_false(budget_cancel(&b, BUDGET_IMAGE, &large)); /* queued already */
	budget_release(&b, BUDGET_IMAGE, 100);
	budget_fini(&b);
}

static void a_cancelled_reservation_lets_smaller_ones_pass(void **state)
{
	struct budget b;
	struct budget_waiter large = waiter(0), small = waiter(1), last = waiter(2);

	(void)state;
	budget_init(&b, 100);
	assert_true(budget_try_reserve(&b, BUDGET_BODY, 40));
	assert_false(budget_reserve(&b, BUDGET_BODY, 50, &large));
	assert_false(budget_reserve(&b, BUDGET_BODY, 10, &small));
	assert_false(budget_reserve(&b, BUDGET_BODY, 10, &last));
	assert_true(budget_cancel(&b, BUDGET_BODY, &last));
	assert_int_equal(pushed_count, 0);
	assert_true(budget_cancel(&b, BUDGET_BODY, &large));
	assert_int_equal(pushed_count, 1);
	assert_ptr_equal(pushed[0], &events[1]);
	budget_release(&b, BUDGET_BODY, 50);
	budget_fini(&b);
}

static void a_release_grants_reservations_of_the_other_class(void **state)
{
	struct budget b;
	struct budget_waiter body = waiter(0);

	(void)state;
	budget_init(&b, 100);
	assert_true(budget_try_reserve(&b, BUDGET_IMAGE, 50));
	assert_true(budget_try_reserve(&b, BUDGET_IMAGE, 50));
	assert_false(budget_reserve(&b, BUDGET_BODY, 20, &body));
	budget_release(&b, BUDGET_IMAGE, 50);
	assert_int_equal(pushed_count, 1);
	budget_release(&b, BUDGET_IMAGE, 50);
	budget_release(&b, BUDGET_BODY, 20);
	budget_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bodies_leave_half_to_images, setup),
		cmocka_unit_test_setup(reservations_are_granted_in_order, setup),
		cmocka_unit_test_setup(a_cancelled_reservation_lets_smaller_ones_pass, setup),
		cmocka_unit_test_setup(a_release_grants_reservations_of_the_other_class, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
