/* test_reactor.c - a reactor without free descriptors is an error that the process survives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/reactor.c"

/* Lowers the limit so that `count` more descriptors can be opened. */
static void leave_descriptors(unsigned count)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	int next = dup(STDERR_FILENO);

	assert_true(next >= 0);
	close(next);
	limit.rlim_cur = (rlim_t)next + count;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void too_few_descriptors_are_an_error(void **state)
{
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned left = 0; left < DESCRIPTORS; left++) {
		leave_descriptors(left);
		assert_null(reactor_new());
	}
	leave_descriptors(DESCRIPTORS);
	struct reactor *r = reactor_new();

	assert_non_null(r);
	assert_true(reactor_run(r, false));
	reactor_free(r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* In a child process, because libevent leaks what it has opened. */
static void descriptors_lost_to_another_thread_are_an_error(void **state)
{
	(void)state;
	for (unsigned left = 0; left <= DESCRIPTORS; left++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0) {
			struct event_config *config = event_config_new();

			leave_descriptors(left);
			struct event_base *base = base_new(config);

			_exit(base ? 2 : 0); /* 1 is libevent's */
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_not_equal(WEXITSTATUS(status), 1);
		if (left == 0 || left == DESCRIPTORS)
			assert_int_equal(WEXITSTATUS(status) == 2, left == DESCRIPTORS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_few_descriptors_are_an_error),
		cmocka_unit_test(descriptors_lost_to_another_thread_are_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
