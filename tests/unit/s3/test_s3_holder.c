/* test_s3_holder.c - what the thread of the leases finds out about the store. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "s3/s3_holder.h"
#include "support/s3_memory.h"

static const struct conf conf = { .store = { .s3_lease_ms = 60000, .s3_timeout_ms = 1000 } };
static struct s3_store store;

static int begin(void **state)
{
	(void)state;
	s3_memory_clear();
	return 0;
}

/* Runs the thread, which probes the store once at least. Returns whether the store does
 * conditional requests. */
static bool probe(void)
{
	struct s3_holder h;

	assert_int_equal(s3_holder_init(&h, &store, &conf), 0);
	assert_int_equal(s3_holder_start(&h), 0);
	s3_holder_stop(&h);
	bool works = atomic_load(&h.works);

	s3_holder_fini(&h);
	return works;
}

static void a_store_that_refuses_the_second_put_works(void **state)
{
	(void)state;
	assert_true(probe());
	assert_int_equal(s3_memory_count(S3_PUT), 2);
	assert_int_equal(s3_memory_count(S3_DELETE), 1);
}

static void a_store_that_ignores_conditions_does_not_work(void **state)
{
	(void)state;
	s3_memory_ignore_conditions();
	assert_false(probe());
	assert_int_equal(s3_memory_count(S3_PUT), 2);
	assert_int_equal(s3_memory_count(S3_DELETE), 1);
}

static void a_failed_put_is_not_followed_by_another(void **state)
{
	(void)state;
	s3_memory_fail(S3_PUT, S3_AWAY);
	assert_false(probe());
	assert_int_equal(s3_memory_count(S3_PUT), 1);
	assert_int_equal(s3_memory_count(S3_DELETE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_store_that_refuses_the_second_put_works, begin),
		cmocka_unit_test_setup(a_store_that_ignores_conditions_does_not_work, begin),
		cmocka_unit_test_setup(a_failed_put_is_not_followed_by_another, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
