/* test_import_pictures_faults.c - batches, waiting for the daemon, and failures that end an import.
 */
#include "support/pictures_harness.h"

static void files_are_spooled_in_batches(void **state)
{
	(void)state;
	shell("cd in && for i in $(seq 100); do printf a > $i.jpg; done");
	idle_sleeps = 350;
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_int_equal(put_count, 7);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(puts_of[i], 16);
	assert_int_equal(puts_of[6], 4);
	assert_int_equal(flushes, 7);
	assert_int_equal(begun_lines, 100);
	assert_int_equal(spooled_most, 64);
	assert_int_equal(asks, 1 + 7 + 3); /* one in each second of waiting */
	assert_int_equal(sleeps, 352);
	assert_int_equal(shows, 100 + 354 + 1); /* files, looks at the spool, end */
	assert_int_equal(seen.all, 100);
	assert_int_equal(seen.ended, 100);
	check_counts("", 100, 0, 0, 0);
}

static void large_files_have_smaller_batches(void **state)
{
	(void)state;
	conf.limits.body_bytes = 64u << 20;
	shell("cd in && for i in 1 2 3 4 5; do truncate -s 32M $i.jpg; done");
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_int_equal(put_count, 3);
	assert_int_equal(puts_of[0], 2);
	assert_int_equal(puts_of[1], 2);
	assert_int_equal(puts_of[2], 1);
	check_counts("", 5, 0, 0, 0);
}

/* Three have one byte less than a batch, so a fourth one belongs to it. */
static void each_batch_begins_with_no_bytes(void **state)
{
	(void)state;
	conf.limits.body_bytes = 64u << 20;
	shell("cd in && for i in $(seq 8); do truncate -s 22369621 $i.jpg; done");
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_int_equal(put_count, 2);
	assert_int_equal(puts_of[1], 4);
	check_counts("", 8, 0, 0, 0);
}

static void a_daemon_is_called_only_while_images_are_left(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg");
	idle_sleeps = 99; /* it is stored after a second */
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_int_equal(sleeps, 100);
	assert_int_equal(asks, 2);
	check_counts("", 1, 0, 0, 0);
}

static void a_batch_that_is_not_spooled_is_released(void **state)
{
	(void)state;
	shell("cd in && printf a > a.jpg && printf b > b.jpg && printf c > c.jpg");
	flush_error = -ENOSPC;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(import(), EXIT_FAILED);
	assert_int_equal(put_count, 0);
}

static void files_that_are_not_opened_are_released(void **state)
{
	(void)state;
	shell("cd in && printf a > a.jpg && printf b > b.jpg && printf c > c.jpg");
	fails_open = true;
	assert_int_equal(import(), EXIT_FAILURE);
	fails_open = false;
	assert_int_equal(seen.ended, 3);
	assert_int_equal(put_count, 0);
}

static void a_daemon_that_does_not_answer_ends_it(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg");
	failing_ask = 1;
	assert_int_equal(import(), EXIT_FAILURE);
	assert_int_equal(fts_closes, 0);
	assert_int_equal(place_closes, 1);
	assert_false(was_over);
	check_counts(NO_DAEMON, 0, 0, 0, 0);
	asks = 0;
	failing_ask = 2; /* the image is spooled */
	assert_int_equal(import(), EXIT_FAILURE);
	assert_int_equal(sleeps, 0);
	check_counts(NO_DAEMON, 0, 0, 0, 0);
	asks = 0;
	failing_ask = 3;
	idle_sleeps = 1000;
	assert_int_equal(import(), EXIT_FAILURE);
	assert_int_equal(sleeps, 100);
	assert_false(was_over);
	check_counts(NO_DAEMON, 0, 0, 0, 0);
}

/* All are in the spool from an earlier import, one more than may wait. */
static void a_daemon_that_stops_while_known_images_wait_ends_it(void **state)
{
	char id[ULID_LENGTH + 1], path[32], line[64];

	(void)state;
	for (unsigned i = 0; i <= WAITING_MAX; i++) {
		snprintf(id, sizeof id, "01K00000000000000000000%03u", i);
		snprintf(path, sizeof path, "%u.jpg", i);
		snprintf(line, sizeof line, "printf a > in/%s", path);
		shell(line);
		know(path, id, false);
		add_image(id, SPOOLED, "a", 1);
	}
	failing_ask = 2;
	idle_sleeps = 1000;
	assert_int_equal(import(), EXIT_FAILURE);
	assert_int_equal(sleeps, 100);
	check_counts(NO_DAEMON, 0, 0, 0, 0);
}

static void a_map_that_is_not_written_ends_it(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg");
	begin_error = -EIO;
	assert_int_equal(import(), EXIT_FAILED);
	assert_string_equal(reported, "map.begun");
	assert_int_equal(reported_err, -EIO);
	assert_int_equal(put_count, 0);
	check_counts("", 0, 0, 0, 0);
	begin_error = 0;
	flush_error = -ENOSPC;
	assert_int_equal(import(), EXIT_FAILED);
	assert_string_equal(reported, "map.begun");
	assert_int_equal(reported_err, -ENOSPC);
	assert_int_equal(put_count, 0);
	check_counts("", 0, 0, 0, 0);
	flush_error = 0;
	stored_error = -EIO;
	assert_int_equal(import(), EXIT_FAILED);
	assert_string_equal(reported, "map");
	assert_false(was_over);
	check_counts("", 1, 0, 0, 0);
	shell("printf b > in/b.jpg");
	stored_lines = 0;
	assert_int_equal(import(), EXIT_FAILED); /* the other image is not looked at */
	assert_int_equal(stored_lines, 1);
	check_counts("", 1, 0, 0, 0);
	stored_error = 0;
	close_error = -EDQUOT;
	assert_int_equal(import(), EXIT_FAILED);
	assert_string_equal(reported, "map");
	assert_int_equal(reported_err, -EDQUOT);
	assert_true(was_over);
	check_counts("", 2, 0, 0, 0);
}

static void an_image_that_is_not_spooled_ends_it(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg && printf b > in/b.jpg");
	put_error = -ENOSPC;
	assert_int_equal(import(), EXIT_FAILED);
	assert_non_null(strstr(reported, ".jpg"));
	assert_int_equal(reported_err, -ENOSPC);
	assert_int_equal(spooled, 1);
	assert_int_equal(asks, 1);
	assert_int_equal(sleeps, 0);
	check_counts("", 0, 0, 0, 0);
}

static void a_path_without_memory_ends_it(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg");
	fails_strdup = true;
	assert_int_equal(import(), EXIT_FAILED);
	assert_string_equal(reported, "a.jpg");
	assert_int_equal(reported_err, -ENOMEM);
	check_counts("", 0, 0, 0, 0);
}

static void a_directory_that_is_not_read_ends_it(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg");
	fails_fts_open = true;
	assert_int_equal(import(), EXIT_FAILED);
	assert_string_equal(reported, directory);
	assert_int_equal(reported_err, -ENFILE);
	fails_fts_open = false;
	is_root_unreadable = true;
	assert_int_equal(import(), EXIT_FAILED);
	assert_string_equal(reported, directory);
	assert_int_equal(reported_err, -EACCES);
	assert_int_equal(fts_closes, 1);
	is_root_unreadable = false;
	failing_read = 2;
	assert_int_equal(import(), EXIT_FAILED);
	assert_int_equal(reported_err, -EIO);
	assert_int_equal(fts_closes, 2);
	assert_int_equal(image_count, 0);
}

static void an_entry_that_is_not_read_is_reported_once(void **state)
{
	(void)state;
	shell("printf a > in/err && printf a > in/ns && printf a > in/a.jpg");
	assert_int_equal(import(), EXIT_FAILURE);
	assert_int_equal(image_count, 1);
	assert_int_equal(fflush(err_stream), 0);
	assert_non_null(
		strstr(err_text, "darkroomd store: err: not imported: Permission denied\n"));
	assert_non_null(strstr(err_text, "darkroomd store: ns: not imported: Permission denied\n"));
	assert_non_null(strstr(err_text, "1 images made, 0 were in the map already, 2 failed; 0 "));
}

static void what_is_not_opened_ends_it(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg");
	map_status = 5;
	assert_int_equal(import(), 5);
	assert_int_equal(asks, 0);
	assert_int_equal(place_closes, 0);
	map_status = 0;
	place_status = 6;
	assert_int_equal(import(), 6);
	assert_int_equal(asks, 0);
	assert_int_equal(place_closes, 0);
	assert_false(was_over);
}

static void a_directory_and_a_map_are_expected(void **state)
{
	(void)state;
	query.map_path = NULL;
	assert_int_equal(import(), QUERY_EXIT_USAGE);
	query.map_path = "map";
	query.word_count = 2;
	assert_int_equal(import(), QUERY_EXIT_USAGE);
	query.word_count = 0;
	assert_int_equal(import(), QUERY_EXIT_USAGE);
	assert_string_equal(reported, "import: expected one directory and --map FILE");
	assert_int_equal(map_closes + place_closes, 0);
}

static void images_that_were_begun_wait_with_the_others(void **state)
{
	static struct pictures p;
	struct import_known begun = { .is_stored = false };

	(void)state;
	p = (struct pictures){ .stored = 0 };
	idle_sleeps = 1;
	for (unsigned i = 0; i < 64; i++) {
		snprintf(begun.id, sizeof begun.id, "01K0000000000000000000%04u", i);
		add_image(begun.id, SPOOLED, "", 0);
		assert_int_equal(begin(&p, &query, "a", "a", &begun), 0);
		assert_int_equal(p.waiting_count, i + 1);
	}
	assert_int_equal(sleeps, 0);
	add_image("01K0000000000000000000000B", SPOOLED, "", 0);
	memcpy(begun.id, "01K0000000000000000000000B", sizeof begun.id);
	p.map.path = "map";
	assert_int_equal(begin(&p, &query, "a", "a", &begun), 0);
	assert_int_equal(sleeps, 2);
	assert_int_equal(p.waiting_count, 1);
	assert_int_equal(p.batch_count, 0);
	for (unsigned i = 1; i < 64; i++) {
		snprintf(begun.id, sizeof begun.id, "01K0000000000000000001%04u", i);
		add_image(begun.id, SPOOLED, "", 0);
		assert_int_equal(begin(&p, &query, "a", "a", &begun), 0);
	}
	assert_int_equal(begin(&p, &query, "a", "a", &begun), 0); /* the first one is stored */
	failing_ask = asks + 1;
	p.called_ns = 0;
	idle_sleeps = 1000;
	assert_int_equal(begin(&p, &query, "a", "a", &begun), EXIT_FAILURE);
	assert_int_equal(p.waiting_count, 64);
	release(&p.batch[0]);
	for (unsigned i = 0; i < p.waiting_count; i++)
		release(&p.waiting[i]);
	check_written("", NO_DAEMON);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_are_spooled_in_batches),
		TEST(large_files_have_smaller_batches),
		TEST(each_batch_begins_with_no_bytes),
		TEST(a_daemon_is_called_only_while_images_are_left),
		TEST(a_batch_that_is_not_spooled_is_released),
		TEST(files_that_are_not_opened_are_released),
		TEST(a_daemon_that_does_not_answer_ends_it),
		TEST(a_daemon_that_stops_while_known_images_wait_ends_it),
		TEST(a_map_that_is_not_written_ends_it),
		TEST(an_image_that_is_not_spooled_ends_it),
		TEST(a_path_without_memory_ends_it),
		TEST(a_directory_that_is_not_read_ends_it),
		TEST(an_entry_that_is_not_read_is_reported_once),
		TEST(what_is_not_opened_ends_it),
		TEST(a_directory_and_a_map_are_expected),
		TEST(images_that_were_begun_wait_with_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
