/* test_shares.c - what clients find, and what announcements claim. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/shares.h"
#include "base/clock.h"

#define HALF_LIFE_NS (10 * NS_PER_S)

static struct shares s;

static int setup(void **state)
{
	(void)state;
	s = (struct shares){ .window_ns = NS_PER_S, .half_life_ns = HALF_LIFE_NS, .reserve = 0.25 };
	return 0;
}

static void begin(unsigned client, uint64_t work)
{
	shares_begin(&s, client, 1, work, 0);
}

static uint64_t work(unsigned client, uint64_t quantum)
{
	return shares_look(&s, client, quantum, 0).work;
}

static void work_of_others_counts_up_to_a_quantum_or_that_of_the_client(void **state)
{
	(void)state;
	begin(1, 1000000);
	begin(2, 30);
	assert_int_equal(work(3, 50), 50 + 30);
	begin(3, 90);
	assert_int_equal(work(3, 50), 90 + 90 + 30);
	shares_end(&s, 1, 999990);
	assert_int_equal(work(3, 50), 90 + 10 + 30);
	assert_int_equal(work(2, 50), 50 + 10 + 30);
}

static double room(unsigned client)
{
	return shares_look(&s, client, 0, 0).room;
}

static void a_client_finds_room_by_what_it_has_had(void **state)
{
	(void)state;
	assert_true(room(1) == 1);
	begin(1, 1000);
	assert_true(room(1) == 1 - s.reserve);
	assert_true(room(2) == 1);
	for (unsigned i = 2; i < 12; i++)
		begin(i, 1000);
	assert_true(room(1) == 1 - s.reserve);
	begin(20, 500);
	assert_true(room(20) > 0.82 && room(20) < 0.84);
	assert_true(room(30) == 1);
}

static void what_a_client_has_had_counts_half_after_a_half_life(void **state)
{
	(void)state;
	for (uint64_t start = 0; start < 1000; start += 99) { /* the unit is set again */
		shares_begin(&s, 1, 1, 1000, start * HALF_LIFE_NS);
		shares_begin(&s, 2, 1, 1000, (start + 1) * HALF_LIFE_NS);
		shares_begin(&s, 3, 1, 500, (start + 1) * HALF_LIFE_NS);
		struct shares_view view[] = { shares_look(&s, 1, 0, (start + 1) * HALF_LIFE_NS),
			                      shares_look(&s, 3, 0, (start + 1) * HALF_LIFE_NS) };

		assert_true(fabs(view[0].room - view[1].room) < 1e-9);
		assert_true(view[0].room > 0.79 && view[0].room < 0.81);
	}
}

static void an_announced_length_does_not_overflow(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CLIENT_SLOTS; i++)
		shares_announce(&s, i, UINT64_MAX, 0);
	for (unsigned i = 0; i < CLIENT_SLOTS; i++)
		begin(i, UINT64_C(1) << 40);
	assert_true(work(1, UINT64_MAX) >= UINT64_C(1) << 50);
}

static void announcements_claim_what_their_client_completes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(shares_announce(&s, 1, 500, 0), 500);
	assert_int_equal(s.claims.images, 1);
	assert_int_equal(s.claims.work, 0); /* none has come */
	for (unsigned i = 0; i < 25; i++) {
		shares_forget(&s, 1, 500, 0);
		begin(1, 500);
	}
	assert_int_equal(s.claims.images, 75 * 26 / 101 + 1);
	assert_int_equal(s.claims.work, 75 * 25 * 500 / 100);
	shares_announce(&s, 2, 500, 0); /* another client */
	assert_int_equal(s.claims.images, 75 * 26 / 101 + 2);
	assert_int_equal(s.claims.work, 75 * 25 * 500 / 100);
	shares_forget(&s, 2, 500, 0);
	for (unsigned i = 0; i < 75; i++)
		shares_forget(&s, 1, 500, 0);
	assert_int_equal(s.claims.images, 0);
	assert_int_equal(s.claims.work, 0);
}

static void claims_end_although_nothing_comes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++)
		begin(1, 10);
	shares_announce(&s, 1, 1000, NS_PER_S - 1);
	assert_int_equal(s.claims.work, 500);
	shares_look(&s, 2, 0, NS_PER_S);
	assert_int_equal(s.claims.work, 333); /* 500 have come lately */
	shares_look(&s, 2, 0, NS_PER_S - 1);  /* a thread that was late */
	assert_int_equal(s.claims.work, 333);
	shares_look(&s, 2, 0, 100 * NS_PER_S);
	assert_int_equal(s.claims.work, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(work_of_others_counts_up_to_a_quantum_or_that_of_the_client),
		TEST(a_client_finds_room_by_what_it_has_had),
		TEST(what_a_client_has_had_counts_half_after_a_half_life),
		TEST(an_announced_length_does_not_overflow),
		TEST(announcements_claim_what_their_client_completes),
		TEST(claims_end_although_nothing_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
