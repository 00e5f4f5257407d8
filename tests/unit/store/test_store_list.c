/* test_store_list.c - what list, find and count print, and their exit status. */
#include "support/command_harness.h"

#include "store/stored_info.h"

/* What the n-th image's image.json says. */
static struct {
	int err;
	struct stored_info info;
} images[WALK_MAX];

static int fake_load(struct stored_info *info, struct store *s, const char *id, char *data)
{
	assert_ptr_equal(s, &query.store);
	assert_string_equal(id, walk_id[walk_at]);
	*info = images[walk_at].info;
	sprintf(data, "{\"width\":%u}\n", walk_at);
	return images[walk_at].err;
}

#define stored_info_load fake_load
#include "store/store_list.c"

#define LIST_HEAD                                                                         \
	"ID                          UPLOADED                         SIZE      UPLOAD  " \
	"    STORED  TOKEN\n"
#define FIRST_DATE "  2026-11-22T00:00:00.000Z  "
#define COUNT_HEAD "                              IMAGES  UPLOADED BYTES    STORED BYTES\n"

static char first_word[] = "one", second_word[] = "two";
static char *words[] = { first_word, second_word };

static int setup(void **state)
{
	static const struct stored_info small = {
		.width = 1, .height = 2, .file = { { "small", 100, "" } }, .file_count = 1
	};
	static const struct stored_info big = { .width = 300,
		                                .height = 20000,
		                                .has_record = true,
		                                .upload_bytes = 123456,
		                                .token = "s",
		                                .file = { { "small", 7, "" },
		                                          { "big", 10000, "" } },
		                                .file_count = 2 };

	(void)state;
	begin_command(2);
	for (unsigned i = 0; i < WALK_MAX; i++) {
		images[i].info = small;
		images[i].err = 0;
	}
	images[1].info = big;
	query.words = words;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_streams();
	return 0;
}

/* Returns the line of the n-th image, as list prints it. */
static const char *line(unsigned n)
{
	static char text[2][256];

	snprintf(text[n], sizeof text[n], "%s  2026-11-22T00:00:00.00%uZ  %s\n", ID(n), n,
	         n ? "  300x20000      123456       10007  s"
	           : "        1x2           -         100  -");
	return text[n];
}

static void check_list(int status, const char *first, const char *second, const char *err)
{
	char text[1024];

	assert_int_equal(store_list(&query), status);
	snprintf(text, sizeof text, LIST_HEAD "%s%s", first, second);
	check_written(text, err);
}

/* ---- list and find ---- */

static void each_image_has_a_line(void **state)
{
	(void)state;
	check_list(EXIT_SUCCESS, line(0), line(1), "");
	walk_count = 0;
	check_list(EXIT_SUCCESS, "", "", "");
}

static void json_is_what_the_store_has(void **state)
{
	(void)state;
	query.is_json = true;
	assert_int_equal(store_list(&query), EXIT_SUCCESS);
	check_written("{\"width\":0}\n{\"width\":1}\n", "");
}

static void the_longest_size_has_room(void **state)
{
	char text[256];

	(void)state;
	images[0].info.width = images[0].info.height = UINT64_MAX;
	walk_count = 1;
	snprintf(text, sizeof text, "%s" FIRST_DATE "%s           -         100  -\n", ID(0),
	         "18446744073709551615x18446744073709551615");
	check_list(EXIT_SUCCESS, text, "", "");
}

static void a_token_selects_its_images(void **state)
{
	(void)state;
	query.token = "s";
	check_list(EXIT_SUCCESS, line(1), "", "");
	query.token = "other";
	check_list(EXIT_SUCCESS, "", "", "");
}

static void a_removed_image_counts_if_it_was_named(void **state)
{
	char err[128];

	(void)state;
	images[0].err = -ENOENT;
	snprintf(err, sizeof err, "darkroomd store: %s: does not exist\n", ID(0));
	check_list(EXIT_SUCCESS, line(1), "", "");
	query.word_count = 1;
	check_list(EXIT_FAILURE, line(1), "", err);
	query.word_count = 0;
	query.ids_path = "file";
	check_list(EXIT_FAILURE, line(1), "", err);
	images[0].err = 0; /* a failure is of one run only */
	check_list(EXIT_SUCCESS, line(0), line(1), "");
}

static void a_damaged_image_is_reported(void **state)
{
	char err[128];

	(void)state;
	images[0].err = -EINVAL;
	snprintf(err, sizeof err, "darkroomd store: %s: image.json is damaged\n", ID(0));
	check_list(EXIT_FAILURE, line(1), "", err);
	query.word_count = 1;
	check_list(EXIT_FAILURE, line(1), "", err);
}

static void any_other_error_ends_the_list(void **state)
{
	char err[128];

	(void)state;
	images[0].err = -EIO;
	snprintf(err, sizeof err, "%s: error %d\n", ID(0), EIO);
	check_list(EXIT_FAILURE, "", "", err);
	images[0].err = 0;
	walk_status = WALK_FAILS;
	check_list(WALK_FAILS, line(0), line(1), "");
}

static void find_needs_something_to_look_for(void **state)
{
	char text[1024];

	(void)state;
	assert_int_equal(store_find_images(&query), QUERY_EXIT_USAGE);
	check_written("", "find: expected ids, --ids FILE or --token NAME\n");
	snprintf(text, sizeof text, LIST_HEAD "%s%s", line(0), line(1));
	query.word_count = 1;
	assert_int_equal(store_find_images(&query), EXIT_SUCCESS);
	check_written(text, "");
	query.word_count = 0;
	query.ids_path = "file";
	assert_int_equal(store_find_images(&query), EXIT_SUCCESS);
	check_written(text, "");
	query.ids_path = NULL;
	query.token = "none";
	assert_int_equal(store_find_images(&query), EXIT_SUCCESS);
	check_written(LIST_HEAD, "");
}

/* ---- count ---- */

static void count_has_days_variants_and_all(void **state)
{
	(void)state;
	walk_count = 4; /* one of the day before, and two of the day behind */
	ulid_bound(UINT64_C(1795305600000) - 1, 'A', ID(0));
	images[1].info.upload_bytes = 10;
	images[2].info.upload_bytes = 1000;
	ulid_bound(UINT64_C(1795305600000) + 86400000, 'A', ID(2));
	ulid_bound(UINT64_C(1795305600000) + 86400001, 'A', ID(3));
	assert_int_equal(store_count(&query), EXIT_SUCCESS);
	check_written(COUNT_HEAD
	              "2026-11-21                         1               0             100\n"
	              "2026-11-22                         1              10           10007\n"
	              "2026-11-23                         2            1000             200\n"
	              "small                              4               0             307\n"
	              "big                                1               0           10000\n"
	              "all                                4            1010           10307\n",
	              "");
	walk_count = 0; /* nothing is left of the first run */
	assert_int_equal(store_count(&query), EXIT_SUCCESS);
	check_written(COUNT_HEAD
	              "all                                0               0               0\n",
	              "");
}

static void count_prints_json(void **state)
{
	(void)state;
	query.is_json = true;
	walk_count = 1;
	images[0].info.upload_bytes = 5;
	assert_int_equal(store_count(&query), EXIT_SUCCESS);
	check_written("{\"day\":\"2026-11-22\",\"images\":1,\"upload_bytes\":5,\"bytes\":100}\n"
	              "{\"variant\":\"small\",\"images\":1,\"upload_bytes\":0,\"bytes\":100}\n"
	              "{\"total\":\"all\",\"images\":1,\"upload_bytes\":5,\"bytes\":100}\n",
	              "");
}

static void count_selects_and_reports_as_list_does(void **state)
{
	char err[128];

	(void)state;
	query.is_json = true;
	query.token = "s";
	images[0].err = -EINVAL;
	snprintf(err, sizeof err, "darkroomd store: %s: image.json is damaged\n", ID(0));
	images[1].info.token[0] = 'S';
	assert_int_equal(store_count(&query), EXIT_FAILURE);
	check_written("{\"total\":\"all\",\"images\":0,\"upload_bytes\":0,\"bytes\":0}\n", err);
	images[0].err = -ENOENT;
	assert_int_equal(store_count(&query), EXIT_SUCCESS);
	check_written("{\"total\":\"all\",\"images\":0,\"upload_bytes\":0,\"bytes\":0}\n", "");
	walk_status = WALK_FAILS;
	assert_int_equal(store_count(&query), WALK_FAILS);
	query.word_count = 2;
	assert_int_equal(store_count(&query), QUERY_EXIT_USAGE);
}

static void count_expects_no_word(void **state)
{
	(void)state;
	query.word_count = 1;
	assert_int_equal(store_count(&query), QUERY_EXIT_USAGE);
	check_written("", "count: expected no word, but one\n");
}

static void count_has_room_for_some_variants(void **state)
{
	char expected[128];

	(void)state;
	query.is_json = true;
	walk_count = NAMES_MAX + 2;
	for (unsigned i = 0; i < walk_count; i++) {
		images[i].info.file_count = 1;
		snprintf(images[i].info.file[0].name, CONF_NAME_MAX, "v%u", i % (NAMES_MAX + 1));
		images[i].info.file[0].bytes = i + 1;
	}
	assert_int_equal(store_count(&query), EXIT_SUCCESS);
	fflush(out_stream);
	snprintf(expected, sizeof expected,
	         "{\"variant\":\"v%u\",\"images\":1,\"upload_bytes\":0,\"bytes\":%u}\n{\"total\"",
	         NAMES_MAX - 1, NAMES_MAX);
	assert_non_null(strstr(out_text, expected));
	assert_non_null(strstr(out_text, "\"v0\",\"images\":2,\"upload_bytes\":0,\"bytes\":67}\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_image_has_a_line),
		TEST(json_is_what_the_store_has),
		TEST(the_longest_size_has_room),
		TEST(a_token_selects_its_images),
		TEST(a_removed_image_counts_if_it_was_named),
		TEST(a_damaged_image_is_reported),
		TEST(any_other_error_ends_the_list),
		TEST(find_needs_something_to_look_for),
		TEST(count_has_days_variants_and_all),
		TEST(count_prints_json),
		TEST(count_selects_and_reports_as_list_does),
		TEST(count_expects_no_word),
		TEST(count_has_room_for_some_variants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
