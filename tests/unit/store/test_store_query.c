/* test_store_query.c - options, numbers and times of darkroomd store. */
#include "support/query_harness.h"

static void options_have_their_effect(void **state)
{
	(void)state;
	assert_int_equal(open_words("list"), 0);
	assert_ptr_equal(query.conf, &conf);
	assert_ptr_equal(query.ask, ask_nobody);
	assert_false(query.is_json || query.is_newest_first || query.is_dry || query.repairs ||
	             query.restarts || query.only_missing);
	assert_true(query.limit == UINT64_MAX && query.rate == 0 && query.word_count == 0);
	assert_null(query.token);
	assert_null(query.ids_path);
	assert_null(query.map_path);
	assert_string_equal(query.after, "");
	assert_string_equal(query.before, "");
	store_query_close(&query);
	assert_int_equal(open_words("list --json --newest --dry-run --repair --restart --missing "
	                            "--limit 12 --rate 3M --token site --ids file --map m a b"),
	                 0);
	assert_true(query.is_json && query.is_newest_first && query.is_dry && query.repairs &&
	            query.restarts && query.only_missing);
	assert_true(query.limit == 12 && query.rate == 3 << 20);
	assert_string_equal(query.token, "site");
	assert_string_equal(query.ids_path, "file");
	assert_string_equal(query.map_path, "m");
	assert_int_equal(query.word_count, 2);
	assert_string_equal(query.words[0], "a");
	assert_string_equal(query.words[1], "b");
	store_query_close(&query);
	static const char *const single[] = { "--json",   "--newest",  "--dry-run",
		                              "--repair", "--restart", "--missing" };

	for (unsigned i = 0; i < COUNT_OF(single); i++) {
		char words[64];

		snprintf(words, sizeof words, "list %s", single[i]);
		assert_int_equal(open_words(words), 0);
		assert_int_equal(query.is_json, i == 0);
		assert_int_equal(query.is_newest_first, i == 1);
		assert_int_equal(query.is_dry, i == 2);
		assert_int_equal(query.repairs, i == 3);
		assert_int_equal(query.restarts, i == 4);
		assert_int_equal(query.only_missing, i == 5);
		store_query_close(&query);
	}
}

static void numbers_have_units_and_do_not_overflow(void **state)
{
	static const struct {
		const char *text;
		uint64_t number; /* 0: refused */
	} cases[] = {
		{ "1", 1 },
		{ "9", 9 },
		{ "10K", 10 << 10 },
		{ "3M", 3 << 20 },
		{ "2G", UINT64_C(2) << 30 },
		{ "18446744073709551615", UINT64_MAX },
		{ "18446744073709551616", 0 },
		{ "17179869183G", UINT64_C(17179869183) << 30 },
		{ "17179869184G", 0 },
		{ "18014398509481984K", 0 },
		{ "0", 0 },
		{ "01", 0 },
		{ "-1", 0 },
		{ "+1", 0 },
		{ "x", 0 },
		{ ":", 0 },
		{ "1x", 0 },
		{ "1KK", 0 },
		{ "1Kx", 0 },
		{ "1 ", 0 },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		uint64_t number = 7;

		assert_int_equal(read_number(cases[i].text, &number), cases[i].number != 0);
		if (cases[i].number)
			assert_int_equal(number, cases[i].number);
	}
}

static void wrong_options_are_refused(void **state)
{
	static const char *const words[] = {
		"list --limit 0",         "list --limit x",  "list --rate x",
		"list --since yesterday", "list --before x", "list --after x",
		"list --unknown",         "list --limit",    "list -xy",
	};
	char many[1024] = "list";

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(words); i++) {
		unsigned before = open_descriptors();

		assert_int_equal(open_words(words[i]), QUERY_EXIT_USAGE);
		assert_non_null(strstr(out, "\nSee darkroom-store(7).\n"));
		store_query_close(&query);
		assert_int_equal(open_descriptors(), before);
	}
	assert_int_equal(open_words(""), QUERY_EXIT_USAGE);
	for (unsigned i = 1; i < QUERY_WORDS_MAX - 1; i++)
		strcat(many, " a");
	assert_int_equal(open_words(many), 0);
	assert_int_equal(query.word_count, QUERY_WORDS_MAX - 2);
	store_query_close(&query);
	strcat(many, " a");
	assert_int_equal(open_words(many), QUERY_EXIT_USAGE);
	assert_non_null(strstr(out, "at most 62 words"));
}

static void what_is_not_a_store_is_refused(void **state)
{
	(void)state;
	strcpy(conf.server.root, "/nowhere");
	assert_int_equal(open_words("list"), EXIT_FAILURE);
	assert_non_null(strstr(out, "/nowhere is not a store"));
	store_query_close(&query);
	strcpy(conf.server.root, "/dev/null");
	assert_int_equal(open_words("list"), EXIT_FAILURE);
	assert_non_null(strstr(out, "/dev/null is not a store"));
	strcpy(conf.server.root, root);
	shell("mkdir other; mkdir other/.trash other/.quarantine; ln -s loop other/.spool; "
	      "ln -s .spool other/loop");
	snprintf(conf.server.root, sizeof conf.server.root, "%s/other", root);
	assert_int_equal(open_words("list"), EXIT_FAILURE);
	assert_null(strstr(out, "is not a store"));
	strcpy(conf.server.root, root);
	shell("rm -r other");
}

static void problems_are_reported(void **state)
{
	(void)state;
	catch_begin();
	assert_int_equal(store_query_usage("%s: %d", "word", 5), QUERY_EXIT_USAGE);
	assert_int_equal(store_query_fail("thing", -ENOENT), EXIT_FAILURE);
	catch_end();
	assert_string_equal(out, "darkroomd store: word: 5\nSee darkroom-store(7).\n"
	                         "darkroomd store: thing: No such file or directory\n");
}

/* ---- times ---- */

static void times_are_dates_or_ages(void **state)
{
	static const struct {
		const char *text;
		int64_t ms; /* -1: refused */
	} cases[] = {
		{ "1970-01-01", 0 },
		{ "1970-01-02", INT64_C(86400000) },
		{ "2026-11-22", INT64_C(1795305600000) },
		{ "2026-11-22T11:40:05Z", INT64_C(1795347605000) },
		{ "1969-12-31", -1 },
		{ "1969-12-31T23:59:59Z", -1 },
		{ "1970-01-01T00:00:01Z", 1000 },
		{ "5s", (int64_t)NOW_MS - 5000 },
		{ "2d", (int64_t)NOW_MS - INT64_C(172800000) },
		{ "30000d", 0 },
		{ "2026-11-22x", -1 },
		{ "2026-11-22T11:40:05Zx", -1 },
		{ "", -1 },
		{ "x", -1 },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		uint64_t ms = 99;

		assert_int_equal(store_query_time(cases[i].text, NOW_MS, &ms), cases[i].ms >= 0);
		if (cases[i].ms >= 0)
			assert_int_equal(ms, cases[i].ms);
	}
	uint64_t ms = 99;

	assert_true(store_query_time("5s", 5000, &ms));
	assert_int_equal(ms, 0);
	assert_true(store_query_time("5s", 5001, &ms));
	assert_int_equal(ms, 1);
}

static void bounds_are_milliseconds(void **state)
{
	char expected[ULID_LENGTH + 1];

	(void)state;
	fake_time = (struct timespec){ NOW_MS / MS_PER_S, 123999999 };
	assert_int_equal(open_words("list --since 5s --before 2s"), 0);
	ulid_bound(NOW_MS + 123 - 5001, 'Z', expected);
	assert_string_equal(query.after, expected);
	ulid_bound(NOW_MS + 123 - 2000, '0', expected);
	assert_string_equal(query.before, expected);
	store_query_close(&query);
	assert_int_equal(open_words("list --since 1970-01-01"), 0);
	assert_string_equal(query.after, "");
	store_query_close(&query);
	assert_int_equal(open_words("list --since 1970-01-01T00:00:01Z"), 0);
	ulid_bound(999, 'Z', expected);
	assert_string_equal(query.after, expected);
	store_query_close(&query);
	fake_time = (struct timespec){ 5, 123000000 };
	assert_int_equal(open_words("list --since 5s --before 5s"), 0);
	ulid_bound(122, 'Z', expected);
	assert_string_equal(query.after, expected);
	ulid_bound(123, '0', expected);
	assert_string_equal(query.before, expected);
	store_query_close(&query);
	fake_time.tv_nsec = 1000000; /* the second millisecond of all */
	assert_int_equal(open_words("list --since 5s"), 0);
	ulid_bound(0, 'Z', expected);
	assert_string_equal(query.after, expected);
	store_query_close(&query);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_have_their_effect),
		cmocka_unit_test(numbers_have_units_and_do_not_overflow),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(what_is_not_a_store_is_refused),
		cmocka_unit_test(problems_are_reported),
		cmocka_unit_test(times_are_dates_or_ages),
		cmocka_unit_test(bounds_are_milliseconds),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
