/* test_import_pictures.c - which files of a directory become images, and how they are counted. */
#include "support/pictures_harness.h"

#define LONG_PATH "its path is not UTF-8, or longer than 4096 bytes"
#define IMPORTED(path, why) "darkroomd store: " path ": not imported: " why "\n"

static void each_jpeg_becomes_an_image(void **state)
{
	(void)state;
	shell("cd in && mkdir -p sub/x.jpg && printf a > a.jpg && printf b > b.JPEG && "
	      "printf c > sub/c.Jpg && printf d > d.png && printf e > jpg && ln -s a.jpg l.jpg && "
	      "touch e.gif");
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_int_equal(stored_lines, 3);
	assert_int_equal(begun_lines, 3);
	assert_int_equal(flushes, 1);
	assert_int_equal(puts_of[0], 3);
	assert_int_equal(asks, 2);
	assert_int_equal(seen.start_ns, 1);
	assert_int_equal(all_at_first, 3); /* they are counted before */
	assert_int_equal(seen.all, 3);
	assert_int_equal(seen.ended, 3);
	assert_int_equal(fts_closes, 2);
	assert_int_equal(place_closes, 1);
	assert_true(was_over);
	check_counts("", 3, 0, 0, 4);
}

static void a_file_that_grows_is_imported_as_it_was(void **state)
{
	(void)state;
	shell("printf aaaa > in/a.jpg");
	growth = "printf bbbb >> in/a.jpg";
	read_most = 3;
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_string_equal(images[0].content, "aaaa");
}

static void paths_begin_below_the_directory(void **state)
{
	(void)state;
	shell("mkdir in/sub && printf data > in/sub/c.jpg");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(import(), EXIT_SUCCESS);
		assert_string_equal(last_path, "sub/c.jpg");
		assert_string_equal(last_id, images[i].id);
		assert_string_equal(images[i].content, "data");
		assert_string_equal(images[i].name, "c.jpg");
		strcat(directory, "/");
	}
	shell("rm -r in/sub && printf data > in/d.jpg");
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_string_equal(last_path, "d.jpg");
	assert_string_equal(images[2].name, "d.jpg");
}

#define ID "01K0000000000000000000000A"

static void a_file_in_the_map_is_left(void **state)
{
	(void)state;
	shell("printf a > in/a.jpg");
	know("a.jpg", ID, true);
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_int_equal(image_count, 0);
	assert_int_equal(seen.ended, 1);
	assert_int_equal(asks, 1);
	assert_int_equal(flushes, 0);
	assert_int_equal(put_count, 0);
	check_counts("", 0, 1, 0, 0);
}

static void a_file_that_was_begun_keeps_its_id(void **state)
{
	static const int states[] = { SPOOLED, STORED };

	(void)state;
	shell("printf a > in/a.jpg");
	know("a.jpg", ID, false);
	for (unsigned i = 0; i < COUNT_OF(states); i++) {
		image_count = spooled = 0;
		add_image(ID, states[i], "", 0);
		assert_int_equal(import(), EXIT_SUCCESS);
		assert_int_equal(put_count, 0);
		assert_int_equal(stored_lines, i + 1);
		assert_string_equal(last_id, ID);
		check_counts("", 1, 0, 0, 0);
	}
	image_count = 0;
	quarantine(ID); /* it is tried once more */
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_int_equal(entries("quarantine"), 0);
	assert_int_equal(put_count, 1);
	assert_string_equal(last_id, ID);
	assert_int_equal(begun_lines, 0);
	check_counts("", 1, 0, 0, 0);
}

static void a_file_that_the_daemon_refuses_is_reported(void **state)
{
	(void)state;
	shell("printf bad > in/a.jpg");
	assert_int_equal(import(), EXIT_FAILURE);
	assert_int_equal(entries("quarantine"), 0);
	assert_int_equal(stored_lines, 0);
	assert_int_equal(seen.ended, 1);
	assert_true(was_over);
	check_counts(IMPORTED("a.jpg", "it is no JPEG"), 0, 0, 1, 0);
	problem = NULL;
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "the daemon's log has the cause"), 0, 0, 1, 0);
	problem = "";
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", ""), 0, 0, 1, 0);
	problem = "xy";
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "xy"), 0, 0, 1, 0);
	shell("printf gone > in/a.jpg");
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "it was removed meanwhile"), 0, 0, 1, 0);
}

static void a_long_problem_is_cut(void **state)
{
	static char text[700];
	char expected[600], *why = expected + snprintf(expected, 64,
	                                               "darkroomd store: a.jpg: not "
	                                               "imported: ");

	(void)state;
	memset(why, 'x', 511);
	strcpy(why + 511, "\n");
	add_image(ID, GONE, "", 0);
	problem = NULL;
	quarantine(ID);
	memset(text, 'x', sizeof text - 1);
	char path[160];

	snprintf(path, sizeof path, "%s/quarantine/" ID "/problem", test_root);
	FILE *file = fopen(path, "w");

	assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
	static struct pictures p;

	assert_true(settle_refused(&p, &query, "a.jpg", ID));
	check_written("", expected);
	assert_false(settle_refused(&p, &query, "a.jpg", ID));
}

static void a_file_that_is_not_read_is_reported(void **state)
{
	(void)state;
	shell(": > in/a.jpg");
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "it is empty"), 0, 0, 1, 0);
	shell("truncate -s 1001 in/a.jpg");
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "it is larger than limits.body_bytes"), 0, 0, 1, 0);
	shell("truncate -s 1000 in/a.jpg");
	failing_malloc = 1000;
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "Cannot allocate memory"), 0, 0, 1, 0);
	failing_malloc = 0;
	fail_call(CALL_READ, 1, EIO);
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "Input/output error"), 0, 0, 1, 0);
	fail_call(CALL_FSTAT, 1, ENOMEM);
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "Cannot allocate memory"), 0, 0, 1, 0);
	no_fault();
	fails_open = true;
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "Permission denied"), 0, 0, 1, 0);
	fails_open = false;
	read_most = 0;
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("a.jpg", "it became shorter"), 0, 0, 1, 0);
	errno = EINTR;
	assert_int_equal(put_count + begun_lines, 0);
	read_most = 1; /* and the second call is interrupted */
	fail_call(CALL_READ, 2, EINTR);
	shell("printf 0123456789 > in/a.jpg");
	assert_int_equal(import(), EXIT_SUCCESS);
	assert_string_equal(images[0].content, "0123456789");
	check_counts("", 1, 0, 0, 0);
	struct picture picture = { .path = NULL };

	assert_string_equal(read_picture(&picture, directory, 1 << 20), "it is empty");
}

static void a_path_that_is_no_text_is_reported(void **state)
{
	static char long_path[IMPORT_PATH_MAX + 2];
	static struct pictures p;

	(void)state;
	shell("printf a > \"$(printf 'in/\\303\\244 \\037\\177~.jpg')\" && mkdir in/dnr");
	assert_int_equal(import(), EXIT_FAILURE);
	assert_int_equal(image_count, 1);
	check_counts(IMPORTED("dnr", "Permission denied"), 1, 0, 1, 0);
	fail(&p, "\303\244 \037\177~", "x");
	check_written("", IMPORTED("\303\244 ??~", "x"));
	fail(&p, "~\344", "x");
	check_written("", IMPORTED("~?", "x"));
	fail(&p, "\344\001~", "x");
	check_written("", IMPORTED("??~", "x"));
	shell("rm -r in && mkdir in && printf a > \"$(printf 'in/\\344.jpg')\"");
	assert_int_equal(import(), EXIT_FAILURE);
	check_counts(IMPORTED("?.jpg", LONG_PATH), 0, 0, 1, 0);
	memset(long_path, 'a', IMPORT_PATH_MAX + 1);
	fails_open = true;
	was_last = false;
	p.failed = 0;
	assert_int_equal(import_file(&p, &query, long_path, long_path), 0);
	assert_int_equal(fflush(err_stream), 0);
	assert_non_null(strstr(err_text, LONG_PATH));
	long_path[IMPORT_PATH_MAX] = '\0';
	assert_int_equal(import_file(&p, &query, long_path, long_path), 0);
	assert_int_equal(fflush(err_stream), 0);
	assert_non_null(strstr(err_text, "Permission denied"));
	assert_int_equal(p.failed, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_jpeg_becomes_an_image),
		TEST(a_file_that_grows_is_imported_as_it_was),
		TEST(paths_begin_below_the_directory),
		TEST(a_file_in_the_map_is_left),
		TEST(a_file_that_was_begun_keeps_its_id),
		TEST(a_file_that_the_daemon_refuses_is_reported),
		TEST(a_long_problem_is_cut),
		TEST(a_file_that_is_not_read_is_reported),
		TEST(a_path_that_is_no_text_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
