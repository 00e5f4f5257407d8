/* test_store_open.c - opening a store whose files or system calls fail, and reading from it. */
#include "support/store_faults.h"

static char said[512]; /* the last message */

#undef log_error
#undef log_warning
#undef log_notice
#define log_error(...) snprintf(said, sizeof said, "error: " __VA_ARGS__)
#define log_warning(...) snprintf(said, sizeof said, "warning: " __VA_ARGS__)
#define log_notice(...) snprintf(said, sizeof said, "notice: " __VA_ARGS__)
#include "store/directory.c"
#include "store/store.c"
#include "store/store_find.c"
#include "store/store_put.c"

static struct store store;
static unsigned descriptors;

static int setup(void **state)
{
	(void)state;
	no_fault();
	fake_now = NS_PER_S;
	said[0] = '\0';
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-open-XXXXXX");
	descriptors = open_descriptors();
	return mkdtemp(test_root) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	remove_test_root();
	return 0;
}

static int open_store(unsigned *cleared)
{
	memset(&store, 0xff, sizeof store);
	*cleared = 99;
	return store_open(&store, test_root, false, cleared);
}

static void the_store_is_prepared(void **state)
{
	unsigned cleared;

	(void)state;
	assert_int_equal(open_store(&cleared), 0);
	assert_int_equal(cleared, 0);
	assert_false(store.survives_power);
	assert_int_equal(store.tidy_ns + store.flushes + store.trash_serial, 0);
	assert_true(store.free_bytes > 0); /* before the first upload asks for it */
	shell("test -d .incoming && test -d .trash && test -d .spool && test -d .quarantine");
	assert_int_equal(open_descriptors(), descriptors + 5);
	store_close(&store);
	assert_string_equal(said, "");
	assert_int_equal(store_open(&store, test_root, true, &cleared), 0);
	assert_true(store.survives_power);
	store_close(&store);
}

static void each_failing_call_is_an_error(void **state)
{
	static const struct {
		enum call call;
		unsigned count; /* calls without a fault */
		int error;
	} cases[] = {
		{ CALL_OPENAT, 7, EACCES },   { CALL_MKDIRAT, 5, EROFS },
		{ CALL_FLOCK, 1, ENOLCK },    { CALL_FLOCK, 1, EWOULDBLOCK },
		{ CALL_FACCESSAT, 1, EROFS }, { CALL_FDOPENDIR, 2, ENOMEM },
	};
	unsigned cleared;

	(void)state;
	assert_int_equal(open_store(&cleared), 0);
	store_close(&store);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		for (unsigned nth = 1; nth <= cases[i].count; nth++) {
			fail_call(cases[i].call, nth, cases[i].error);
			assert_int_equal(open_store(&cleared), -cases[i].error);
			assert_int_equal(open_descriptors(), descriptors);
		}
		fail_call(cases[i].call, cases[i].count + 1, cases[i].error);
		assert_int_equal(open_store(&cleared), 0);
		store_close(&store);
	}
}

static void check_said(const char *begin, const char *end)
{
	assert_true(strncmp(said, begin, strlen(begin)) == 0);
	assert_true(strlen(said) > strlen(end));
	assert_string_equal(said + strlen(said) - strlen(end), end);
	said[0] = '\0';
}

static void a_root_that_is_not_locked_says_why(void **state)
{
	unsigned cleared;

	(void)state;
	fail_call(CALL_FLOCK, 1, EWOULDBLOCK);
	assert_int_equal(open_store(&cleared), -EWOULDBLOCK);
	check_said("error: ", "another darkroomd uses this store");
	fail_call(CALL_FLOCK, 1, ENOLCK);
	assert_int_equal(open_store(&cleared), -ENOLCK);
	check_said("error: ", "No locks available");
}

static void a_mode_that_was_changed_is_reported(void **state)
{
	unsigned cleared;

	(void)state;
	shell("mkdir -m 755 .spool");
	assert_int_equal(open_store(&cleared), 0);
	check_said("notice: ", ".spool had the mode 755, and has 700 now");
	store_close(&store);
	shell("chmod 750 .spool");
	fail_call(CALL_FSTAT, 3, EIO); /* what is not known is not changed */
	assert_int_equal(open_store(&cleared), 0);
	assert_string_equal(said, "");
	store_close(&store);
	shell("test $(stat -c %a .spool) = 750");
}

static void a_store_is_attached_or_left(void **state)
{
	unsigned cleared;

	(void)state;
	memset(&store, 0xff, sizeof store);
	assert_int_equal(store_attach(&store, test_root), -ENOENT);
	assert_int_equal(store.root_fd, -1);
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(open_store(&cleared), 0);
	store_close(&store);
	memset(&store, 0xff, sizeof store);
	assert_int_equal(store_attach(&store, test_root), 0);
	assert_int_equal(open_descriptors(), descriptors + 4);
	assert_true(store.survives_power);
	store_close(&store);
}

#define A "01K0000000000000000000000A"
#define B "01K0000000000000000000000B"

static void leftovers_are_counted(void **state)
{
	unsigned cleared;

	(void)state;
	shell("mkdir -p .incoming/" A " .trash/" A ".1 .trash/" B ".2 && touch .incoming/" A
	      "/1 .trash/" A ".1/1 .incoming/" B);
	assert_int_equal(open_store(&cleared), 0);
	assert_int_equal(cleared, 4);
	assert_int_equal(entries(".incoming") + entries(".trash"), 0);
	store_close(&store);
}

static void leftovers_that_stay_are_cleared_later(void **state)
{
	unsigned cleared;

	(void)state;
	/* A directory in a directory is not of the store. */
	shell("mkdir -p .trash/" A ".0/strange .trash/" B ".1 .incoming/" A);
	assert_int_equal(open_store(&cleared), 0);
	assert_int_equal(cleared, 2);
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	shell("rm -r .trash/" A ".0/strange");
	fake_now += STORE_TIDY_NS;
	tidy(&store);
	assert_int_equal(entries(".trash"), 0);
	store_close(&store);
}

/* Before it, a loss of power may give names back to images whose files have gone. */
static void leftovers_go_after_a_flush(void **state)
{
	unsigned cleared;

	(void)state;
	shell("mkdir -p .trash/" A ".0 .incoming/" B);
	fail_call(CALL_SYNCFS, 1, EIO);
	assert_int_equal(store_open(&store, test_root, true, &cleared), -EIO);
	assert_int_equal(cleared, 0);
	assert_int_equal(entries(".trash") + entries(".incoming"), 2);
	check_said("error: ", "cannot prepare the store: Input/output error");
	no_fault();
	assert_int_equal(store_open(&store, test_root, true, &cleared), 0);
	assert_int_equal(cleared, 2);
	assert_int_equal(store.flushes, 1);
	store_close(&store);
}

int main(void)
{
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_ROOT(the_store_is_prepared),
		WITH_ROOT(each_failing_call_is_an_error),
		WITH_ROOT(a_root_that_is_not_locked_says_why),
		WITH_ROOT(a_mode_that_was_changed_is_reported),
		WITH_ROOT(a_store_is_attached_or_left),
		WITH_ROOT(leftovers_are_counted),
		WITH_ROOT(leftovers_that_stay_are_cleared_later),
		WITH_ROOT(leftovers_go_after_a_flush),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
