/* test_s3_objects.c - lists of keys, by pages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "s3/s3_objects.h"
#include "support/s3_memory.h"

static struct s3_client client;

static int begin(void **state)
{
	(void)state;
	s3_memory_clear();
	s3_memory_add("a/1", "", 0);
	s3_memory_add("a/2", "", 0);
	s3_memory_add("a/3", "", 0);
	s3_memory_add("b/1", "", 0);
	return 0;
}

static int count_key(const struct s3_listed *listed, void *arg)
{
	unsigned *left = arg;

	(void)listed;
	return --*left > 0 ? S3_LIST_NEXT : S3_LIST_END;
}

/* Lists at most `max` keys. Returns the number that came. */
static unsigned list(unsigned max)
{
	unsigned left = max;

	assert_int_equal(s3_list_keys(&client, "a/", 1000, count_key, &left), 0);
	return max - left;
}

static void a_whole_list_is_asked_for_once(void **state)
{
	(void)state;
	assert_int_equal(list(9), 3);
	assert_int_equal(s3_memory_count(S3_LIST), 1);
}

static void the_next_page_is_asked_for(void **state)
{
	(void)state;
	s3_memory_set_page(2);
	assert_int_equal(list(9), 3);
	assert_int_equal(s3_memory_count(S3_LIST), 2);
}

static void a_reader_that_ends_needs_no_further_page(void **state)
{
	(void)state;
	s3_memory_set_page(1);
	assert_int_equal(list(2), 2);
	assert_int_equal(s3_memory_count(S3_LIST), 2);
}

static void a_failed_list_is_not_continued(void **state)
{
	unsigned left = 9;

	(void)state;
	s3_memory_fail(S3_LIST, S3_AWAY);
	assert_int_equal(s3_list_keys(&client, "a/", 1000, count_key, &left), S3_AWAY);
	assert_int_equal(left, 9);
	assert_int_equal(s3_memory_count(S3_LIST), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_whole_list_is_asked_for_once, begin),
		cmocka_unit_test_setup(the_next_page_is_asked_for, begin),
		cmocka_unit_test_setup(a_reader_that_ends_needs_no_further_page, begin),
		cmocka_unit_test_setup(a_failed_list_is_not_continued, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
