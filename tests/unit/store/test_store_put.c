/* test_store_put.c - tags, figures, and items that fail or are put again. */
#include "support/put_harness.h"

/* ---- tags ---- */

static void a_tag_is_written_for_files_with_a_checksum(void **state)
{
	struct store_item item = item_of(STORE_SPOOL, ID);

	(void)state;
	assert_int_equal(put_one(item), 0);
	assert_int_equal(attribute_count, 1); /* not for the second */
	assert_string_equal(attribute, SUM);
	assert_int_equal(store_unspool(&store, ID), 0);
	item.expires = UINT64_C(4102444801);
	assert_int_equal(put_one(item), 0);
	assert_string_equal(attribute, SUM ".4102444801");
	assert_int_equal(store_unspool(&store, ID), 0);
	attribute_count = 0;
	item.expires = UINT64_C(41024448010); /* too long for a tag */
	assert_int_equal(put_one(item), 0);
	assert_int_equal(attribute_count, 0);
	assert_int_equal(store_unspool(&store, ID), 0);
	fail_call(CALL_WRITE, 1, ENOSPC);
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), -ENOSPC);
	assert_int_equal(attribute_count, 0);
}

/* ---- items that fail ---- */

static void a_failed_item_is_not_taken_for_a_published_one(void **state)
{
	(void)state;
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), 0);
	fail_call(CALL_WRITE, 1, EIO);
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), -EIO);
	assert_true(exists(".spool/" ID)); /* the earlier one */
	assert_int_equal(entries(".incoming"), 0);
}

static void one_good_item_is_enough_for_a_flush(void **state)
{
	static const struct store_file bad = { "no/such/place", "b", 1, NULL };
	struct store_item items[2] = { item_of(STORE_SPOOL, "01K0000000000000000000000B"),
		                       item_of(STORE_SPOOL, ID) };

	(void)state;
	items[0].file = &bad;
	items[0].file_count = 1;
	store_put(&store, items, 2);
	assert_int_equal(items[0].err, -ENOENT);
	assert_int_equal(items[1].err, 0);
	assert_int_equal(store.flushes, 3); /* with that of the start */
}

/* The daemon holds the old one open. */
static void items_go_into_a_root_that_was_made_again(void **state)
{
	char command[512];
	struct store_item items[2] = { item_of(STORE_SPOOL, ID),
		                       item_of(STORE_IMAGES, "01K0000000000000000000000B") };

	(void)state;
	for (unsigned turn = 1; turn <= 2; turn++) {
		snprintf(command, sizeof command, "rm -r %s && mkdir -m 700 %s", test_root,
		         test_root);
		assert_int_equal(system(command), 0);
		if (turn == 1) {
			assert_int_equal(put_one(items[0]), 0);
		} else {
			store_put(&store, items, 2);
			assert_int_equal(items[0].err, 0);
			assert_int_equal(items[1].err, 0);
			assert_true(exists("01K0/00/01K0000000000000000000000B/b.jpg"));
		}
		assert_true(exists(".spool/" ID "/b.jpg"));
		assert_int_equal(store.openings, turn);
		assert_int_equal(store_unspool(&store, ID), 0);
	}
}

/* ---- figures ---- */

static void figures_are_those_of_all_files_but_the_document(void **state)
{
	static const struct store_file files[] = { { "a.jpg", "content", 7, NULL },
		                                   { STORED_IMAGE, "{}", 2, NULL },
		                                   { "b.jpg", "other", 5, NULL } };
	struct store_item item = item_of(STORE_IMAGES, ID);

	(void)state;
	usage_switch(&store.usage, &store, true);
	while (usage_count(&store.usage, &store, 100) == 0)
		continue;
	item.file = files;
	item.file_count = 3;
	assert_int_equal(put_one(item), 0);
	assert_int_equal(sum_of_all().images, 1);
	assert_int_equal(sum_of_all().bytes, 12);
	fail_call(CALL_RENAMEAT, 1, EIO);
	item.id = "01K0000000000000000000000B";
	assert_int_equal(put_one(item), -EIO);
	assert_int_equal(sum_of_all().images, 1);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_tag_is_written_for_files_with_a_checksum),
		WITH_STORE(a_failed_item_is_not_taken_for_a_published_one),
		WITH_STORE(one_good_item_is_enough_for_a_flush),
		WITH_STORE(items_go_into_a_root_that_was_made_again),
		WITH_STORE(figures_are_those_of_all_files_but_the_document),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
