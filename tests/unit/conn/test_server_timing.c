/* test_server_timing.c - times in the header field Server-Timing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "resource/handle_upload.c"

static void times_are_rounded_to_tenths_of_a_millisecond(void **state)
{
	static const struct {
		uint64_t ns;
		const char *expected;
	} cases[] = {
		{ 0, "x;dur=0.0" },
		{ 49999, "x;dur=0.0" },
		{ 50000, "x;dur=0.1" },
		{ 149999, "x;dur=0.1" },
		{ 949999, "x;dur=0.9" },
		{ 950000, "x;dur=1.0" },
		{ 9950000, "x;dur=10.0" },
		{ 123400000, "x;dur=123.4" },
		{ 3600 * NS_PER_S, "x;dur=3600000.0" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char data[64];
		struct text t;

		text_init(&t, data, sizeof data);
		add_ms(&t, "x", cases[i].ns);
		assert_string_equal(data, cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_rounded_to_tenths_of_a_millisecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
