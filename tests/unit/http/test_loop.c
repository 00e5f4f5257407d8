/* test_loop.c - an event loop that cannot have its descriptors is not made, and the process goes
 * on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "http/loop.c"

/* So many more can be opened. */
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

static void without_descriptors_there_is_no_loop(void **state)
{
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned left = 0; left < DESCRIPTORS; left++) {
		leave_descriptors(left);
		assert_null(loop_new());
	}
	leave_descriptors(DESCRIPTORS);
	struct loop *loop = loop_new();

	assert_non_null(loop);
	assert_true(loop_run(loop, false));
	loop_free(loop);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* In a child, since what libevent had until then is lost. */
static void nor_if_others_take_them_meanwhile(void **state)
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
		cmocka_unit_test(without_descriptors_there_is_no_loop),
		cmocka_unit_test(nor_if_others_take_them_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
