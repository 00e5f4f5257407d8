/* test_key_record.c - files of keys: written, settled, read, damaged and swept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "store/key_record.h"
#include "store/store.h"

#define NOW UINT64_C(1763800000)
#define IDS_MAX 3

static char root[64];
static struct store store;
static char ids[IDS_MAX][ULID_LENGTH + 1];
static const struct key_record key = { .name = { 0xab, 1, 2, 3 } };

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	for (unsigned i = 0; i < IDS_MAX; i++)
		ulid_new(ids[i]);
	snprintf(root, sizeof root, "/tmp/darkroom-keys-XXXXXX");
	return !mkdtemp(root) || store_open(&store, root, false, &cleared) ? -1 : 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static struct key_record record_of(unsigned count)
{
	struct key_record r = key;

	r.created = NOW;
	r.failed = 7;
	r.count = count;
	r.id = ids;
	memset(r.fingerprint, 0x5a, sizeof r.fingerprint);
	return r;
}

/* Returns a descriptor of the one record. */
static int open_record(int flags)
{
	char path[160];

	snprintf(path, sizeof path, "%s/.keys/ab/010203%056d", root, 0);
	int fd = open(path, flags);

	assert_true(fd >= 0);
	return fd;
}

static void a_record_is_read_as_it_was_written(void **state)
{
	(void)state;
	for (unsigned count = 0; count <= IDS_MAX; count++) {
		struct key_record written = record_of(count), r = key;

		assert_int_equal(key_record_write(&store, &written), 0);
		assert_int_equal(key_record_read(&store, &r), 0);
		assert_false(r.is_settled);
		assert_true(r.created == NOW && r.failed == 7 && r.count == count);
		assert_memory_equal(r.fingerprint, written.fingerprint, sizeof r.fingerprint);
		for (unsigned i = 0; i < count; i++)
			assert_string_equal(r.id[i], ids[i]);
		pool_put(r.id);
	}
}

static void a_settled_record_stays_settled_and_the_same(void **state)
{
	struct key_record written = record_of(2), r = key;

	(void)state;
	written.failed = 0;
	written.is_settled = true;
	assert_int_equal(key_record_write(&store, &written), -ENOENT);
	written.is_settled = false;
	assert_int_equal(key_record_write(&store, &written), 0);
	written.is_settled = true;
	assert_int_equal(key_record_write(&store, &written), 0);
	assert_int_equal(key_record_write(&store, &written), 0);
	assert_int_equal(key_record_read(&store, &r), 0);
	assert_true(r.is_settled && r.count == 2 && r.created == NOW);
	pool_put(r.id);
}

static void a_removed_record_is_none(void **state)
{
	struct key_record written = record_of(1), r = key;

	(void)state;
	assert_int_equal(key_record_read(&store, &r), -ENOENT);
	assert_int_equal(key_record_remove(&store, &key), 0);
	assert_int_equal(key_record_write(&store, &written), 0);
	assert_int_equal(key_record_remove(&store, &key), 0);
	assert_int_equal(key_record_read(&store, &r), -ENOENT);
}

static void a_record_with_any_byte_missing_is_none(void **state)
{
	struct key_record written = record_of(2), r = key;
	struct stat st;

	(void)state;
	assert_int_equal(key_record_write(&store, &written), 0);
	int fd = open_record(O_RDWR);

	assert_int_equal(fstat(fd, &st), 0);
	for (off_t size = st.st_size - 1; size >= 0; size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		int err = key_record_read(&store, &r);
		bool is_shorter = size == st.st_size - 27 || size == st.st_size - 2 * 27;

		assert_int_equal(err, is_shorter ? 0 : -ENOENT); /* a record of fewer ids */
		if (!err)
			pool_put(r.id);
	}
	close(fd);
}

/* Ids become parts of paths. */
static void a_record_with_any_changed_byte_has_valid_ids(void **state)
{
	struct key_record written = record_of(2), r = key;
	char bytes[512];
	unsigned refused = 0;

	(void)state;
	assert_int_equal(key_record_write(&store, &written), 0);
	int fd = open_record(O_RDWR);
	ssize_t n = read(fd, bytes, sizeof bytes);

	assert_true(n > 100);
	for (ssize_t at = 0; at < n; at++) {
		const char changed = '/';

		assert_int_equal(pwrite(fd, &changed, 1, at), 1);
		int err = key_record_read(&store, &r);

		for (unsigned i = 0; i < r.count; i++)
			assert_true(ulid_is_valid(r.id[i], strlen(r.id[i])));
		refused += err == -ENOENT;
		if (!err)
			pool_put(r.id);
		assert_int_equal(pwrite(fd, &bytes[at], 1, at), 1);
	}
	assert_int_equal(refused, n);
	close(fd);
}

static void a_sweep_removes_what_is_older(void **state)
{
	struct key_record written = record_of(1), r = key;
	struct key_record other = record_of(1);
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	(void)state;
	key_record_sweep(&store, 0xab, NOW);
	assert_int_equal(key_record_write(&store, &written), 0);
	other.name[1] = 9;
	assert_int_equal(key_record_write(&store, &other), 0);
	int fd = open_record(O_RDWR);

	assert_int_equal(futimens(fd, old), 0);
	close(fd);
	key_record_sweep(&store, 0xab, 1000);
	key_record_sweep(&store, 0xaa, 1001);
	key_record_sweep(&store, 0xab, 1001);
	assert_int_equal(key_record_read(&store, &r), -ENOENT);
	assert_int_equal(key_record_read(&store, &other), 0);
	pool_put(other.id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_is_read_as_it_was_written, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_settled_record_stays_settled_and_the_same, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_removed_record_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_with_any_byte_missing_is_none, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_record_with_any_changed_byte_has_valid_ids, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_sweep_removes_what_is_older, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
