/* test_s3_breaker.c - when a store counts as away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "s3/s3_client.c"

#define START (5 * NS_PER_S)

/* Fails until the breaker opens. Returns when. */
static uint64_t open_it(struct breaker *b)
{
	uint64_t now = START;

	while (!breaker_note(b, 1, now, now))
		now += 100 * NS_PER_MS;
	return now;
}

static void few_failures_leave_it_closed(void **state)
{
	struct breaker b = { .is_open = false };

	(void)state;
	for (unsigned i = 0; i < 100; i++) /* at once: a blip */
		assert_false(breaker_note(&b, 1, START, START));
	assert_false(b.is_open);
	assert_false(breaker_note(&b, 0, START, START));
	/* A success in between, for any time. */
	for (unsigned i = 0; i < 100; i++) {
		assert_false(breaker_note(&b, 1, START, START + i * NS_PER_S));
		assert_false(breaker_note(&b, 0, START, START));
	}
}

static void rare_failures_leave_it_closed(void **state)
{
	struct breaker b = { .is_open = false };

	(void)state;
	for (unsigned i = 0; i + 1 < BREAKER_WEIGHT; i++)
		assert_false(breaker_note(&b, 1, START, START + i * 60 * NS_PER_S));
	assert_false(b.is_open);
}

static void it_opens_after_a_second_of_failures(void **state)
{
	struct breaker b = { .is_open = false };

	(void)state;
	uint64_t now = open_it(&b);

	assert_true(now >= START + BREAKER_OPEN_NS);
	assert_true(b.is_open);
	assert_false(breaker_note(&b, 1, now, now)); /* it was open */
}

static void two_requests_without_an_answer_open_it(void **state)
{
	struct breaker b = { .is_open = false };
	uint64_t now = START + 5 * NS_PER_S;

	(void)state;
	assert_false(breaker_note(&b, BREAKER_TIMEOUT, START, now));
	assert_true(breaker_note(&b, BREAKER_TIMEOUT, START, now));
}

/* Results of before and after a pause of the process come at once. */
static void a_few_failures_around_a_pause_leave_it_closed(void **state)
{
	struct breaker b = { .is_open = false };

	(void)state;
	for (unsigned i = 0; i + 1 < BREAKER_WEIGHT; i++)
		assert_false(breaker_note(&b, 1, START, START + 5 * NS_PER_S));
	assert_false(breaker_note(&b, 0, START, START));
}

static void a_success_closes_it(void **state)
{
	struct breaker b = { .is_open = false };
	uint64_t now = open_it(&b);

	(void)state;
	assert_true(breaker_note(&b, 0, START, START));
	assert_false(breaker_note(&b, 1, now, now)); /* counts from 0 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_failures_leave_it_closed),
		cmocka_unit_test(rare_failures_leave_it_closed),
		cmocka_unit_test(it_opens_after_a_second_of_failures),
		cmocka_unit_test(two_requests_without_an_answer_open_it),
		cmocka_unit_test(a_few_failures_around_a_pause_leave_it_closed),
		cmocka_unit_test(a_success_closes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
