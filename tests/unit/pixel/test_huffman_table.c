/* test_huffman_table.c - optimal Huffman tables: valid, short, and of limited length. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pixel/huffman_table.h"

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245U + 12345U;
	return *seed >> 8;
}

/* Returns the bits per symbol. Every symbol must have a code, no code may be a prefix of another
 * one, and none may be all ones. */
static double check_table(const uint32_t *count)
{
	static uint32_t code[HUFFMAN_SYMBOLS];
	struct huffman_table t;
	double all = 0, bits = 0;
	uint64_t next = 0;

	memset(code, 0, sizeof(code));
	huffman_table_make(count, &t, code);
	for (int s = 0; s < HUFFMAN_SYMBOLS; s++) {
		unsigned follow = s & 15, length = (code[s] & 31) - follow;

		assert_int_equal(code[s] != 0, count[s] != 0);
		if (!count[s])
			continue;
		assert_in_range(length, 1, HUFFMAN_LENGTH_MAX);
		assert_true((code[s] >> 5 >> follow) < (1u << length) - 1);
		all += count[s];
		bits += (double)count[s] * length;
	}
	/* In the order of the table, each code starts at the end of the previous one. */
	for (unsigned length = 1, i = 0; length <= HUFFMAN_LENGTH_MAX; length++)
		for (unsigned k = 0; k < t.bits[length]; k++, i++) {
			unsigned s = t.symbol[i], follow = s & 15;

			assert_int_equal((code[s] & 31) - follow, length);
			assert_int_equal((uint64_t)(code[s] >> 5 >> follow)
			                         << (HUFFMAN_LENGTH_MAX - length),
			                 next);
			next += 1u << (HUFFMAN_LENGTH_MAX - length);
		}
	assert_true(next < 1u << HUFFMAN_LENGTH_MAX);
	return bits / all;
}

static double entropy(const uint32_t *count)
{
	double all = 0, bits = 0;

	for (int s = 0; s < HUFFMAN_SYMBOLS; s++)
		all += count[s];
	for (int s = 0; s < HUFFMAN_SYMBOLS; s++)
		if (count[s])
			bits -= count[s] / all * log2(count[s] / all);
	return bits;
}

static void tables_are_short(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (unsigned n = 1; n <= HUFFMAN_SYMBOLS; n++) {
		uint32_t count[HUFFMAN_SYMBOLS] = { 0 };
		double bits, least;

		/* Symbols with more than 11 following bits do not occur and would not fit. */
		for (unsigned i = 0; i < n; i++)
			if (i % 16 < 12)
				count[i] =
					1 + next_random(&seed) % (1 + next_random(&seed) % 10000);
		bits = check_table(count);
		least = entropy(count);
		assert_true(bits >= least && bits < least + 1.01);
	}
}

/* Fibonacci counts make the deepest of all trees. */
static void deep_trees_are_limited(void **state)
{
	(void)state;
	for (unsigned n = 2; n <= 30; n++) {
		uint32_t count[HUFFMAN_SYMBOLS] = { 0 };

		for (unsigned i = 0, a = 1, b = 1; i < n; i++) {
			uint32_t c = a + b;

			count[(i / 10) << 4 | i % 10] = a;
			a = b;
			b = c;
		}
		assert_true(check_table(count) < entropy(count) + .6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_short),
		cmocka_unit_test(deep_trees_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
