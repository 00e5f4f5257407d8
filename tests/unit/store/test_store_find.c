/* test_store_find.c - looking for files of images, with and without waiting for the disk. */
#include <sys/syscall.h>

#include "support/store_faults.h"

/* The cached way: cached[n] is the result of the n-th call, 0 for the real one. during[n] runs
 * before it. */
static int cached[5];
static const char *during[5];
static unsigned cached_calls;

#define open_cached fake_open_cached
#include "store/store_find.c"
#undef open_cached

#include "base/check.h"

static const char id[] = "01K0000000000000000000000A";
static struct store store;
static struct store_found found;
static unsigned descriptors, cleared;

int fake_open_cached(int at, const char *path)
{
	unsigned n = cached_calls++;

	assert_true(n < COUNT_OF(cached));
	if (during[n])
		shell(during[n]);
	if (cached[n])
		return cached[n];
	int fd = (int)syscall(SYS_openat, at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int setup(void **state)
{
	(void)state;
	no_fault();
	memset(cached, 0, sizeof cached);
	memset(during, 0, sizeof during);
	memset(&found, 0xff, sizeof found);
	cached_calls = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-find-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, false, &cleared))
		return -1;
	descriptors = open_descriptors();
	return 0;
}

/* All descriptors that were opened must be closed. */
static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	store_close(&store);
	remove_test_root();
	return 0;
}

#define MAKE_IN(directory)                                      \
	"mkdir -p " directory "/01K0000000000000000000000A && " \
	"printf abc >" directory "/01K0000000000000000000000A/a.jpg"
#define MAKE MAKE_IN("01K0/00")
#define MAKE_OLD MAKE_IN("0A") /* as earlier versions did */
#define SPOOL_IT "mkdir -p .spool/01K0000000000000000000000A"

static void assert_file(void)
{
	assert_true(found.fd >= 0);
	assert_int_equal(found.size, 3);
	assert_false(found.is_spooled);
	close(found.fd);
}

static void assert_absent(bool is_spooled)
{
	assert_int_equal(found.fd, -ENOENT);
	assert_int_equal(found.is_spooled, is_spooled);
}

static void a_file_is_found_in_both_ways(void **state)
{
	(void)state;
	shell(MAKE);
	store_find(&store, id, "a.jpg", &found);
	assert_file();
	assert_int_equal(cached_calls, 0);
	found.is_spooled = true;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_file();
	assert_int_equal(cached_calls, 1);
}

static void a_file_of_an_earlier_version_is_found_in_both_ways(void **state)
{
	(void)state;
	shell(MAKE_OLD);
	store_find(&store, id, "a.jpg", &found);
	assert_file();
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_file();
	assert_int_equal(cached_calls, 2);
}

static void a_missing_file_is_missing_in_both_ways(void **state)
{
	(void)state;
	store_find(&store, id, "a.jpg", &found);
	assert_absent(false);
	found.is_spooled = true;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_absent(false);
	shell(SPOOL_IT);
	store_find(&store, id, "a.jpg", &found);
	assert_absent(true);
	cached_calls = 0;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_absent(true);
	assert_int_equal(cached_calls, 3);
}

static void a_file_that_is_stored_meanwhile_is_found(void **state)
{
	(void)state;
	during[3] = MAKE; /* it had left the spool before */
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_file();
}

static void what_the_kernel_does_not_know_is_not_waited_for(void **state)
{
	(void)state;
	for (unsigned n = 0; n < COUNT_OF(cached); n++) {
		cached_calls = 0;
		memset(cached, 0, sizeof cached);
		cached[n] = -EAGAIN;
		fail_call(CALL_OPENAT, 1, EIO);
		assert_false(store_find_cached(&store, id, "a.jpg", &found));
		assert_int_equal(cached_calls, n + 1);
		assert_int_equal(calls[CALL_OPENAT] + calls[CALL_FACCESSAT], 0);
		no_fault();
	}
}

static void errors_are_reported_and_leave_no_descriptor(void **state)
{
	(void)state;
	shell(MAKE);
	cached[0] = -EMFILE;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_int_equal(found.fd, -EMFILE);
	cached_calls = 0;
	cached[0] = 0;
	fail_call(CALL_FSTAT, 1, EIO);
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_int_equal(found.fd, -EIO);
	no_fault();
	fail_call(CALL_OPENAT, 1, EACCES);
	store_find(&store, id, "a.jpg", &found);
	assert_int_equal(found.fd, -EACCES);
	assert_false(found.is_spooled);
}

static void an_unknown_error_counts_as_spooled(void **state)
{
	(void)state;
	cached[2] = -EIO;
	assert_true(store_find_cached(&store, id, "a.jpg", &found));
	assert_absent(true);
	fail_call(CALL_FACCESSAT, 1, EIO);
	store_find(&store, id, "a.jpg", &found);
	assert_absent(true);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_file_is_found_in_both_ways),
		WITH_STORE(a_file_of_an_earlier_version_is_found_in_both_ways),
		WITH_STORE(a_missing_file_is_missing_in_both_ways),
		WITH_STORE(a_file_that_is_stored_meanwhile_is_found),
		WITH_STORE(what_the_kernel_does_not_know_is_not_waited_for),
		WITH_STORE(errors_are_reported_and_leave_no_descriptor),
		WITH_STORE(an_unknown_error_counts_as_spooled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
