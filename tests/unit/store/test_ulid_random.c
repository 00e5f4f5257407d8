/* test_ulid_random.c - the bits of an id, with a clock and random numbers of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static unsigned fills;
static bool is_interrupted;

/* Each byte of a fill is another one. */
static ssize_t fake_getrandom(void *data, size_t size, unsigned flags)
{
	assert_int_equal(size, 256);
	assert_int_equal(flags, 0);
	if (is_interrupted) {
		is_interrupted = false;
		return -1;
	}
	for (size_t i = 0; i < size; i++)
		((uint8_t *)data)[i] = (uint8_t)(i * 37 + 11 + fills);
	fills++;
	return (ssize_t)size;
}

/* One millisecond after 2026-11-22T11:40:00. */
static int fake_gettime(clockid_t id, struct timespec *t)
{
	assert_int_equal(id, CLOCK_REALTIME);
	*t = (struct timespec){ .tv_sec = 1795347600, .tv_nsec = 1000000 };
	return 0;
}

#define getrandom fake_getrandom
#define clock_gettime fake_gettime
#include "store/ulid.c"

/* Returns a number of the stock, as a machine of this byte order reads it. */
static uint64_t number_of(unsigned index, unsigned fill)
{
	uint8_t bytes[8];
	uint64_t number;

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)((index * 8 + i) * 37 + 11 + fill);
	memcpy(&number, bytes, sizeof number);
	return number;
}

/* 32 numbers are two for each of 16 ids; they are taken from the end. */
static void each_id_takes_eighty_new_bits(void **state)
{
	char expected[ULID_LENGTH + 1], id[ULID_LENGTH + 3];

	(void)state;
	is_interrupted = true;
	for (unsigned n = 0; n < 40; n++) {
		uint64_t random[2] = { number_of(31 - n % 16 * 2, n / 16),
			               number_of(30 - n % 16 * 2, n / 16) };

		ulid_bound(UINT64_C(1795347600001), '0', expected);
		for (unsigned i = 0; i < 16; i++)
			expected[10 + i] =
				"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[random[i / 8] >> i % 8 * 5 & 31];
		memset(id, '#', sizeof id);
		ulid_new(id);
		assert_string_equal(id, expected);
		assert_int_equal(id[ULID_LENGTH + 1], '#');
		assert_int_equal(fills, n / 16 + 1);
	}
}

static void bounds_are_the_first_and_the_last_id(void **state)
{
	char id[ULID_LENGTH + 3];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		memset(id, '#', sizeof id);
		ulid_bound(UINT64_C(1469922850259), i ? 'Z' : '0', id);
		assert_string_equal(id, i ? "01ARZ3NDEKZZZZZZZZZZZZZZZZ"
		                          : "01ARZ3NDEK0000000000000000");
		assert_int_equal(id[ULID_LENGTH + 1], '#');
		assert_int_equal(ulid_time(id), 1469922850);
	}
	ulid_bound(UINT64_C(0xffffffffffff), 'Z', id);
	assert_string_equal(id, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
	assert_int_equal(ulid_time(id), INT64_C(281474976710));
}

static void the_first_character_counts(void **state)
{
	(void)state;
	assert_false(ulid_is_valid("UIARZ3NDEKTSV4RRFFQ69G5FAV", ULID_LENGTH));
	assert_false(ulid_is_valid("U1ARZ3NDEKTSV4RRFFQ69G5FAV", ULID_LENGTH));
	assert_true(ulid_is_valid("71ARZ3NDEKTSV4RRFFQ69G5FAV", ULID_LENGTH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_id_takes_eighty_new_bits),
		cmocka_unit_test(bounds_are_the_first_and_the_last_id),
		cmocka_unit_test(the_first_character_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
