/* test_store_room.c - the free space: when it is read, and which number decides. */
#include "support/store_faults.h"

#include <sys/statvfs.h>

static int fake_fstatvfs(int fd, struct statvfs *fs);

#define fstatvfs(fd, fs) fake_fstatvfs(fd, fs)
#include "store/store_room.c"
#undef fstatvfs

static struct store store;
static uint64_t blocks;
static unsigned looks;
static bool is_unknown;

/* Blocks of 1000 bytes; more of them are free for root than for the daemon's user. */
static int fake_fstatvfs(int fd, struct statvfs *fs)
{
	assert_int_equal(fd, 17);
	looks++;
	if (is_unknown)
		return -1;
	*fs = (struct statvfs){
		.f_bsize = 77, .f_frsize = 1000, .f_bfree = blocks + 9, .f_bavail = blocks
	};
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&store, 0, sizeof store);
	store.root_fd = 17;
	fake_now = 100 * NS_PER_S;
	looks = 0;
	is_unknown = false;
	blocks = 5;
	return 0;
}

static void free_space_is_that_of_the_daemons_user(void **state)
{
	(void)state;
	assert_int_equal(store_look(&store), 5000);
	assert_int_equal(store.free_bytes, 5000);
	assert_int_equal(store.looked_ns, fake_now);
	is_unknown = true;
	assert_true(store_look(&store) == UINT64_MAX);
	assert_true(store.free_bytes == UINT64_MAX);
}

static void enough_space_is_not_looked_at_again(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	store_look(&store);
	fake_now += 10 * NS_PER_S;
	assert_true(store_has_room(&store, 5000, &bytes));
	assert_int_equal(bytes, 5000);
	assert_int_equal(looks, 1);
}

static void too_little_space_is_looked_at_once_a_second(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	store_look(&store);
	blocks = 6;
	fake_now += NS_PER_S - 1;
	assert_false(store_has_room(&store, 5001, &bytes));
	assert_int_equal(bytes, 5000);
	assert_int_equal(looks, 1);
	fake_now++;
	assert_false(store_has_room(&store, 6001, &bytes));
	assert_int_equal(bytes, 6000);
	assert_int_equal(looks, 2);
	fake_now += NS_PER_S;
	blocks = 7;
	assert_true(store_has_room(&store, 7000, &bytes));
	assert_int_equal(bytes, 7000);
	assert_int_equal(looks, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(free_space_is_that_of_the_daemons_user, setup),
		cmocka_unit_test_setup(enough_space_is_not_looked_at_again, setup),
		cmocka_unit_test_setup(too_little_space_is_looked_at_once_a_second, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
