/* test_range.c - the Range header field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/preconditions.h"
#include "support/slice_fixture.h"

static void check_range(const char *text, uint64_t size, enum range_result expected, uint64_t first,
                        uint64_t last)
{
	struct slice all = slice_new(text);
	uint64_t got_first = 99, got_last = 99;

	if (range_parse(all, size, &got_first, &got_last) != expected)
		fail_msg("'%s' of %llu bytes", text, (unsigned long long)size);
	if (expected == RANGE_PART) {
		assert_int_equal(got_first, first);
		assert_int_equal(got_last, last);
	}
	if (expected != RANGE_PART)
		assert_true(got_first == 99 && got_last == 99);
	slice_free(all);
}

static void one_byte_range_is_parsed_and_clipped(void **state)
{
	(void)state;
	check_range("bytes=0-0", 10, RANGE_PART, 0, 0);
	check_range("bytes=2-5", 10, RANGE_PART, 2, 5);
	check_range("bytes=2-", 10, RANGE_PART, 2, 9);
	check_range("bytes=2-99", 10, RANGE_PART, 2, 9);
	check_range("bytes=-3", 10, RANGE_PART, 7, 9);
	check_range("bytes=-30", 10, RANGE_PART, 0, 9);
	check_range("Bytes= 2 - 5 ", 10, RANGE_PART, 2, 5);
	check_range("bytes=2-99999999999999999999999", 10, RANGE_PART, 2, 9);
	check_range("bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=18446744073709551616-", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=5-2", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=0-1,3-4", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=-", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=a-b", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=+1-2", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=1--2", 10, RANGE_WHOLE, 0, 9);
	check_range("items=1-2", 10, RANGE_WHOLE, 0, 9);
	check_range("", 10, RANGE_WHOLE, 0, 9);
	check_range("", 0, RANGE_WHOLE, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_byte_range_is_parsed_and_clipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
