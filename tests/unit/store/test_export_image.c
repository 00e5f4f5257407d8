/* test_export_image.c - which files an image has, and what is wrong with them. */
#include "support/export_harness.h"

#define CHECK_FILES(...)                                                      \
	do {                                                                  \
		static const char *const names_[] = { __VA_ARGS__ };          \
		assert_int_equal(image.file_count, COUNT_OF(names_));         \
		for (unsigned i_ = 0; i_ < COUNT_OF(names_); i_++)            \
			assert_string_equal(image.file[i_].name, names_[i_]); \
	} while (0)

static void an_image_has_the_files_that_it_names(void **state)
{
	char sum[CHECKSUM_LENGTH + 1];

	(void)state;
	assert_int_equal(open_image("a"), 0);
	CHECK_FILES("image.json", "thumb.jpg", "zoom.jpg", "original.jpg");
	assert_string_equal(image.id, ID);
	assert_int_equal(image.file[1].size, strlen(THUMB));
	checksum_of(THUMB, strlen(THUMB), sum);
	assert_string_equal(image.file[1].sum, sum);
	export_image_close(&image);
	assert_int_equal(image.file_count, 0);
}

static void an_image_of_an_earlier_version_may_have_an_original(void **state)
{
	(void)state;
	make_old_document();
	assert_int_equal(open_image("a"), 0);
	CHECK_FILES("image.json", "thumb.jpg", "zoom.jpg", "original.jpg");
	export_image_close(&image);
	shell("printf other > a/original.jpg");
	assert_int_equal(open_image("a"), 0);
	assert_int_equal(image.file_count, 4);
	export_image_close(&image);
	shell("rm a/original.jpg");
	assert_int_equal(open_image("a"), 0);
	CHECK_FILES("image.json", "thumb.jpg", "zoom.jpg");
	export_image_close(&image);
	shell("printf no > a/zoom.jpg");
	assert_int_equal(open_image("a"), -EBADMSG);
	assert_string_equal(image.why, "zoom.jpg: truncated");
}

static void an_original_of_an_earlier_version_that_is_not_opened_is_a_failure(void **state)
{
	(void)state;
	make_old_document();
	fail_call(CALL_OPENAT, 4, EACCES);
	assert_int_equal(open_image("a"), -EACCES);
}

static void a_file_that_is_missing_is_named(void **state)
{
	(void)state;
	shell("rm a/thumb.jpg");
	assert_int_equal(open_image("a"), -EBADMSG);
	assert_string_equal(image.why, "thumb.jpg: missing");
	assert_int_equal(directory_calls, 2);
	shell("rm a/image.json");
	assert_int_equal(open_image("a"), -EBADMSG);
	assert_string_equal(image.why, "image.json: missing");
}

static void a_file_that_is_damaged_is_named(void **state)
{
	static const char *const cases[][2] = {
		{ "printf thumbnaix > a/thumb.jpg", "thumb.jpg: rotten" },
		{ "printf thumbnail. > a/thumb.jpg", "thumb.jpg: rotten" },
		{ "printf thumbnai > a/thumb.jpg", "thumb.jpg: truncated" },
		{ "printf xarge > a/zoom.jpg", "zoom.jpg: rotten" },
		{ "printf xamera > a/original.jpg", "original.jpg: rotten" },
		{ "sed -i s/:640/:641/ a/image.json", "image.json: rotten" },
		{ "echo '{}' > a/image.json", "image.json: damaged" },
		{ ": > a/image.json", "image.json: damaged" },
		{ "truncate -s 20000 a/image.json", "image.json: damaged" },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		make_image();
		shell(cases[i][0]);
		assert_int_equal(open_image("a"), -EBADMSG);
		assert_string_equal(image.why, cases[i][1]);
		assert_int_equal(image.file_count, 0);
		assert_int_equal(directory_calls, 2); /* it was not replaced */
	}
}

static void a_file_that_is_not_read_is_named(void **state)
{
	(void)state;
	failing_sum = 2;
	assert_int_equal(open_image("a"), -EBADMSG);
	assert_string_equal(image.why, "thumb.jpg: unreadable");
}

static void a_file_that_is_not_opened_is_a_failure(void **state)
{
	(void)state;
	fail_call(CALL_OPENAT, 2, EACCES);
	assert_int_equal(open_image("a"), -EACCES);
}

static void an_image_that_is_not_there_is_not_damaged(void **state)
{
	(void)state;
	assert_int_equal(open_image("-"), -ENOENT);
	assert_int_equal(directory_calls, 1);
	shell("rm a/thumb.jpg"); /* a daemon removes the image */
	assert_int_equal(open_image("a-"), -ENOENT);
	assert_int_equal(directory_calls, 2);
	shell("rm a/image.json");
	assert_int_equal(open_image("a-"), -ENOENT);
}

static void an_image_that_is_replaced_is_opened_again(void **state)
{
	(void)state;
	shell("cp -r a b && rm a/zoom.jpg");
	assert_int_equal(open_image("abb"), 0);
	assert_int_equal(image.file_count, 4);
	assert_int_equal(directory_calls, 3);
	export_image_close(&image);
}

static void an_image_that_is_replaced_all_the_time_is_left(void **state)
{
	(void)state;
	shell("rm a/zoom.jpg && cp -r a b");
	assert_int_equal(open_image("ab"), -EBADMSG);
	assert_int_equal(directory_calls, 2 * 100);
}

static void a_directory_without_a_number_counts_as_replaced(void **state)
{
	(void)state;
	shell("rm a/zoom.jpg");
	for (unsigned nth = 1; nth <= 2; nth++) {
		fail_call(CALL_FSTAT, nth, EIO);
		assert_int_equal(open_image("a"), -EBADMSG);
		assert_int_equal(directory_calls, 4);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_has_the_files_that_it_names),
		TEST(an_image_of_an_earlier_version_may_have_an_original),
		TEST(an_original_of_an_earlier_version_that_is_not_opened_is_a_failure),
		TEST(a_file_that_is_missing_is_named),
		TEST(a_file_that_is_damaged_is_named),
		TEST(a_file_that_is_not_read_is_named),
		TEST(a_file_that_is_not_opened_is_a_failure),
		TEST(an_image_that_is_not_there_is_not_damaged),
		TEST(an_image_that_is_replaced_is_opened_again),
		TEST(an_image_that_is_replaced_all_the_time_is_left),
		TEST(a_directory_without_a_number_counts_as_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
