/* test_store_query_walk.c - the images that the options of darkroomd store select. */
#include "support/query_harness.h"

static unsigned seen;

static int see(struct store_query *q, const char *id, void *arg)
{
	const unsigned *expected = arg;

	assert_ptr_equal(q, &query);
	assert_string_equal(id, ids[expected[seen++]]);
	return 0;
}

/* The words must select exactly these images, in this order. */
static void check(const char *words, const unsigned *expected, unsigned count)
{
	unsigned before = open_descriptors();

	assert_int_equal(open_words(words), 0);
	seen = 0;
	assert_int_equal(store_query_each(&query, see, (void *)(uintptr_t)expected), 0);
	assert_int_equal(seen, count);
	store_query_close(&query);
	assert_int_equal(open_descriptors(), before);
}

#define CHECK(words, ...)                                                   \
	do {                                                                \
		const unsigned expected[] = { __VA_ARGS__ };                \
		check(words, expected, sizeof expected / sizeof *expected); \
	} while (0)

static void images_are_listed_in_order(void **state)
{
	char words[128];

	(void)state;
	CHECK("list", 0, 1, 2, 3, 4, 5, 6);
	CHECK("list --newest", 6, 5, 4, 3, 2, 1, 0);
	CHECK("list --limit 3", 0, 1, 2);
	CHECK("list --limit 1", 0);
	CHECK("list --limit 2", 0, 1);
	CHECK("list --limit 4", 0, 1, 2, 3);
	CHECK("list --limit 7", 0, 1, 2, 3, 4, 5, 6);
	CHECK("list --limit 8", 0, 1, 2, 3, 4, 5, 6);
	snprintf(words, sizeof words, "list --after %s", ids[2]);
	CHECK(words, 3, 4, 5, 6);
	snprintf(words, sizeof words, "list --newest --after %s", ids[2]);
	CHECK(words, 1, 0);
	fake_time = (struct timespec){ NOW_MS / MS_PER_S + 5, 0 };
	CHECK("list --since 2s", 3, 4, 5, 6);
	CHECK("list --before 2s", 0, 1, 2);
	CHECK("list --since 3s --before 1s --newest", 3, 2);
}

static void pages_are_read_only_up_to_the_limit(void **state)
{
	static const struct {
		const char *words;
		unsigned reads;
	} cases[] = {
		{ "list", 3 },           { "list --limit 2", 1 }, { "list --limit 3", 1 },
		{ "list --limit 4", 2 }, { "list --limit 6", 2 },
	};
	static const unsigned all[] = { 0, 1, 2, 3, 4, 5, 6 };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		assert_int_equal(open_words(cases[i].words), 0);
		seen = page_reads = 0;
		assert_int_equal(store_query_each(&query, see, (void *)(uintptr_t)all), 0);
		assert_int_equal(page_reads, cases[i].reads);
		store_query_close(&query);
	}
}

/* What stands behind the id is a comment, however long it is. */
static void lines_may_be_long(void **state)
{
	char command[256], words[128];

	(void)state;
	snprintf(command, sizeof command,
	         "{ printf '#%%0999d %s\n' 0; printf '%s %%0126d %s\n%s' 0; } > lines", ids[1],
	         ids[4], ids[1], ids[2]);
	shell(command);
	snprintf(words, sizeof words, "find --ids %s/lines", root);
	CHECK(words, 4, 2);
}

static void words_and_lines_are_ids(void **state)
{
	char words[512];

	(void)state;
	snprintf(words, sizeof words, "find %s %s", ids[5], ids[1]);
	CHECK(words, 5, 1);
	snprintf(words, sizeof words, "printf '# x\\n%s comment\\n\\n \\n%s\\t\\r\\n%s' > lines",
	         ids[4], ids[2], ids[0]);
	shell(words);
	snprintf(words, sizeof words, "find --ids %s/lines %s", root, ids[1]);
	CHECK(words, 4, 2, 0);
	assert_non_null(freopen("/dev/null", "r", stdin));
	assert_int_equal(open_words("find --ids -"), 0);
	assert_int_equal(store_query_each(&query, see, NULL), 0);
	store_query_close(&query);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

static int status_of_each(const char *words)
{
	static const unsigned expected[] = { 0, 1, 2 };

	assert_int_equal(open_words(words), 0);
	seen = 0;
	catch_begin();
	int status = store_query_each(&query, see, (void *)(uintptr_t)expected);

	catch_end();
	store_query_close(&query);
	return status;
}

static void what_is_not_an_id_ends_the_walk(void **state)
{
	char words[512];

	(void)state;
	snprintf(words, sizeof words, "find %s x %s", ids[0], ids[1]);
	assert_int_equal(status_of_each(words), QUERY_EXIT_USAGE);
	assert_int_equal(seen, 1);
	snprintf(words, sizeof words, "printf '%s\\nx\\n%s\\n' > lines", ids[0], ids[1]);
	shell(words);
	snprintf(words, sizeof words, "find --ids %s/lines", root);
	assert_int_equal(status_of_each(words), QUERY_EXIT_USAGE);
	assert_int_equal(seen, 1);
	snprintf(words, sizeof words, "find --ids %s/none", root);
	assert_int_equal(status_of_each(words), EXIT_FAILURE);
	assert_non_null(strstr(out, "No such file"));
	snprintf(words, sizeof words, "find --ids %s", root);
	assert_int_equal(status_of_each(words), EXIT_FAILURE);
	assert_non_null(strstr(out, "Is a directory"));
}

static int stop(struct store_query *q, const char *id, void *arg)
{
	unsigned *count = arg;

	(void)q;
	(void)id;
	return ++*count == 2 ? 55 : 0;
}

static void a_status_ends_the_walk(void **state)
{
	char words[3][256];

	(void)state;
	strcpy(words[0], "list");
	snprintf(words[1], sizeof words[1], "find %s %s %s", ids[0], ids[1], ids[2]);
	char command[256];

	snprintf(command, sizeof command, "printf '%s\\n%s\\n%s\\n' > lines", ids[0], ids[1],
	         ids[2]);
	shell(command);
	snprintf(words[2], sizeof words[2], "find --ids %s/lines", root);
	for (unsigned i = 0; i < 3; i++) {
		unsigned count = 0;

		assert_int_equal(open_words(words[i]), 0);
		assert_int_equal(store_query_each(&query, stop, &count), 55);
		assert_int_equal(count, 2);
		store_query_close(&query);
	}
}

static void a_list_that_fails_is_reported(void **state)
{
	(void)state;
	assert_int_equal(open_words("list"), 0);
	int fd = query.store.root_fd;

	query.store.root_fd = -1;
	unsigned count = 0;

	catch_begin();
	assert_int_equal(store_query_each(&query, stop, &count), EXIT_FAILURE);
	catch_end();
	assert_non_null(strstr(out, root));
	assert_int_equal(count, 0);
	query.store.root_fd = fd;
	catch_begin();
	fails_malloc = true;
	assert_int_equal(store_query_each(&query, stop, &count), EXIT_FAILURE);
	fails_malloc = false;
	catch_end();
	assert_string_equal(out, "darkroomd store: list: Cannot allocate memory\n");
	assert_int_equal(count, 0);
	store_query_close(&query);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_are_listed_in_order),
		cmocka_unit_test(pages_are_read_only_up_to_the_limit),
		cmocka_unit_test(lines_may_be_long),
		cmocka_unit_test(words_and_lines_are_ids),
		cmocka_unit_test(what_is_not_an_id_ends_the_walk),
		cmocka_unit_test(a_status_ends_the_walk),
		cmocka_unit_test(a_list_that_fails_is_reported),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
