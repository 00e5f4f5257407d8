/* test_store_faults.c - each system call of the store fails: no item is half visible, nothing is
 * left behind, and the next one succeeds. */
#include "support/store_faults.h"

#include "store/directory.c"
#include "store/store.c"
#include "store/store_find.c"
#include "store/store_put.c"

static struct store store;
static unsigned descriptors;

static char id[ULID_LENGTH + 1] = "01K0000000000000000000000A";

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	no_fault();
	fake_now = NS_PER_S;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-faults-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	descriptors = open_descriptors();
	return store_open(&store, test_root, true, &cleared);
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	store_close(&store);
	assert_int_equal(open_descriptors(), descriptors);
	remove_test_root();
	return 0;
}

static const struct store_file two_files[] = { { "a.jpg", "content", 7, NULL },
	                                       { "empty", "", 0, NULL } };

/* Puts an item of two files. Returns its error. */
static int put_two(enum store_place place)
{
	struct store_item item = {
		.place = place, .id = id, .file = two_files, .file_count = 2, .err = 1
	};

	store_put(&store, &item, 1);
	return item.err;
}

static bool is_there(enum store_place place)
{
	char path[64];

	snprintf(path, sizeof path, place == STORE_SPOOL ? ".spool/%s" : "01K0/00/%s", id);
	return exists(path);
}

static void check_content(const char *directory)
{
	char command[256];

	snprintf(command, sizeof command,
	         "test \"$(cat %s/%s/a.jpg)\" = content && test -f %s/%s/empty && "
	         "test ! -s %s/%s/empty",
	         directory, id, directory, id, directory, id);
	shell(command);
}

static void an_item_is_written_whole(void **state)
{
	(void)state;
	write_most = 2; /* bytes at a time */
	assert_int_equal(put_two(STORE_IMAGES), 0);
	check_content("01K0/00");
	assert_int_equal(calls[CALL_WRITE], 4);
	assert_int_equal(calls[CALL_FALLOCATE], 1); /* not for an empty file */
	assert_int_equal(calls[CALL_SYNCFS], 3);    /* with that of the start */
	assert_int_equal(store.flushes, 3);
	assert_int_equal(put_two(STORE_SPOOL), 0);
	check_content(".spool");
	assert_int_equal(entries(".incoming"), 0);
	assert_true(store_is_spooled(&store, id));
	assert_int_equal(store_unspool(&store, id), 0);
	assert_int_equal(store.flushes, 5); /* without one */
	assert_int_equal(entries(".trash"), 0);
	store_survive_power(&store, false);
	no_fault();
	assert_int_equal(put_two(STORE_SPOOL), 0);
	assert_int_equal(calls[CALL_FALLOCATE] + calls[CALL_SYNCFS], 0);
}

static void the_first_error_is_reported(void **state)
{
	(void)state;
	fail_call(CALL_FALLOCATE, 1, ENOSPC);
	assert_int_equal(put_two(STORE_IMAGES), -ENOSPC);
	assert_int_equal(calls[CALL_WRITE], 0);
	fail_call(CALL_WRITE, 1, 0); /* a write of nothing */
	assert_int_equal(put_two(STORE_IMAGES), -EIO);
	assert_int_equal(calls[CALL_WRITE], 1);
	fail_call(CALL_CLOSE, 1, EDQUOT); /* of the first file */
	assert_int_equal(put_two(STORE_IMAGES), -EDQUOT);
	assert_int_equal(calls[CALL_WRITE], 1);
	/* An error of close() does not replace that of write(). */
	fail_call(CALL_CLOSE, 1, EDQUOT);
	write_most = 0;
	assert_int_equal(put_two(STORE_IMAGES), -EIO);
	no_fault();
	assert_int_equal(put_two(STORE_IMAGES), 0);
}

/* Every call of a function fails once, until there are no more of them. */
static unsigned fail_each(enum call call, enum store_place place, int error)
{
	for (unsigned nth = 1;; nth++) {
		fail_call(call, nth, error);
		int err = put_two(place);
		bool has_failed = calls[call] >= nth;

		no_fault();
		assert_int_equal(is_there(place), err == 0);
		assert_int_equal(entries(".incoming"), 0);
		assert_int_equal(open_descriptors(), descriptors + 5);
		if (err == 0) {
			assert_int_equal(store_remove(&store, place, id), 0);
			if (!has_failed)
				return nth - 1;
		}
		fake_now += STORE_TIDY_NS; /* a flush has to come first */
		tidy(&store);
		assert_int_equal(entries(".trash"), 0);
	}
}

static void a_failed_call_leaves_nothing(void **state)
{
	(void)state;
	shell("mkdir -p 01K0/00/another"); /* so the shard's directory stays */
	assert_int_equal(fail_each(CALL_OPENAT, STORE_IMAGES, EMFILE), 5);
	assert_int_equal(fail_each(CALL_MKDIRAT, STORE_IMAGES, EROFS), 1);
	assert_int_equal(fail_each(CALL_WRITE, STORE_IMAGES, ENOSPC), 1);
	assert_int_equal(fail_each(CALL_SYNCFS, STORE_IMAGES, EIO), 2);
	assert_int_equal(fail_each(CALL_RENAMEAT, STORE_IMAGES, EIO), 1);
	assert_int_equal(fail_each(CALL_RENAMEAT, STORE_SPOOL, ENOENT), 1);
}

/* ---- removal and the trash ---- */

static void a_removal_is_one_rename_and_a_flush(void **state)
{
	(void)state;
	assert_int_equal(put_two(STORE_IMAGES), 0);
	fail_call(CALL_RENAMEAT, 1, EIO);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), -EIO);
	assert_true(is_there(STORE_IMAGES));
	assert_int_equal(store.flushes, 3);
	no_fault();
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), 0);
	assert_int_equal(store.flushes, 4);
	assert_int_equal(store_unspool(&store, id), -ENOENT);
	assert_int_equal(entries(".trash"), 0);
	assert_int_equal(store.tidy_ns, 0);
}

/* Tries to clear the trash by putting and removing another image. */
static void put_another(void)
{
	static const struct store_file file = { "b.jpg", "b", 1, NULL };
	struct store_item item = { .place = STORE_SPOOL,
		                   .id = "01K0000000000000000000000B",
		                   .file = &file,
		                   .file_count = 1 };

	store_put(&store, &item, 1);
	assert_int_equal(item.err, 0);
	assert_int_equal(store_unspool(&store, item.id), 0);
}

static void the_trash_is_cleared_a_second_later(void **state)
{
	(void)state;
	assert_int_equal(put_two(STORE_IMAGES), 0);
	fail_calls(CALL_UNLINKAT, EIO);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), 0); /* it is invisible */
	assert_false(is_there(STORE_IMAGES));
	no_fault();
	assert_int_equal(entries(".trash"), 1);
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	fake_now += STORE_TIDY_NS - 1;
	put_another();
	assert_int_equal(entries(".trash"), 1);
	fake_now++;
	/* Not without a flush: the name might return without its files. */
	fail_call(CALL_SYNCFS, 3, EIO);
	put_another();
	assert_int_equal(entries(".trash"), 1);
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	no_fault();
	fake_now += STORE_TIDY_NS;
	fail_call(CALL_OPENAT, 4, EMFILE); /* of the trash */
	put_another();
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	assert_int_equal(entries(".trash"), 1);
	no_fault();
	fake_now += STORE_TIDY_NS;
	put_another();
	assert_int_equal(entries(".trash"), 0);
	assert_int_equal(store.tidy_ns, 0);
}

static void a_removal_that_is_not_flushed_is_tidied_later(void **state)
{
	(void)state;
	assert_int_equal(put_two(STORE_IMAGES), 0);
	fail_call(CALL_SYNCFS, 1, EIO);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), -EIO);
	assert_int_equal(entries(".trash"), 1);
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	fake_now += STORE_TIDY_NS;
	/* Before a flush it may come back. */
	fail_call(CALL_SYNCFS, 1, EIO);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), -EIO);
	no_fault();
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), -ENOENT);
	assert_int_equal(calls[CALL_SYNCFS], 1);
	assert_int_equal(put_two(STORE_SPOOL), 0);
	assert_int_equal(entries(".trash"), 0);
	assert_int_equal(store_remove(&store, STORE_SPOOL, id), 0);
	assert_false(is_there(STORE_SPOOL));
}

static void files_that_cannot_be_discarded_go_to_the_trash(void **state)
{
	(void)state;
	fail_calls(CALL_UNLINKAT, EIO);
	write_most = 0; /* the item fails */
	assert_int_equal(put_two(STORE_IMAGES), -EIO);
	assert_int_equal(entries(".incoming"), 0);
	assert_int_equal(entries(".trash"), 1);
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	no_fault();
	fake_now += STORE_TIDY_NS;
	put_another();
	assert_int_equal(entries(".trash"), 0);
	/* The trash can remove them. */
	fail_call(CALL_UNLINKAT, 1, EIO); /* one file stays, and so does the directory */
	write_most = 0;
	assert_int_equal(put_two(STORE_IMAGES), -EIO);
	assert_int_equal(entries(".incoming") + entries(".trash"), 0);
	assert_int_equal(store.tidy_ns, 0);
	no_fault();
	discard(&store, "01K0000000000000000000000Z"); /* it is not there */
	assert_int_equal(calls[CALL_RENAMEAT], 0);
}

/* Neither removing them nor moving them to the trash works. */
static void files_that_cannot_be_moved_either_go_before_the_next_attempt(void **state)
{
	(void)state;
	shell("mkdir -p .incoming/01K0000000000000000000000A/full");
	fail_calls(CALL_RENAMEAT, EIO);
	discard(&store, id);
	assert_int_equal(entries(".incoming"), 1);
	no_fault();
	assert_int_equal(put_two(STORE_IMAGES), 0);
	assert_true(is_there(STORE_IMAGES));
	assert_int_equal(entries(".incoming"), 0);
	assert_int_equal(entries(".trash"), 1); /* a directory in it stays there */
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	shell("rmdir .trash/*/full");
	fake_now += STORE_TIDY_NS;
	tidy(&store);
	assert_int_equal(entries(".trash"), 0);
	assert_int_equal(store.tidy_ns, 0);
}

static void names_in_the_trash_are_unique(void **state)
{
	(void)state;
	fail_calls(CALL_UNLINKAT, EIO);
	for (int i = 0; i < 3; i++) {
		fault.call = NO_CALL;
		assert_int_equal(put_two(STORE_IMAGES), 0);
		fault.call = CALL_UNLINKAT;
		calls[CALL_UNLINKAT] = 1;
		assert_int_equal(store_remove(&store, STORE_IMAGES, id), 0);
	}
	assert_int_equal(entries(".trash"), 3);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(an_item_is_written_whole),
		WITH_STORE(the_first_error_is_reported),
		WITH_STORE(a_failed_call_leaves_nothing),
		WITH_STORE(a_removal_is_one_rename_and_a_flush),
		WITH_STORE(the_trash_is_cleared_a_second_later),
		WITH_STORE(a_removal_that_is_not_flushed_is_tidied_later),
		WITH_STORE(files_that_cannot_be_discarded_go_to_the_trash),
		WITH_STORE(files_that_cannot_be_moved_either_go_before_the_next_attempt),
		WITH_STORE(names_in_the_trash_are_unique),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
