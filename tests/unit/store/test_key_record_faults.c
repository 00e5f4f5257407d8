/* test_key_record_faults.c - files of keys whose system calls fail, or do a part of their work. */
#include "support/store_faults.h"

#include "base/check.h"
#include "base/pool.h"

static int pread_error; /* of the next call */
static size_t pread_most;
static bool grows; /* the file, at the next call */
static unsigned pools_that_fail, buffers;

static ssize_t fault_pread(int fd, void *data, size_t size, off_t at)
{
	if (grows) {
		char path[32];

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		FILE *f = fopen(path, "a");

		assert_true(f && fputs("01K00000000000000000000099\n", f) >= 0 && fclose(f) == 0);
		grows = false;
	}
	errno = pread_error;
	pread_error = 0;
	return errno ? -1 : pread(fd, data, size < pread_most ? size : pread_most, at);
}

/* Memory without slack, so that the address sanitizer sees its end. It has digits: a number without
 * an end would go on in them. */
static void *exact_pool_get(size_t size)
{
	if (pools_that_fail && pools_that_fail--)
		return NULL;
	void *buffer = malloc(size);

	assert_non_null(buffer);
	buffers++;
	return memset(buffer, '7', size);
}

static void exact_pool_put(void *buffer)
{
	buffers -= buffer != NULL;
	free(buffer);
}

#define pread fault_pread
#define pool_get exact_pool_get
#define pool_put exact_pool_put
#include "store/key_record.c"

static struct store store;
static unsigned descriptors;
static char ids[KEY_RECORD_IDS_MAX + 1][ULID_LENGTH + 1];
static const uint8_t key[KEY_RECORD_HASH_SIZE] = { 0xab, 1 };

static int setup(void **state)
{
	(void)state;
	no_fault();
	pread_error = 0;
	grows = false;
	pread_most = SIZE_MAX;
	pools_that_fail = 0;
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
	assert_int_equal(buffers, 0);
	close(store.root_fd);
	remove_test_root();
	return 0;
}

static int write_record(unsigned count)
{
	struct key_record r = { .created = 5, .failed = 6, .count = count, .id = ids };

	return key_record_write(&store, key, &r);
}

/* Reads the record. It must have that many ids, and be complete. */
static void check_record(unsigned count)
{
	struct key_record r;

	assert_int_equal(key_record_read(&store, key, &r), 0);
	assert_true(r.created == 5 && r.failed == 6 && r.count == count);
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(r.id[i], ids[i]);
	pool_put(r.id);
}

static int read_record(void)
{
	struct key_record r;
	int err = key_record_read(&store, key, &r);

	assert_int_equal(r.count, 0);
	return err;
}

static const char *path_of(const char *suffix)
{
	static char path[STORE_PATH_MAX];

	key_path(path, key, suffix);
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
		{ CALL_CLOSE, 1, EIO, -EIO },        { CALL_RENAMEAT, 1, EDQUOT, -EDQUOT },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		shell("rm -rf .keys");
		fail_call(cases[i].call, cases[i].nth, cases[i].error);
		assert_int_equal(write_record(1), cases[i].result);
		assert_true(calls[cases[i].call] >= cases[i].nth);
		assert_false(exists(path_of("")));
		assert_false(exists(path_of(TEMPORARY)));
		assert_int_equal(open_descriptors(), descriptors);
		assert_int_equal(buffers, 0);
	}
	pools_that_fail = 1;
	assert_int_equal(write_record(1), -ENOMEM);
	no_fault();
	assert_int_equal(write_record(1), 0);
	check_record(1);
}

static void a_write_of_nothing_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(write_record(1), 0); /* makes the directories */
	write_most = 1;
	assert_int_equal(write_record(2), 0);
	check_record(2);
	write_most = 0;
	errno = EINTR; /* of an earlier call */
	assert_int_equal(write_record(3), -EIO);
	check_record(2);
}

/* The first error counts, and the file is closed only once. */
static void a_write_that_was_interrupted_is_complete(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth < 4; nth++) {
		fail_call(CALL_WRITE, nth, EINTR);
		write_most = 50;
		assert_int_equal(write_record(2), 0);
		assert_int_equal(calls[CALL_WRITE], 5); /* 162 bytes, and one again */
		check_record(2);
	}
	no_fault();
	fail_call(CALL_CLOSE, 1, EINTR);
	assert_int_equal(write_record(3), 0);
	check_record(3);
	fail_call(CALL_MKDIRAT, 1, EEXIST);
	const uint8_t other[KEY_RECORD_HASH_SIZE] = { 0xad };
	struct key_record r = { .count = 0 };

	assert_int_equal(key_record_write(&store, other, &r), 0);
	assert_int_equal(key_record_read(&store, other, &r), 0);
	pool_put(r.id);
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
	assert_false(exists(path_of(TEMPORARY)));
	check_record(1);
}

static void a_record_has_its_exact_text(void **state)
{
	char data[512] = "";
	const struct key_record r = { .created = UINT64_MAX,
		                      .failed = 10,
		                      .count = 1,
		                      .id = ids,
		                      .is_settled = true,
		                      .fingerprint = { 0xfe } };

	(void)state;
	assert_int_equal(key_record_write(&store, key, &r), 0);
	int fd = openat(store.root_fd, path_of(""), O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, data, sizeof data), HEAD_LENGTH + LINE_LENGTH);
	close(fd);
	assert_string_equal(data,
	                    "s 18446744073709551615 fe000000000000000000000000000000000000000000"
	                    "00000000000000000000 00000000000000000010\n"
	                    "01K00000000000000000000000\n");
}

static void a_record_that_was_read_in_parts_is_complete(void **state)
{
	(void)state;
	assert_int_equal(write_record(2), 0);
	for (pread_most = 1; pread_most < 8; pread_most++)
		check_record(2);
	grows = true; /* its size is known already */
	check_record(2);
	assert_int_equal(write_record(2), 0);
	pread_error = EINTR;
	check_record(2);
	pread_error = EIO;
	assert_int_equal(read_record(), -EIO);
	pools_that_fail = 1;
	assert_int_equal(read_record(), -ENOMEM);
	fail_call(CALL_OPENAT, 1, EACCES);
	assert_int_equal(read_record(), -EACCES);
	fail_call(CALL_FSTAT, 1, EIO);
	assert_int_equal(read_record(), -ENOENT);
	check_record(2);
}

static void a_record_that_became_shorter_is_none(void **state)
{
	(void)state;
	assert_int_equal(write_record(2), 0);
	pread_most = 0; /* all of it went after its size was known */
	assert_int_equal(read_record(), -ENOENT);
}

static void a_number_without_an_end_is_damaged(void **state)
{
	(void)state;
	assert_int_equal(write_record(0), 0);
	int fd = openat(store.root_fd, path_of(""), O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, "1", 1, HEAD_LENGTH - 1), 1);
	close(fd);
	assert_int_equal(read_record(), -ENOENT);
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
	assert_int_equal(read_record(), -ELOOP);
	assert_int_equal(key_record_settle(&store, key), -ELOOP);
	snprintf(command, sizeof command, "rm %s && mkdir %s", path_of(""), path_of(""));
	shell(command);
	assert_int_equal(read_record(), -ENOENT);
	assert_int_equal(key_record_remove(&store, key), -EISDIR);
}

static void a_settling_that_fails_is_an_error(void **state)
{
	struct key_record r;

	(void)state;
	assert_int_equal(write_record(1), 0);
	fail_call(CALL_PWRITE, 1, EIO);
	assert_int_equal(key_record_settle(&store, key), -EIO);
	assert_int_equal(key_record_read(&store, key, &r), 0);
	assert_false(r.is_settled);
	pool_put(r.id);
	fail_call(CALL_UNLINKAT, 1, EROFS);
	assert_int_equal(key_record_remove(&store, key), -EROFS);
	assert_int_equal(key_record_settle(&store, key), 0);
}

static void a_sweep_goes_on_behind_what_it_cannot_remove(void **state)
{
	(void)state;
	shell("mkdir -p .keys/ab/directory .keys/ff && touch -d @1000 .keys/ab/1 .keys/ab/2 "
	      ".keys/ab/directory .keys/ff/3 .keys/ff/.4");
	fail_call(CALL_FDOPENDIR, 1, ENOMEM);
	assert_int_equal(key_record_sweep(&store, 0xab, 1001), 0);
	assert_int_equal(open_descriptors(), descriptors);
	fail_call(CALL_OPENAT, 1, EACCES);
	assert_int_equal(key_record_sweep(&store, 0xab, 1001), 0);
	no_fault();
	assert_int_equal(key_record_sweep(&store, 0xab, 1001), 2);
	assert_int_equal(entries(".keys/ab"), 1);
	assert_int_equal(key_record_sweep(&store, 0x1ff, 1001), 1); /* of all keys in turn */
	assert_int_equal(entries(".keys/ff"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_failing_call_of_a_write_is_an_error),
		TEST(a_write_of_nothing_is_an_error),
		TEST(a_write_that_was_interrupted_is_complete),
		TEST(a_write_error_comes_before_that_of_close),
		TEST(a_record_has_its_exact_text),
		TEST(a_record_that_was_read_in_parts_is_complete),
		TEST(a_record_that_became_shorter_is_none),
		TEST(a_number_without_an_end_is_damaged),
		TEST(what_is_not_a_file_of_a_records_size_is_none),
		TEST(a_settling_that_fails_is_an_error),
		TEST(a_sweep_goes_on_behind_what_it_cannot_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
