/* test_clock.c - the CPU time of a thread that seldom asks the system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"

enum { NAPS = 200 };

/* Uses the CPU, or sleeps. Then the time is the system's, or a little more. */
static void is_near_what_the_system_says(bool sleeps)
{
	const struct timespec nap = { .tv_nsec = CLOCK_NEAR_NS / 4 };
	uint64_t last_ns = clock_thread_near_ns();

	for (int i = 0; i < NAPS; i++) {
		for (uint64_t begin_ns = clock_ns();
		     !sleeps && clock_ns() - begin_ns < (uint64_t)nap.tv_nsec;)
			;
		if (sleeps)
			nanosleep(&nap, NULL);
		uint64_t before_ns = clock_thread_ns(), near_ns = clock_thread_near_ns();

		assert_true(near_ns >= last_ns);
		assert_true(near_ns >= before_ns);
		assert_true(near_ns <= clock_thread_ns() + CLOCK_NEAR_NS);
		last_ns = near_ns;
	}
}

static void a_thread_that_works(void **state)
{
	(void)state;
	is_near_what_the_system_says(false);
}

static void a_thread_that_sleeps(void **state)
{
	(void)state;
	is_near_what_the_system_says(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_works),
		cmocka_unit_test(a_thread_that_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
