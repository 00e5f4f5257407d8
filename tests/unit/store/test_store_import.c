/* test_store_import.c - which images of an archive are stored, refused and counted. */
#include "support/import_harness.h"

#define IMAGE(c)                              \
	{ .name = PATH(c, "a.jpg") },         \
	{                                     \
		.name = PATH(c, "image.json") \
	}

static void each_image_is_stored_once(void **state)
{
	static const struct member list[] = { { .name = "01K0", .type = TAR_DIRECTORY },
		                              IMAGE("A"),
		                              IMAGE("B"),
		                              IMAGE("C"),
		                              IMAGE("D") };

	(void)state;
	assert_int_equal(import(NULL, 0), EXIT_SUCCESS);
	assert_int_equal(put_count, 0);
	assert_int_equal(seen.ended + seen.all, 0);
	check_counts("", 0, 0, 0, 0);
	comment = "images=12";
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_SUCCESS);
	assert_int_equal(put_count, 1);
	assert_int_equal(puts_of[0], 4);
	assert_int_equal(seen.all, 12);
	assert_int_equal(seen.ended, 4);
	assert_int_equal(shows, COUNT_OF(list) + 2);
	assert_true(was_last);
	check_counts("", 4, 0, 0, 0);
	comment = "images:12";
	same = 'B';
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_SUCCESS);
	assert_int_equal(puts_of[0], 3);
	assert_int_equal(seen.all, 0);
	check_counts("", 3, 1, 0, 0);
}

static void an_image_that_is_wrong_is_not_stored(void **state)
{
	static const struct member list[] = {
		IMAGE("A"),
		IMAGE("B"),
		{ .name = PATH("C", "a234567890123456789012345678901.jpg") },
	};

	(void)state;
	damaged = 'C';
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	assert_int_equal(puts_of[0], 2);
	check_counts("darkroomd store: " ID("C") ": not stored: x\n", 2, 0, 0, 1);
	damaged = '\0';
	different = 'C';
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	assert_int_equal(puts_of[0], 2);
	check_counts("darkroomd store: " ID("C") ": the store has it with other files; they stay\n",
	             2, 0, 1, 0);
}

static void an_image_may_have_all_files(void **state)
{
	static struct import_image image = { .file_count = EXPORT_FILES_MAX };
	struct store_file file[EXPORT_FILES_MAX] = { { .name = NULL } };
	struct store_item item;

	(void)state;
	set_item(&item, file, &image);
	for (unsigned i = 0; i < EXPORT_FILES_MAX; i++)
		assert_ptr_equal(item.file[i].name, image.file[i].name);
}

static void a_dry_run_stores_nothing(void **state)
{
	static const struct member list[] = { IMAGE("A"), IMAGE("B"), IMAGE("C") };

	(void)state;
	query.is_dry = true;
	damaged = 'A';
	same = 'B';
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	assert_int_equal(put_count, 0);
	check_counts("darkroomd store: " ID("A") ": not stored: x\n", 1, 1, 0, 1);
}

static void an_image_that_is_not_written_is_reported(void **state)
{
	static const struct member list[] = { IMAGE("A"), IMAGE("B"), IMAGE("C") };
	static const char meanwhile[] =
		"darkroomd store: " ID("A") ": not stored: it has appeared meanwhile\n";

	(void)state;
	appeared = 'A';
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	check_counts(meanwhile, 2, 0, 0, 1);
	appeared = 'B';
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	check_counts("darkroomd store: " ID("B") ": not stored: it has appeared meanwhile\n", 2, 0,
	             0, 1);
	appeared = '\0';
	unstored = 'A';
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILED);
	assert_int_equal(reported_err, -ENOSPC);
	assert_non_null(reported);
	assert_int_equal(reads, 0);
	check_counts("", 2, 0, 0, 0);
}

static void images_are_stored_in_batches(void **state)
{
	static char names[80][80];
	static struct member list[80];

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(list); i++) {
		snprintf(names[i], sizeof names[i], "01K0/00/01K0000000000000000000%02u0A/%s",
		         i / 2, i % 2 ? "image.json" : "a.jpg");
		list[i] = (struct member){ .name = names[i] };
	}
	assert_int_equal(import(list, 80), EXIT_SUCCESS);
	assert_int_equal(put_count, 2);
	assert_int_equal(puts_of[0], 31);
	assert_int_equal(puts_of[1], 9);
	check_counts("", 40, 0, 0, 0);
	for (unsigned i = 0; i < 8; i++)
		list[i].bytes = 16 * MIB - (i == 7);
	assert_int_equal(import(list, 14), EXIT_SUCCESS);
	assert_int_equal(put_count, 2);
	assert_int_equal(puts_of[0], 2);
	assert_int_equal(puts_of[1], 5); /* two of them with one byte too few */
	check_counts("", 7, 0, 0, 0);
	unstored = 'A';
	assert_int_equal(import(list, 14), EXIT_FAILED); /* ends with the first batch */
	assert_int_equal(put_count, 1);
	assert_int_equal(next, 5);
	check_counts("", 0, 0, 0, 0);
}

static void other_members_are_refused(void **state)
{
	static const char long_name[] =
		"\x1f ~\x7f\xc3/23456789012345678901234567890123456789012345678901234567890123456789"
		"01234567890123456789";
	static const struct member list[] = {
		{ .name = long_name },
		IMAGE("A"),
		{ .name = PATH("B", "a.jpg"), .type = TAR_OTHER },
		{ .name = "a" },
	};

	(void)state;
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	assert_int_equal(puts_of[0], 1);
#define EXPECTED ": not stored: expected a file with a path such as 01KA/X2/ID/thumb.jpg\n"
	check_counts("darkroomd store: "
	             "? ~?\?/23456789012345678901234567890123456789012345678901234567890123456789"
	             "012345" EXPECTED "darkroomd store: " PATH("B", "a.jpg") EXPECTED
	             "darkroomd store: a" EXPECTED,
	             1, 0, 0, 3);
}

static void an_archive_that_ends_early_gives_what_is_complete(void **state)
{
	static const struct member list[] = { IMAGE("A"), IMAGE("B") };
	static struct member broken[] = { IMAGE("A"), IMAGE("B") };

	(void)state;
	end = -ENODATA;
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	assert_int_equal(puts_of[0], 1);
	assert_int_equal(reads, 0);
	check_counts("darkroomd store: the archive ends too early; what is complete is stored\n", 1,
	             0, 0, 0);
	end = -EINVAL;
	assert_int_equal(import(list, COUNT_OF(list)), EXIT_FAILURE);
	check_counts("darkroomd store: expected an archive of store export on standard input\n", 1,
	             0, 0, 0);
	broken[3].err = -EIO;
	assert_int_equal(import(broken, COUNT_OF(broken)), EXIT_FAILED);
	assert_string_equal(reported, "standard input");
	assert_int_equal(reported_err, -EIO);
	assert_int_equal(next, 4);
	check_counts("", 1, 0, 0, 0);
}

static void what_pads_the_archive_is_read(void **state)
{
	(void)state;
	reads_most = 5;
	assert_int_equal(import(NULL, 0), EXIT_SUCCESS);
	assert_int_equal(reads, 5);
	read_error = EIO;
	assert_int_equal(import(NULL, 0), EXIT_SUCCESS);
	assert_int_equal(reads, 5);
	reads_most = 2 * MIB;
	read_error = 0;
	assert_int_equal(import(NULL, 0), EXIT_SUCCESS);
	assert_int_equal(reads, MIB);
}

static void a_read_that_is_interrupted_is_repeated(void **state)
{
	char data[16 * TAR_BLOCK];

	(void)state;
	reads = 0;
	reads_most = 1;
	read_error = EIO;
	assert_int_equal(read_input(NULL, data, sizeof data), -EIO);
	reads = 0;
	read_error = EINTR;
	reads_most = 1;
	after_interrupt = 1;
	assert_int_equal(read_input(NULL, data, sizeof data), 1);
	assert_int_equal(reads, 2);
	after_interrupt = 0;
	read_error = 0;
	reads = 0;
	errno = EINTR;
	assert_int_equal(read_input(NULL, data, sizeof data), 0);
}

static void a_place_that_is_not_opened_ends_it(void **state)
{
	static const struct member list[] = { IMAGE("A") };

	(void)state;
	open_status = 5;
	assert_int_equal(import(list, COUNT_OF(list)), 5);
	assert_int_equal(next, 0);
	check_written("", "");
}

static void an_archive_is_not_read_from_a_terminal(void **state)
{
	(void)state;
	terminal = 1;
	assert_int_equal(import(NULL, 0), QUERY_EXIT_USAGE);
	assert_non_null(strstr(reported, "expected an archive on standard input"));
	assert_int_equal(opens, 0);
}

static void no_option_selects_images(void **state)
{
	static const struct store_query selecting[] = {
		{ .limit = UINT64_MAX, .token = "shop" },
		{ .limit = UINT64_MAX, .ids_path = "-" },
		{ .limit = UINT64_MAX, .is_newest_first = 1 },
		{ .limit = UINT64_MAX, .after = "0" },
		{ .limit = UINT64_MAX, .before = "0" },
		{ .limit = 7 },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(selecting); i++) {
		query = selecting[i];
		assert_int_equal(import(NULL, 0), QUERY_EXIT_USAGE);
		assert_non_null(strstr(reported, "all images are stored"));
		assert_int_equal(opens, 0);
	}
}

static void a_directory_or_a_map_means_pictures(void **state)
{
	(void)state;
	query.word_count = 1;
	assert_int_equal(import(NULL, 0), 3);
	query.word_count = 0;
	query.map_path = "map";
	assert_int_equal(import(NULL, 0), 3);
	assert_int_equal(pictures, 2);
	assert_int_equal(opens, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_image_is_stored_once),
		TEST(an_image_that_is_wrong_is_not_stored),
		TEST(an_image_may_have_all_files),
		TEST(a_dry_run_stores_nothing),
		TEST(an_image_that_is_not_written_is_reported),
		TEST(images_are_stored_in_batches),
		TEST(other_members_are_refused),
		TEST(an_archive_that_ends_early_gives_what_is_complete),
		TEST(what_pads_the_archive_is_read),
		TEST(a_read_that_is_interrupted_is_repeated),
		TEST(a_place_that_is_not_opened_ends_it),
		TEST(an_archive_is_not_read_from_a_terminal),
		TEST(no_option_selects_images),
		TEST(a_directory_or_a_map_means_pictures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
