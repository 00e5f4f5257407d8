/* test_store_batch.c - removals, alone and in batches: calls, flushes, and directories that become
 * empty. */
#include "support/store_faults.h"

#include "store/directory.c"
#include "store/store.c"
#include "store/store_batch.c"

static struct store store;
static struct store_batch batch;
static unsigned descriptors;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	no_fault();
	fake_now = NS_PER_S;
	batch.count = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-batch-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, true, &cleared))
		return -1;
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

static void make(const char *id)
{
	char command[128];

	snprintf(command, sizeof command, "mkdir -p %.4s/%.2s/%s", id, id + 4, id);
	shell(command);
}

static void add(const char *id)
{
	assert_int_equal(store_batch_add(&batch, &store, STORE_IMAGES, id), 0);
}

#define A "01K0000000000000000000000A"
#define B "01K0000000000000000000000B"
#define C "01K0010000000000000000000C" /* of the next directory */

static void images_go_with_one_flush(void **state)
{
	(void)state;
	make(A);
	make(B);
	add(A);
	assert_false(exists("01K0/00/" A));
	add(B);
	assert_int_equal(batch.count, 2);
	assert_string_equal(batch.image[0].id, A);
	assert_string_equal(batch.image[1].id, B);
	assert_int_equal(entries(".trash"), 2);
	assert_int_equal(store.flushes, 0);
	assert_int_equal(store_batch_end(&batch, &store), 0);
	assert_int_equal(store.flushes, 1);
	assert_int_equal(entries(".trash"), 0);
	assert_int_equal(batch.count, 2); /* for the caller */
}

static void an_empty_batch_needs_no_flush(void **state)
{
	(void)state;
	assert_int_equal(store_batch_add(&batch, &store, STORE_IMAGES, A), -ENOENT);
	assert_int_equal(batch.count, 0);
	assert_int_equal(store_batch_end(&batch, &store), 0);
	assert_int_equal(store.flushes, 0);
}

static void one_image_is_flushed_as_well(void **state)
{
	(void)state;
	make(A);
	add(A);
	assert_int_equal(store_batch_end(&batch, &store), 0);
	assert_int_equal(store.flushes, 1);
	assert_int_equal(entries(".trash"), 0);
}

static void files_that_are_not_flushed_stay(void **state)
{
	(void)state;
	make(A);
	add(A);
	fail_call(CALL_SYNCFS, 1, EIO);
	assert_int_equal(store_batch_end(&batch, &store), -EIO);
	assert_int_equal(entries(".trash"), 1);
	assert_true(exists("01K0/00"));
}

static void directories_of_earlier_times_go_if_they_are_empty(void **state)
{
	char now[ULID_LENGTH + 1], shard[STORE_PATH_MAX], command[256];

	(void)state;
	make(A);
	make(B);
	make(C);
	add(A);
	assert_int_equal(store_batch_end(&batch, &store), 0);
	assert_true(exists("01K0/00/" B));
	batch.count = 0;
	add(B);
	assert_int_equal(store_batch_end(&batch, &store), 0);
	assert_false(exists("01K0/00"));
	assert_true(exists("01K0/01/" C));
	batch.count = 0;
	add(C);
	assert_int_equal(store_batch_end(&batch, &store), 0);
	assert_false(exists("01K0"));
	/* The next upload goes into those of now. */
	batch.count = 0;
	ulid_new(now);
	make(now);
	store_shard_path(shard, STORE_BY_TIME, now);
	add(now);
	assert_int_equal(store_batch_end(&batch, &store), 0);
	snprintf(command, sizeof command, "test -d %s", shard);
	shell(command);
}

static void a_full_batch_has_room_for_all(void **state)
{
	char id[ULID_LENGTH + 1];

	(void)state;
	for (unsigned i = 0; i < STORE_BATCH_MAX; i++) {
		snprintf(id, sizeof id, "01K%023u", i);
		make(id);
		add(id);
	}
	assert_int_equal(store_batch_end(&batch, &store), 0);
	assert_int_equal(store.flushes, 1);
	assert_false(exists("01K0"));
	assert_int_equal(entries(".trash"), 0);
}

/* ---- alone ---- */

static void an_image_that_is_not_there_is_looked_for_once(void **state)
{
	(void)state;
	assert_int_equal(store_remove(&store, STORE_IMAGES, A), -ENOENT);
	assert_int_equal(calls[CALL_RENAMEAT], STORE_LAYOUT_COUNT);
}

static void a_removal_makes_the_trash_again(void **state)
{
	(void)state;
	make(A);
	shell("rmdir .trash");
	assert_int_equal(store_remove(&store, STORE_IMAGES, A), 0);
	assert_false(exists("01K0/00/" A));
	assert_int_equal(entries(".trash"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(images_go_with_one_flush),
		TEST(an_empty_batch_needs_no_flush),
		TEST(one_image_is_flushed_as_well),
		TEST(files_that_are_not_flushed_stay),
		TEST(directories_of_earlier_times_go_if_they_are_empty),
		TEST(a_full_batch_has_room_for_all),
		TEST(an_image_that_is_not_there_is_looked_for_once),
		TEST(a_removal_makes_the_trash_again),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
