/* test_store_query.c - the options of darkroomd store: values, bounds, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/tool/store_query.h"

static struct conf conf;
static struct store_query query;

static int setup(void **state)
{
	struct store store;
	unsigned cleared;

	(void)state;
	snprintf(conf.server.root, sizeof conf.server.root, "/tmp/darkroom-query-XXXXXX");
	if (!mkdtemp(conf.server.root) || store_open(&store, conf.server.root, false, &cleared))
		return -1;
	store_close(&store);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %.100s", conf.server.root);
	return system(command);
}

/* Opens and closes a query of these words, separated by spaces. Returns the status. */
static int open_words(const char *text)
{
	static char words[1024];
	char *word[QUERY_WORDS_MAX + 1];
	size_t count = 0;

	snprintf(words, sizeof words, "%s", text);
	for (char *p = strtok(words, " "); p; p = strtok(NULL, " "))
		word[count++] = p;
	int status = store_query_open(&query, &conf, NULL, NULL, word, count);

	if (query.store.root_fd >= 0)
		store_close(&query.store);
	if (query.ids)
		fclose(query.ids);
	return status;
}

static void options_have_their_effect(void **state)
{
	(void)state;
	assert_int_equal(open_words("list"), 0);
	assert_false(query.is_json || query.is_newest_first || query.is_dry || query.repairs ||
	             query.restarts || query.only_missing);
	assert_true(query.limit == UINT64_MAX && query.rate == 0 && query.word_count == 0);
	assert_true(!query.token && !query.ids_path && !query.after[0] && !query.before[0]);
	assert_int_equal(open_words("list --json --newest --dry-run --repair --restart --missing "
	                            "--limit 12 --rate 3M --token site --ids /dev/null a b"),
	                 0);
	assert_true(query.is_json && query.is_newest_first && query.is_dry && query.repairs &&
	            query.restarts && query.only_missing);
	assert_true(query.limit == 12 && query.rate == 3 << 20);
	assert_string_equal(query.token, "site");
	assert_string_equal(query.ids_path, "/dev/null");
	assert_int_equal(query.word_count, 2);
	assert_string_equal(query.words[1], "b");
}

static void numbers_have_units_and_do_not_overflow(void **state)
{
	static const struct {
		const char *text;
		uint64_t number; /* 0: refused */
	} cases[] = {
		{ "1", 1 },
		{ "10K", 10 << 10 },
		{ "3M", 3 << 20 },
		{ "2G", UINT64_C(2) << 30 },
		{ "0", 0 },
		{ "+1", 0 },
		{ "-1", 0 },
		{ "1KK", 0 },
		{ "1x", 0 },
		{ "x", 0 },
		{ "17179869183G", UINT64_C(17179869183) << 30 },
		{ "17179869184G", 0 },
		{ "18446744073709551616", 0 },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		char words[64];

		snprintf(words, sizeof words, "list --limit=%s", cases[i].text);
		assert_int_equal(open_words(words), cases[i].number ? 0 : QUERY_EXIT_USAGE);
		if (cases[i].number)
			assert_int_equal(query.limit, cases[i].number);
	}
}

static void wrong_words_are_refused(void **state)
{
	static const char *const words[] = {
		"",
		"list --rate x",
		"list --after x",
		"list --since yesterday",
		"list --before 2026-11-22x",
		"list --since 1969-12-31",
		"list --unknown",
		"list --limit",
		"list -xy",
	};
	char many[1024] = "list";

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(words); i++)
		assert_int_equal(open_words(words[i]), QUERY_EXIT_USAGE);
	for (unsigned i = 1; i < QUERY_WORDS_MAX - 1; i++)
		strcat(many, " a");
	assert_int_equal(open_words(many), 0);
	strcat(many, " a");
	assert_int_equal(open_words(many), QUERY_EXIT_USAGE);
}

/* Both bounds are left out: --since is behind the millisecond before, and --before is the first id
 * of its millisecond. */
static void times_are_bounds_of_ids(void **state)
{
	char since[ULID_LENGTH + 1], before[ULID_LENGTH + 1];

	(void)state;
	assert_int_equal(open_words("list --since 2026-11-22 --before 2026-11-22T11:40:05Z"), 0);
	ulid_bound(UINT64_C(1795305599999), 'Z', since);
	ulid_bound(UINT64_C(1795347605000), '0', before);
	assert_string_equal(query.after, since);
	assert_string_equal(query.before, before);
	assert_int_equal(open_words("list --since 1970-01-01"), 0);
	assert_string_equal(query.after, "");
	assert_int_equal(open_words("list --since 2d --before 1h"), 0);
	ulid_new(before);
	int64_t age = ulid_time(before) - ulid_time(query.after);

	assert_true(age >= 2 * 86400 && age < 2 * 86400 + 60);
	age = ulid_time(before) - ulid_time(query.before);
	assert_true(age >= 3600 && age < 3660);
}

static void what_is_not_a_store_is_refused(void **state)
{
	(void)state;
	strcat(conf.server.root, "/.spool");
	assert_int_equal(open_words("list"), EXIT_FAILURE);
	*strrchr(conf.server.root, '/') = '\0';
	assert_int_equal(open_words("list"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_have_their_effect),
		cmocka_unit_test(numbers_have_units_and_do_not_overflow),
		cmocka_unit_test(wrong_words_are_refused),
		cmocka_unit_test(times_are_bounds_of_ids),
		cmocka_unit_test(what_is_not_a_store_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
