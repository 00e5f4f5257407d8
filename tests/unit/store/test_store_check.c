/* test_store_check.c - directories that are deleted while the store is open, and made again. */
#include <pthread.h>

#include "base/check.h"
#include "support/store_faults.h"

static unsigned error_count, notice_count, dup_count;
static int dup_errors[3]; /* of the first calls; 0: it succeeds */
static int duplicate_error;

static int fake_dup3(int from, int to, int flags)
{
	unsigned n = dup_count++;

	assert_int_equal(flags, O_CLOEXEC);
	if (n < COUNT_OF(dup_errors) && dup_errors[n]) {
		errno = dup_errors[n];
		return -1;
	}
	return dup3(from, to, flags);
}

static int fake_fcntl(int fd, int command, int least)
{
	errno = duplicate_error;
	return duplicate_error ? -1 : fcntl(fd, command, least);
}

#include "store/directory.c"
#undef log_error
#undef log_notice
#define log_error(...) (printf(__VA_ARGS__), error_count++)
static char notice[512];
#define log_notice(...) (notice_count++, snprintf(notice, sizeof notice, __VA_ARGS__))
#define dup3 fake_dup3
#define fcntl(fd, command, least) fake_fcntl(fd, command, least)
#include "store/store.c"
#undef fcntl

static struct store store;
static unsigned descriptors;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	no_fault();
	fake_now = NS_PER_S;
	memset(dup_errors, 0, sizeof dup_errors);
	duplicate_error = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-check-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, false, &cleared))
		return -1;
	error_count = notice_count = dup_count = 0;
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	store_close(&store);
	remove_test_root();
	return 0;
}

static void outside(const char *command)
{
	char line[512];

	snprintf(line, sizeof line, "root=%s; %s", test_root, command);
	assert_int_equal(system(line), 0);
}

/* Returns whether the descriptors are those of the directories at the root's path. */
static bool is_here(void)
{
	const struct {
		int fd;
		const char *name;
	} all[] = {
		{ store.root_fd, "." },
		{ store.incoming_fd, ".incoming" },
		{ store.trash_fd, ".trash" },
		{ store.spool_fd, ".spool" },
		{ store.quarantine_fd, ".quarantine" },
	};
	bool are_same = true;

	for (size_t i = 0; i < COUNT_OF(all); i++) {
		char path[256];
		struct stat open, named;

		snprintf(path, sizeof path, "%s/%s", test_root, all[i].name);
		are_same &= stat(path, &named) == 0 && fstat(all[i].fd, &open) == 0 &&
		            open.st_ino == named.st_ino;
	}
	return are_same;
}

static void a_whole_store_is_left_alone(void **state)
{
	(void)state;
	assert_true(store_check(&store));
	assert_false(store_check_missing(&store, 0));
	assert_int_equal(dup_count + error_count + notice_count, 0);
	fail_calls(CALL_FSTAT, EIO); /* what cannot be looked at is not known to be deleted */
	assert_true(is_deleted(store.root_fd) == false);
}

static void each_directory_is_made_again(void **state)
{
	static const char *const names[] = { ".incoming", ".trash", ".spool", ".quarantine" };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(names); i++) {
		char command[64];

		snprintf(command, sizeof command, "rmdir %s", names[i]);
		shell(command);
		assert_true(store_check_missing(&store, i));
		assert_int_equal(store.openings, i + 1);
		assert_true(is_here());
		assert_int_equal(open_descriptors(), descriptors);
		assert_int_equal(notice_count, i + 1);
		/* The lock of the root stays. */
		outside("! flock --nonblock $root true");
	}
	assert_int_equal(error_count, 0);
}

static void a_lost_root_is_logged_once_and_found_again(void **state)
{
	(void)state;
	for (unsigned turn = 1; turn <= 2; turn++) {
		outside("rm -r $root");
		for (int i = 0; i < 3; i++) {
			assert_false(store_check(&store));
			assert_false(store_check_missing(&store, turn - 1));
			assert_int_not_equal(store.lost, 0);
			assert_int_equal(error_count, turn);
		}
		outside("mkdir -m 700 $root");
		assert_true(store_check_missing(&store, turn - 1));
		assert_int_equal(store.lost, 0);
		assert_int_equal(notice_count, turn);
		assert_true(is_here());
		outside("! flock --nonblock $root true");
	}
}

static void a_root_that_was_moved_away_counts(void **state)
{
	(void)state;
	outside("mv $root $root.away");
	assert_true(store_check(&store));
	assert_int_equal(dup_count, 0);
	outside("mkdir $root");
	assert_true(store_check(&store)); /* another one is there */
	assert_true(is_here());
	outside("rm -r $root.away");
}

static void a_root_of_another_daemon_is_not_used(void **state)
{
	struct store other;
	unsigned cleared;

	(void)state;
	outside("rm -r $root && mkdir $root");
	assert_int_equal(store_open(&other, test_root, false, &cleared), 0);
	assert_false(store_check(&store));
	assert_false(is_here());
	store_close(&other);
	assert_true(store_check(&store));
	assert_true(is_here());
}

static void failed_calls_leave_the_store_lost(void **state)
{
	(void)state;
	shell("rmdir .spool");
	duplicate_error = EMFILE;
	assert_false(store_check(&store));
	duplicate_error = 0;
	fail_call(CALL_MKDIRAT, 1, EROFS);
	assert_false(store_check(&store));
	fail_call(CALL_FACCESSAT, 1, EROFS);
	assert_false(store_check(&store));
	no_fault();
	dup_count = 0;
	dup_errors[0] = EBADF;
	assert_false(store_check(&store));
	assert_int_equal(dup_count, 1);
	assert_int_equal(error_count, 1);
	assert_int_equal(open_descriptors(), descriptors);
	dup_count = 0;
	dup_errors[0] = EINTR;
	dup_errors[1] = EBUSY;
	assert_true(store_check(&store));
	assert_int_equal(dup_count, 7);
	assert_true(is_here());
	fail_call(CALL_FLOCK, 1, ENOLCK);
	outside("rm -r $root && mkdir $root");
	assert_false(store_check(&store));
}

static void a_root_that_the_sandbox_does_not_cover_needs_a_restart(void **state)
{
	(void)state;
	assert_false(store_must_restart(&store));
	outside("rm -r $root && mkdir $root");
	fail_calls(CALL_FLOCK, EIO);
	assert_false(store_check(&store));
	assert_false(store_must_restart(&store));
	assert_string_equal(store_lost_reason(&store), "server.root was deleted");
	assert_int_equal(error_count, 1);
	fail_calls(CALL_FLOCK, EACCES);
	for (int i = 0; i < 2; i++) {
		assert_false(store_check(&store));
		assert_true(store_must_restart(&store));
		assert_non_null(strstr(store_lost_reason(&store), "needs a restart"));
		assert_int_equal(error_count, 2);
	}
	no_fault();
	assert_true(store_check(&store));
	assert_false(store_must_restart(&store));
}

static void a_mount_of_the_deleted_root_needs_a_restart(void **state)
{
	(void)state;
	outside("rm -r $root");
	assert_false(store_check(&store));
	assert_false(store_must_restart(&store));
	/* The path of a descriptor leads to the deleted directory, as a mount does. */
	const char *root = store.root;
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", store.root_fd);
	store.root = path;
	assert_false(store_check(&store));
	assert_true(store_must_restart(&store));
	assert_int_equal(error_count, 2);
	store.root = root;
	outside("mkdir $root");
	assert_true(store_check(&store));
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_whole_store_is_left_alone),
		WITH_STORE(each_directory_is_made_again),
		WITH_STORE(a_lost_root_is_logged_once_and_found_again),
		WITH_STORE(a_root_that_was_moved_away_counts),
		WITH_STORE(a_root_of_another_daemon_is_not_used),
		WITH_STORE(failed_calls_leave_the_store_lost),
		WITH_STORE(a_root_that_the_sandbox_does_not_cover_needs_a_restart),
		WITH_STORE(a_mount_of_the_deleted_root_needs_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
