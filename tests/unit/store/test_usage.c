/* test_usage.c - the count of a store's images, and when it begins again. */
#include <sys/resource.h>

#include "support/usage_harness.h"

/* Seven images in pages of three. */
static void images_are_counted_page_by_page(void **state)
{
	static const unsigned counted[] = { 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 7 };
	char id[7][ULID_LENGTH + 1];

	(void)state;
	for (unsigned i = 0; i < 7; i++)
		strcpy(id[i], put_at(i, "site", 1));
	usage_switch(usage, &store, true);
	for (unsigned i = 0; i < COUNT_OF(counted); i++) {
		bool is_complete = i == COUNT_OF(counted) - 1;

		assert_int_equal(usage_count(usage, &store, 1), is_complete);
		check_all(counted[i], counted[i], is_complete);
		if (i != 3) /* the end of a page */
			continue;
		assert_string_equal(usage->page_end, id[2]);
		/* One that was counted, the last one included, is taken off. */
		usage_removed(usage, id[2], "site", 1);
		check_all(2, 2, false);
		usage_stored(usage, id[2], "site", 1);
		check_all(3, 3, false);
		/* One behind it is not, nor the id that follows. */
		id[2][ULID_LENGTH - 1]++;
		usage_stored(usage, id[2], "site", 1);
		check_all(3, 3, false);
		usage_removed(usage, id[3], "site", 1);
		usage_stored(usage, id[3], "site", 1);
		check_all(3, 3, false);
	}
	assert_int_equal(usage_count(usage, &store, 5), 1);
	check_all(7, 7, true);
	check_token("site", 7, 7, 7);
	assert_null(usage->page);
	assert_int_equal(usage->page_count + usage->page_at, 0);
}

static void the_rest_of_a_page_is_not_counted_twice(void **state)
{
	char id[3][ULID_LENGTH + 1];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		strcpy(id[i], put_at(i, "site", 1));
	usage_switch(usage, &store, true);
	assert_int_equal(usage_count(usage, &store, 2), 0); /* lists and counts one */
	for (unsigned i = 0; i < 3; i++) {
		usage_removed(usage, id[i], "site", 1);
		check_all(i == 0 ? 0 : 1, i == 0 ? 0 : 1, false);
		usage_stored(usage, id[i], "site", 1);
		check_all(1, 1, false);
	}
	assert_int_equal(usage_count(usage, &store, 2), 0);
	check_all(3, 3, false);
}

static void damage(const char *id)
{
	char path[160];

	snprintf(path, sizeof path, "%s/%.4s/%.2s/%s/image.json", root, id, id + 4, id);
	assert_int_equal(truncate(path, 10), 0);
}

static void damaged_images_are_not_counted(void **state)
{
	(void)state;
	put_at(1, "site", 5);
	damage(put_at(2, "site", 7));
	switch_on_and_count();
	check_all(1, 5, true);
}

/* Otherwise the figures would be too small, and its removal would be taken off all the same. */
static void an_image_that_finds_no_descriptor_is_counted_later(void **state)
{
	struct rlimit limit, none;

	(void)state;
	put_at(1, "site", 5);
	put_at(2, "site", 7);
	usage_switch(usage, &store, true);
	assert_int_equal(usage_count(usage, &store, 2), 0); /* lists and counts one */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int result = usage_count(usage, &store, 2);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(result, -EMFILE);
	check_all(1, 5, false);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_all(2, 12, true);
}

/* Only images of the day that were there before the count began: later ones reserve their place. */
static void uploads_of_the_day_are_counted(void **state)
{
	char late[ULID_LENGTH + 1];

	(void)state;
	put_at(-1, "site", 1);
	put_at(0, "site", 1);
	put_at(USAGE_DAY_S - 1, "site", 1);
	put_at(USAGE_DAY_S, "site", 1);
	put_at(1, "", 1);
	usage_switch(usage, &store, true);
	assert_true(ulid_is_valid(usage->since, ULID_LENGTH));
	ulid_bound((uint64_t)(TODAY + USAGE_DAY_S) * 1000, 'Z', usage->since);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_token("site", 4, 4, 2);
	usage_switch(usage, &store, false);
	strcpy(late, put_at(50, "site", 1));
	usage_switch(usage, &store, true);
	strcpy(usage->since, late);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_token("site", 5, 5, 1);
	check_all(6, 6, true);
}

/* ---- on and off ---- */

static bool has_file(const char *name)
{
	return faccessat(store.root_fd, name, F_OK, 0) == 0;
}

static void figures_are_saved_when_they_are_complete(void **state)
{
	(void)state;
	put_at(1, "site", 9);
	usage_save(usage, &store);
	assert_false(has_file(USAGE_FILE));
	usage_switch(usage, &store, true);
	usage_save(usage, &store);
	assert_false(has_file(USAGE_FILE));
	assert_int_equal(usage_count(usage, &store, 100), 1);
	store_survive_power(&store, true);
	usage_save(usage, &store);
	assert_true(has_file(USAGE_FILE));
	assert_int_equal(store.flushes, 1); /* of what they count */
	usage_switch(usage, &store, true);  /* is on already: the file is not read */
	assert_true(has_file(USAGE_FILE));
	check_all(1, 9, true);
	usage_switch(usage, &store, false);
	assert_false(has_file(USAGE_FILE));
	check_all(0, 0, false);
	assert_false(usage_total(usage).is_on);
	assert_int_equal(usage->count + usage->room, 0);
	assert_string_equal(usage->page_end, "");
	assert_null(usage->token);
	usage_switch(usage, &store, false);
	assert_false(usage_total(usage).is_on);
}

static void saved_figures_need_no_count(void **state)
{
	(void)state;
	put_at(1, "site", 9);
	switch_on_and_count();
	usage_save(usage, &store);
	forget(usage);
	usage->is_on = false;
	usage->day = 0; /* as at startup */
	usage_switch(usage, &store, true);
	check_all(1, 9, true);
	check_token("site", 1, 9, 1);
	assert_string_equal(usage->page_end, LAST_ID);
	assert_int_equal(usage_count(usage, &store, 1), 1);
	const char *id = put_at(2, "site", 3); /* is counted at once */

	check_all(2, 12, true);
	usage_removed(usage, id, "site", 3);
	check_all(1, 9, true);
}

static void another_process_makes_it_count_again(void **state)
{
	(void)state;
	usage_check_recount(usage, &store);
	put_at(1, "site", 9);
	put_at(2, "other", 1);
	switch_on_and_count();
	usage_check_recount(usage, &store);
	check_all(2, 10, true);
	usage_demand_recount(&store);
	assert_true(has_file(USAGE_RECOUNT_FILE));
	usage_check_recount(usage, &store);
	assert_false(has_file(USAGE_RECOUNT_FILE));
	check_all(0, 0, false);
	check_token("site", 0, 0, 1); /* the day's uploads are known */
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_all(2, 10, true);
	check_token("site", 1, 9, 1);
	check_token("other", 1, 1, 1);
	/* Within a page. */
	usage_demand_recount(&store);
	usage_check_recount(usage, &store);
	assert_int_equal(usage_count(usage, &store, 2), 0);
	check_all(1, 9, false);
	usage_demand_recount(&store);
	usage_check_recount(usage, &store);
	check_all(0, 0, false);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	check_all(2, 10, true);
}

static void a_root_that_was_made_again_is_counted(void **state)
{
	(void)state;
	put_at(1, "site", 9);
	switch_on_and_count();
	atomic_fetch_add(&store.openings, 1);
	usage_check_recount(usage, &store);
	check_all(0, 0, false);
	assert_int_equal(usage_count(usage, &store, 100), 1);
	usage_check_recount(usage, &store);
	check_all(1, 9, true);
	/* Not while figures are off, nor for what happened then. */
	usage_switch(usage, &store, false);
	atomic_fetch_add(&store.openings, 1);
	usage_check_recount(usage, &store);
	switch_on_and_count();
	usage_check_recount(usage, &store);
	check_all(1, 9, true);
}

static void a_removal_takes_the_image_off(void **state)
{
	char id[3][ULID_LENGTH + 1];

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(id); i++)
		strcpy(id[i], put_at(i, "site", 10 + i));
	switch_on_and_count();
	assert_int_equal(store_remove(&store, STORE_IMAGES, id[1]), 0);
	check_all(2, 22, true);
	check_token("site", 2, 22, 3);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id[1]), -ENOENT);
	assert_int_equal(store_remove(&store, STORE_SPOOL, id[0]), -ENOENT);
	check_all(2, 22, true);
}

/* The store finds that out when it removes the image. */
static void a_removal_from_a_root_that_was_replaced_takes_the_image_off(void **state)
{
	char id[2][ULID_LENGTH + 1], command[512];

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(id); i++)
		strcpy(id[i], put_at(i, "site", 10 + i));
	switch_on_and_count();
	snprintf(command, sizeof command, "mv %s %s.old && cp -a %s.old %s && rm -rf %s.old/*",
	         root, root, root, root, root);
	assert_int_equal(system(command), 0);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id[1]), 0);
	assert_int_equal(store.openings, 1);
	check_all(1, 10, true);
	snprintf(command, sizeof command, "rm -rf %s.old", root);
	assert_int_equal(system(command), 0);
}

static void a_damaged_image_is_not_taken_off(void **state)
{
	char id[ULID_LENGTH + 1];

	(void)state;
	put_at(1, "site", 5);
	strcpy(id, put_at(2, "site", 7));
	damage(id);
	switch_on_and_count();
	check_all(1, 5, true);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), 0);
	check_all(1, 5, true);
	check_token("site", 1, 5, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(images_are_counted_page_by_page),
		TEST(the_rest_of_a_page_is_not_counted_twice),
		TEST(damaged_images_are_not_counted),
		TEST(an_image_that_finds_no_descriptor_is_counted_later),
		TEST(uploads_of_the_day_are_counted),
		TEST(figures_are_saved_when_they_are_complete),
		TEST(saved_figures_need_no_count),
		TEST(another_process_makes_it_count_again),
		TEST(a_root_that_was_made_again_is_counted),
		TEST(a_removal_takes_the_image_off),
		TEST(a_removal_from_a_root_that_was_replaced_takes_the_image_off),
		TEST(a_damaged_image_is_not_taken_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
