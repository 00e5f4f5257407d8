/* test_ulid.c - new ids, and texts that are not ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "store/ulid.h"

static void new_ids_are_ulids(void **state)
{
	char a[ULID_LENGTH + 1], b[ULID_LENGTH + 1];

	(void)state;
	ulid_new(a);
	ulid_new(b);
	assert_int_equal(strlen(a), ULID_LENGTH);
	assert_true(ulid_is_valid(a, ULID_LENGTH));
	assert_string_not_equal(a, b);
	assert_memory_equal(a, b, 7); /* made within half a minute */
	assert_in_range(a[0], '0', '7');
}

static void an_id_has_the_time_of_its_making(void **state)
{
	char id[ULID_LENGTH + 1];
	time_t before = time(NULL);

	(void)state;
	ulid_new(id);
	assert_in_range(ulid_time(id), before, time(NULL));
	assert_int_equal(ulid_time("01ARZ3NDEKTSV4RRFFQ69G5FAV"), 1469922850);
	char date[ULID_DATE_MAX];

	ulid_date("01ARZ3NDEKTSV4RRFFQ69G5FAV", date);
	assert_string_equal(date, "2016-07-30T23:54:10.259Z");
}

static void other_texts_are_not_ulids(void **state)
{
	char a[ULID_LENGTH + 1];

	(void)state;
	ulid_new(a);
	assert_false(ulid_is_valid(a, ULID_LENGTH - 1));
	assert_false(ulid_is_valid("../../../../../etc/passwd", 25));
	/* Crockford's alphabet has no U. */
	assert_false(ulid_is_valid("01JD000000000000000000000U", 26));
	assert_false(ulid_is_valid("01jd0000000000000000000000", 26));
	assert_false(ulid_is_valid("01JD\0"
	                           "00000000000000000000A",
	                           26));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_ids_are_ulids),
		cmocka_unit_test(an_id_has_the_time_of_its_making),
		cmocka_unit_test(other_texts_are_not_ulids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
