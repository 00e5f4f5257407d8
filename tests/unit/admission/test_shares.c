/* test_shares.c - how much work comes before an upload, and what announcements claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/shares.h"
#include "base/clock.h"

static struct shares s;

static int setup(void **state)
{
	(void)state;
	s = (struct shares){ .window_ns = NS_PER_S };
	return 0;
}

static void begin(unsigned client, uint64_t work)
{
	shares_begin(&s, client, 1, work, 0);
}

static void work_of_others_counts_up_to_that_of_the_client(void **state)
{
	(void)state;
	begin(1, 1000000);
	begin(2, 30);
	assert_int_equal(shares_look(&s, 3, 50, 0), 50 + 50 + 30);
	begin(3, 40);
	assert_int_equal(shares_look(&s, 3, 50, 0), 90 + 90 + 30);
	shares_end(&s, 1, 999990);
	assert_int_equal(shares_look(&s, 3, 50, 0), 90 + 10 + 30);
}

static void a_client_has_all_its_own_work_ahead(void **state)
{
	(void)state;
	begin(1, 1000000);
	begin(CLIENT_SLOTS - 1, 7);
	assert_int_equal(shares_look(&s, 1, 50, 0), 1000050 + 7);
}

static void among_clients_that_have_the_same_all_work_is_ahead(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++)
		begin(i, 10);
	assert_int_equal(shares_look(&s, 500, 10, 0), 1010);
}

static void an_announced_length_does_not_overflow(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CLIENT_SLOTS; i++)
		shares_announce(&s, i, UINT64_MAX, 0);
	for (unsigned i = 0; i < CLIENT_SLOTS; i++)
		begin(i, UINT64_C(1) << 40);
	assert_true(shares_look(&s, 1, UINT64_MAX, 0) >= UINT64_C(1) << 50);
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
	assert_int_equal(shares_look(&s, 2, 0, NS_PER_S), 0);
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
		TEST(work_of_others_counts_up_to_that_of_the_client),
		TEST(a_client_has_all_its_own_work_ahead),
		TEST(among_clients_that_have_the_same_all_work_is_ahead),
		TEST(an_announced_length_does_not_overflow),
		TEST(announcements_claim_what_their_client_completes),
		TEST(claims_end_although_nothing_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
