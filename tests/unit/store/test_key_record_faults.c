/* test_key_record_faults.c - files of keys whose system calls fail, or do a part of their work. */
#include "support/store_faults.h"

#include "base/check.h"
#include "base/pool.h"

#include "store/directory.c"
#include "store/key_record.c"

static struct store store;
static unsigned descriptors;
static char ids[KEY_RECORD_IDS_MAX + 1][ULID_LENGTH + 1];
static const struct key_record key = { .name = { 0xab, 1 } };

static int setup(void **state)
{
	(void)state;
	no_fault();
	for (unsigned i = 0; i < COUNT_OF(ids); i++)
		snprintf(ids[i], sizeof ids[i], "01K%023u", i);
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-keys-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	store.root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(store.root_fd);
	remove_test_root();
	return 0;
}

static int write_record(unsigned count)
{
	struct key_record r = key;

	r.created = 5;
	r.failed = 6;
	r.count = count;
	r.id = ids;
	return key_record_write(&store, &r);
}

static int settle_record(void)
{
	struct key_record r = key;

	r.is_settled = true;
	return key_record_write(&store, &r);
}

/* Reads the record. It must have that many ids, and be complete. */
static void check_record(unsigned count)
{
	struct key_record r = key;

	assert_int_equal(key_record_read(&store, &r), 0);
	assert_true(r.created == 5 && r.failed == 6 && r.count == count);
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(r.id[i], ids[i]);
	pool_put(r.id);
}

static int read_record(void)
{
	struct key_record r = key;
	int err = key_record_read(&store, &r);

	assert_int_equal(r.count, 0);
	return err;
}

static const char *path_of(const char *suffix)
{
	static char path[STORE_PATH_MAX];

	key_path(path, &key);
	strcat(path, suffix);
	return path;
}

static void each_failing_call_of_a_write_is_an_error(void **state)
{
	static const struct {
		enum call call;
		unsigned nth;
		int error, result;
	} cases[] = {
		{ CALL_OPENAT, 1, EACCES, -EACCES }, { CALL_MKDIRAT, 1, EROFS, -EROFS },
		{ CALL_MKDIRAT, 2, EROFS, -EROFS },  { CALL_OPENAT, 2, EMFILE, -EMFILE },
		{ CALL_WRITE, 1, ENOSPC, -ENOSPC },  { CALL_WRITE, 1, 0, -EIO },
		{ CALL_CLOSE, 4, EIO, -EIO },        { CALL_RENAMEAT, 1, EDQUOT, -EDQUOT },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		shell("rm -rf .keys");
		fail_call(cases[i].call, cases[i].nth, cases[i].error);
		assert_int_equal(write_record(1), cases[i].result);
		assert_true(calls[cases[i].call] >= cases[i].nth);
		assert_false(exists(path_of("")));
		assert_false(exists(path_of(".new")));
		assert_int_equal(open_descriptors(), descriptors);
	}
	no_fault();
	assert_int_equal(write_record(1), 0);
	check_record(1);
}

static void a_write_error_comes_before_that_of_close(void **state)
{
	(void)state;
	assert_int_equal(write_record(1), 0); /* makes the directories */
	fail_calls(CALL_WRITE, ENOSPC);
	assert_int_equal(write_record(2), -ENOSPC);
	no_fault();
	check_record(1);
	fail_call(CALL_RENAMEAT, 1, EIO);
	assert_int_equal(write_record(2), -EIO);
	assert_false(exists(path_of(".new")));
	check_record(1);
}

static void what_is_not_a_file_of_a_records_size_is_none(void **state)
{
	(void)state;
	assert_int_equal(write_record(KEY_RECORD_IDS_MAX), 0);
	check_record(KEY_RECORD_IDS_MAX);
	assert_int_equal(write_record(KEY_RECORD_IDS_MAX + 1), 0);
	assert_int_equal(read_record(), -ENOENT);
	assert_int_equal(write_record(0), 0);
	check_record(0);
	shell("mv .keys/ab/* file && mkdir -p .keys/ab && ln -s ../../file .keys/ab/link");
	char command[256];

	snprintf(command, sizeof command, "mv .keys/ab/link %s", path_of(""));
	shell(command);
	assert_int_equal(read_record(), -ENOENT);
	assert_int_equal(settle_record(), -EINVAL);
	snprintf(command, sizeof command, "rm %s && mkdir %s", path_of(""), path_of(""));
	shell(command);
	assert_int_equal(read_record(), -ENOENT);
	assert_int_equal(key_record_remove(&store, &key), -EISDIR);
}

static void a_settling_that_fails_is_an_error(void **state)
{
	struct key_record r = key;

	(void)state;
	assert_int_equal(write_record(1), 0);
	fail_call(CALL_PWRITE, 1, EIO);
	assert_int_equal(settle_record(), -EIO);
	assert_int_equal(key_record_read(&store, &r), 0);
	assert_false(r.is_settled);
	pool_put(r.id);
	fail_call(CALL_UNLINKAT, 1, EROFS);
	assert_int_equal(key_record_remove(&store, &key), -EROFS);
	assert_int_equal(settle_record(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_failing_call_of_a_write_is_an_error),
		TEST(a_write_error_comes_before_that_of_close),
		TEST(what_is_not_a_file_of_a_records_size_is_none),
		TEST(a_settling_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
