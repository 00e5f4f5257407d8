/*
 * test_text.c - bounded texts, fixed and growable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void a_fixed_text_fills_and_stays_terminated(void **state)
{
	char memory[8];
	struct text t;

	(void)state;
	text_init(&t, memory, sizeof memory);
	assert_string_equal(t.data, "");
	text_puts(&t, "abc");
	text_printf(&t, "%d", 4567);
	assert_string_equal(t.data, "abc4567");
	assert_int_equal(t.length, 7);
	assert_false(t.overflowed);
	text_puts(&t, "8");
	assert_true(t.overflowed);
	assert_string_equal(t.data, "abc4567");
	text_puts(&t, "");
	text_printf(&t, "%s", "");
	assert_string_equal(t.data, "abc4567");
}

/* Otherwise an answer could lose its middle. */
static void an_overflowed_text_takes_nothing_more(void **state)
{
	char memory[6];
	struct text t;

	(void)state;
	text_init(&t, memory, sizeof memory);
	text_puts(&t, "ab");
	text_puts(&t, "too long");
	text_puts(&t, "c");
	assert_string_equal(t.data, "ab");
	assert_true(t.overflowed);
	text_fini(&(struct text){ 0 });
}

static void a_text_of_one_byte_is_empty(void **state)
{
	char memory[1];
	struct text t;

	(void)state;
	text_init(&t, memory, 1);
	text_printf(&t, "%s", "");
	assert_false(t.overflowed);
	text_put(&t, "x", 1);
	assert_true(t.overflowed);
	assert_string_equal(t.data, "");
}

static void a_growable_text_grows_to_its_bound(void **state)
{
	static const size_t bounds[] = { 1, 2, 100, 255, 256, 257, 512, 1000, 4096, 5000 };
	struct text t;

	(void)state;
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		text_init_growable(&t, bounds[i]);
		assert_string_equal(t.data, "");
		for (size_t n = 0; n + 1 < bounds[i]; n++) {
			text_put(&t, &"0123456789"[n % 10], 1);
			assert_false(t.overflowed);
			assert_int_equal(t.length, n + 1);
			assert_int_equal(t.data[t.length], 0);
		}
		text_put(&t, "x", 1);
		assert_true(t.overflowed);
		assert_int_equal(t.length, bounds[i] - 1);
		assert_true(t.size <= bounds[i]);
		text_fini(&t);
	}
}

static void a_growable_text_takes_large_pieces(void **state)
{
	char piece[3001];
	struct text t;

	(void)state;
	memset(piece, 'x', sizeof piece);
	piece[3000] = '\0';
	text_init_growable(&t, 10000);
	for (int i = 0; i < 3; i++)
		text_printf(&t, "%s", piece);
	assert_int_equal(t.length, 9000);
	assert_false(t.overflowed);
	text_puts(&t, piece);
	assert_true(t.overflowed);
	assert_int_equal(strlen(t.data), 9000);
	text_fini(&t);
	text_fini(&t); /* a second call has no effect */
}

static void numbers_are_written_in_decimal(void **state)
{
	char memory[128];
	struct text t;

	(void)state;
	text_init(&t, memory, sizeof memory);
	text_uint(&t, 0);
	text_puts(&t, " ");
	text_uint(&t, UINT64_MAX);
	text_puts(&t, " ");
	text_ms(&t, 0);
	text_puts(&t, " ");
	text_ms(&t, 999);
	text_puts(&t, " ");
	text_ms(&t, 1002003);
	text_puts(&t, " ");
	text_ms(&t, UINT64_MAX);
	assert_string_equal(t.data, "0 18446744073709551615 0.000 0.000 1.002 18446744073709.551");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_written_in_decimal),
		cmocka_unit_test(a_fixed_text_fills_and_stays_terminated),
		cmocka_unit_test(an_overflowed_text_takes_nothing_more),
		cmocka_unit_test(a_text_of_one_byte_is_empty),
		cmocka_unit_test(a_growable_text_grows_to_its_bound),
		cmocka_unit_test(a_growable_text_takes_large_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
