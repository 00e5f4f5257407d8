/* test_figure.c - numbers for people: units, significant digits and no exponents. */
#include "load/figure.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char text[FIGURE_SIZE];

static void durations_have_a_unit_and_three_digits(void **state)
{
	(void)state;
	assert_string_equal(figure_duration(0, text), "0.000 ms");
	assert_string_equal(figure_duration(512e3, text), "0.512 ms");
	assert_string_equal(figure_duration(999.6e3, text), "1.00 ms");
	assert_string_equal(figure_duration(95.7e6, text), "95.7 ms");
	assert_string_equal(figure_duration(248e6, text), "248 ms");
	assert_string_equal(figure_duration(999.6e6, text), "1.00 s");
	assert_string_equal(figure_duration(1020e6, text), "1.02 s");
	assert_string_equal(figure_duration(4398e9, text), "4398 s");
}

static void bytes_have_decimal_units(void **state)
{
	(void)state;
	assert_string_equal(figure_bytes(0, text), "0 B");
	assert_string_equal(figure_bytes(999, text), "999 B");
	assert_string_equal(figure_bytes(1000, text), "1.0 KB");
	assert_string_equal(figure_bytes(1234567, text), "1.2 MB");
	assert_string_equal(figure_bytes(5e15, text), "5000.0 TB");
}

static void rates_have_no_exponent(void **state)
{
	(void)state;
	assert_string_equal(figure_rate(0, text), "0.000/s");
	assert_string_equal(figure_rate(34, text), "34.0/s");
	assert_string_equal(figure_rate(1234567, text), "1234567/s");
	assert_string_equal(figure_exact(10000000, text), "10000000");
	assert_string_equal(figure_exact(0.25, text), "0.25");
	assert_string_equal(figure_exact(0.00001, text), "0.00001");
	assert_string_equal(figure_exact(0, text), "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_a_unit_and_three_digits),
		cmocka_unit_test(bytes_have_decimal_units),
		cmocka_unit_test(rates_have_no_exponent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
