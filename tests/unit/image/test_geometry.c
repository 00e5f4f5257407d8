/* test_geometry.c - the size of a variant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "image/geometry.h"

static void pictures_fit_into_the_box_and_keep_their_proportions(void **state)
{
	static const int cases[][6] = {
		{ 1600, 1200, 800, 800, 800, 600 }, { 1200, 1600, 800, 800, 600, 800 },
		{ 800, 800, 800, 800, 800, 800 },   { 799, 10, 800, 800, 799, 10 },
		{ 20000, 3, 800, 800, 800, 1 },     { 3, 20000, 160, 160, 1, 160 },
		{ 1000, 1000, 0, 0, 1000, 1000 },   { 4000, 3000, 800, 100, 133, 100 },
		{ 4000, 3000, 100, 800, 100, 75 },  { 65500, 65500, 1, 65500, 1, 1 },
		{ 1601, 1200, 800, 800, 800, 600 }, { 5, 3, 4, 4, 4, 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const int *k = cases[i];
		int w, h;

		size_fit(k[0], k[1], (uint32_t)k[2], (uint32_t)k[3], &w, &h);
		assert_int_equal(w, k[4]);
		assert_int_equal(h, k[5]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_fit_into_the_box_and_keep_their_proportions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
