/* test_policy.c - visit orders, against sequences worked out by hand from the papers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../../src/policy/policy.h"

/* Plays hits ('+') and misses ('-') and returns the stages visited as a string of digits. */
static const char *play(const struct policy_class *policy, unsigned n, const char *results)
{
	static char visited[256];
	char state[POLICY_STATE_MAX] __attribute__((aligned(16)));
	size_t i;
	bool found = false;

	policy->reset(state, n);
	for (i = 0; results[i]; i++) {
		visited[i] = (char)('0' + policy->next(state, found));
		found = results[i] == '+';
	}
	visited[i] = '\0';
	return visited;
}

static void cohort_is_a_wavefront(void **state)
{
	(void)state;
	assert_string_equal(play(&policy_cohort, 4, "----------------"), "0123321001233210");
	assert_string_equal(play(&policy_cohort, 4, "+-+-+-+-"), "01233210"); /* hits do not change it */
	assert_string_equal(play(&policy_cohort, 1, "-+-"), "000");
}

/* A mutant that never turns back must be told from the real one. */
static void a_loop_is_no_wavefront(void **state)
{
	(void)state;
	assert_string_not_equal(play(&policy_cohort, 4, "--------"), "01230123");
}

static void every_stage_is_reached(void **state)
{
	char policy_state[POLICY_STATE_MAX] __attribute__((aligned(16)));

	(void)state;
	for (unsigned n = 1; n <= 64; n++) {
		unsigned since[64] = { 0 };

		policy_cohort.reset(policy_state, n);
		for (unsigned visit = 0; visit < 8 * n; visit++) {
			unsigned at = policy_cohort.next(policy_state, false);

			assert_true(at < n);
			for (unsigned i = 0; i < n; i++)
				since[i]++;
			since[at] = 0;
			for (unsigned i = 0; i < n; i++)
				assert_true(since[i] <= 2 * n);
		}
	}
}

static void registry_finds_by_name(void **state)
{
	char list[128];

	(void)state;
	assert_ptr_equal(policy_find("cohort"), &policy_cohort);
	assert_true(policy_find("thread-per-connection")->is_inline);
	assert_null(policy_find("Cohort"));
	assert_null(policy_find(""));
	policy_list(list, sizeof list);
	assert_string_equal(list, "cohort, thread-per-connection");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cohort_is_a_wavefront),
		cmocka_unit_test(a_loop_is_no_wavefront),
		cmocka_unit_test(every_stage_is_reached),
		cmocka_unit_test(registry_finds_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
