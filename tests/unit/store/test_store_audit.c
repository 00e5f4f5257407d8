/* test_store_audit.c - which files of an image are found damaged, and images that change meanwhile.
 */
#include "support/audit_harness.h"

static void a_sound_image_has_no_problem(void **state)
{
	(void)state;
	assert_true(is_sound());
	assert_int_equal(begins, 1);
	assert_int_equal(ends, 1);
	assert_int_equal(file_calls, 3);
	assert_int_equal(file_bytes, 4 + 2 + 5);
	assert_int_equal(advices, 6);
	assert_int_equal(tags, 3);
	assert_int_equal(audit.report.unverified, 0);
	assert_int_equal(audit.report.images, 1);
	assert_int_equal(opens, 2);
}

static void damage_of_a_file_is_named(void **state)
{
	(void)state;
	shell("printf xaaa >image/small.jpg");
	assert_true(has_only("small.jpg", "rotten"));
	shell("printf '!aaa' >image/small.jpg");
	assert_true(has_only("small.jpg", "unreadable"));
	shell("printf aaa >image/small.jpg");
	assert_true(has_only("small.jpg", "truncated"));
	shell("printf aaaaa >image/small.jpg");
	assert_true(has_only("small.jpg", "rotten"));
	shell("rm image/small.jpg");
	assert_true(has_only("small.jpg", "missing"));
	shell("mkdir image/small.jpg");
	assert_true(has_only("small.jpg", "unreadable"));
	shell("rmdir image/small.jpg && printf aaaa >link && ln -s ../link image/small.jpg");
	assert_true(has_only("small.jpg", "unreadable"));
	shell("rm image/small.jpg && printf aaaa >image/small.jpg");
	assert_true(is_sound());
	shell("rm image/large.jpg");
	assert_true(has_only("large.jpg", "missing"));
}

static void what_nobody_knows_is_a_stray(void **state)
{
	static const char *const names[] = {
		"small.jpeg", "small",        ".jpg",      "smal.jpg",
		"smallx.jpg", "original.jpg", "smalx.jpg", "smallxxxx"
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char command[64];

		snprintf(command, sizeof command, "touch image/%s", names[i]);
		shell(command);
		assert_true(has_only(names[i], "stray"));
		snprintf(command, sizeof command, "rm image/%s", names[i]);
		shell(command);
	}
}

static void an_earlier_version_has_no_checksums(void **state)
{
	(void)state;
	document.has_record = false;
	memset(document.own_sum, 'x', 3); /* nothing looks at it */
	document.file[0].sum[0] = document.file[1].sum[0] = '\0';
	shell("printf o >image/original.jpg"); /* which image.json did not name */
	assert_true(is_sound());
	assert_int_equal(audit.report.unverified, 4);
	shell("printf aaa >image/small.jpg");
	assert_true(has_only("small.jpg", "truncated"));
	shell("printf aaaaa >image/small.jpg");
	assert_true(has_only("small.jpg", "rotten"));
}

static void attributes_have_the_checksums_then(void **state)
{
	(void)state;
	document.has_record = false;
	document.file_count = 1;
	document.file[0].sum[0] = '\0';
	shell("rm image/large.jpg && printf aaaaa >image/image.json");
	file_tag = SUM_A;
	assert_true(is_sound());
	assert_int_equal(audit.report.unverified, 1); /* image.json */
	shell("printf cccc >image/small.jpg");
	assert_true(has_only("small.jpg", "rotten"));
	document.file[0].sum[0] = 'c'; /* what image.json says precedes them */
	memset(document.file[0].sum, 'c', CHECKSUM_LENGTH);
	assert_true(is_sound());
}

static void a_damaged_document_is_not_believed(void **state)
{
	(void)state;
	document_status = -EINVAL;
	assert_true(has_only("image.json", "rotten"));
	assert_int_equal(audit.report.unverified, 2); /* of the files */
	shell("printf x >image/stray");
	assert_true(has_only("image.json", "rotten")); /* nothing tells what is a stray */
	document_status = 0;
	assert_int_equal(check(), 0);
	assert_int_equal(problem_count, 1);
	shell("rm image/stray");
	document_sum = SUM_A;
	assert_true(has_only("image.json", "rotten"));
	document_sum = SUM_D;
	assert_true(is_sound());
	file_tag = SUM_D;
	assert_true(is_sound());
	file_tag = SUM_A;
	assert_true(has_only("image.json", "rotten") == false); /* large.jpg has another one, too */
	assert_string_equal(problems[0].file, "image.json");
	assert_string_equal(problems[0].kind, "rotten");
	file_tag = "1-2";
	document_length = -EFBIG;
	assert_true(has_only("image.json", "rotten"));
	document_length = 0;
	assert_true(is_sound());
}

static void a_document_that_is_not_read_is_named(void **state)
{
	(void)state;
	document_length = -EIO;
	assert_true(has_only("image.json", "unreadable"));
	document_length = 5;
	shell("printf '!' >image/image.json");
	assert_true(has_only("image.json", "unreadable"));
	assert_true(is_sound() == false);
	shell("printf ddddd >image/image.json && touch image/other");
	assert_int_equal(check(), 0); /* it knows the files of this image, and not of the next */
	assert_string_equal(problems[0].kind, "stray");
	shell("rm image/image.json");
	audit.report.unverified = 0;
	assert_true(has_only("image.json", "missing"));
	assert_int_equal(audit.report.unverified, 3);
	shell("ln -s small.jpg image/image.json");
	assert_true(has_only("image.json", "unreadable"));
}

/* Without a document, a file is known as long as it is there. */
static void files_of_an_unknown_image_are_read(void **state)
{
	(void)state;
	document_length = -EIO;
	assert_true(has_only("image.json", "unreadable"));
	assert_int_equal(file_calls, 3);
	file_tag = SUM_A;
	assert_int_equal(check(), 0);
	assert_int_equal(problem_count, 2);
	assert_string_equal(problems[1].file, "large.jpg");
	assert_string_equal(problems[1].kind, "rotten");
}

static void a_directory_that_is_not_read_is_named(void **state)
{
	(void)state;
	fail_call(CALL_FDOPENDIR, 1, ENOMEM);
	assert_true(has_only("", "unreadable"));
}

static void files_that_are_not_opened_are_named(void **state)
{
	(void)state;
	fail_call(CALL_OPENAT, 3, EACCES); /* the directory, image.json, and a file */
	assert_int_equal(check(), 0);
	assert_int_equal(problem_count, 1);
	assert_string_equal(problems[0].kind, "unreadable");
}

static void an_image_that_is_missing_is_named_if_it_was_asked_for(void **state)
{
	static char ids_path[] = "ids";

	(void)state;
	open_errors[0] = -ENOENT;
	assert_int_equal(check(), 0); /* removed since it was listed */
	assert_int_equal(begins + ends, 0);
	query.word_count = 1;
	assert_true(has_only("", "missing"));
	query.word_count = 0;
	query.ids_path = ids_path;
	end_status = 5;
	assert_int_equal(check(), 5);
	assert_int_equal(problem_count, 1);
	open_errors[0] = -EMFILE;
	assert_int_equal(check(), EXIT_FAILED);
	assert_int_equal(failed_with, -EMFILE);
}

static void a_removed_image_does_not_count(void **state)
{
	(void)state;
	shell("rm image/small.jpg");
	open_errors[1] = -ENOENT;
	assert_int_equal(check(), 0);
	assert_int_equal(ends, 1);
	assert_false(counted);
}

static void an_image_that_was_remade_is_checked_again(void **state)
{
	(void)state;
	shell("cp image/* other && rm image/small.jpg");
	open_names[1] = open_names[2] = open_names[3] = "other";
	assert_true(is_sound());
	assert_int_equal(opens, 4);
	assert_int_equal(begins, 2);
	assert_int_equal(ends, 1);
	assert_int_equal(audit.report.images, 1);
	shell("printf aaaa >image/small.jpg");
	assert_true(is_sound()); /* a sound one is not checked again */
	assert_int_equal(opens, 2);
}

static void an_image_is_the_same_while_its_inode_is_unknown(void **state)
{
	(void)state;
	assert_int_not_equal(inode_of(root_fd), 0);
	fail_call(CALL_FSTAT, 1, EIO);
	assert_int_equal(inode_of(root_fd), 0);
}

static void a_signal_ends_the_check_behind_the_image(void **state)
{
	(void)state;
	end_status = 4;
	assert_int_equal(store_audit(&query), EXIT_FAILURE);
	assert_int_equal(finished_with, 4);
	assert_int_equal(signals, 1u << SIGTERM | 1u << SIGINT);
	end_status = 0;
	assert_int_equal(store_audit(&query), EXIT_SUCCESS);
	assert_int_equal(finished_with, 0);
	handler(SIGINT);
	assert_int_equal(store_audit(&query), EXIT_FAILURE);
	assert_int_equal(finished_with, AUDIT_INTERRUPTED);
	assert_int_equal(each_calls, 3);
	start_status = EXIT_STARTED;
	assert_int_equal(store_audit(&query), EXIT_FAILURE);
	assert_int_equal(finished_with, EXIT_STARTED);
	assert_int_equal(each_calls, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sound_image_has_no_problem),
		TEST(damage_of_a_file_is_named),
		TEST(what_nobody_knows_is_a_stray),
		TEST(an_earlier_version_has_no_checksums),
		TEST(attributes_have_the_checksums_then),
		TEST(a_damaged_document_is_not_believed),
		TEST(a_document_that_is_not_read_is_named),
		TEST(files_of_an_unknown_image_are_read),
		TEST(a_directory_that_is_not_read_is_named),
		TEST(files_that_are_not_opened_are_named),
		TEST(an_image_that_is_missing_is_named_if_it_was_asked_for),
		TEST(a_removed_image_does_not_count),
		TEST(an_image_that_was_remade_is_checked_again),
		TEST(an_image_is_the_same_while_its_inode_is_unknown),
		TEST(a_signal_ends_the_check_behind_the_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
