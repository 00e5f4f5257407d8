/* test_store_query.c - options, times, and the images that they select. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct timespec fake_time;

static int gettime_fake(clockid_t clock, struct timespec *to)
{
	assert_int_equal(clock, CLOCK_REALTIME);
	*to = fake_time;
	return 0;
}

#define clock_gettime gettime_fake
#include "store/store_query.c"

#include "store/store_path.h"

#define COUNT 7
#define NOW_MS (UINT64_C(1763800000) * MS_PER_S)

static struct conf conf;
static struct store_query query;
static char root[64], ids[COUNT][ULID_LENGTH + 1], out[16384];
static int saved_stderr;
static unsigned seen;

static int ask_nobody(const struct conf *of, const char *line, struct text *answer)
{
	(void)of;
	(void)line;
	(void)answer;
	return -1;
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void shell(const char *command)
{
	char line[512];

	snprintf(line, sizeof line, "cd %s && %s", root, command);
	assert_int_equal(system(line), 0);
}

/* Images at 0, 1, ... s after NOW_MS, one of them as earlier versions made them. */
static int setup_all(void **state)
{
	struct store store;
	unsigned cleared;

	(void)state;
	snprintf(root, sizeof root, "/tmp/darkroom-query-XXXXXX");
	if (!mkdtemp(root) || store_open(&store, root, false, &cleared))
		return -1;
	store_close(&store);
	strcpy(conf.server.root, root);
	for (unsigned i = 0; i < COUNT; i++) {
		char command[128], path[STORE_PATH_MAX];

		ulid_bound(NOW_MS + i * MS_PER_S, 'A', ids[i]);
		store_image_path(path, i == 3 ? STORE_BY_TAIL : STORE_BY_TIME, ids[i], NULL);
		snprintf(command, sizeof command, "mkdir -p %s", path);
		shell(command);
	}
	return 0;
}

static int teardown_all(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

/* Standard error goes to a file until catch_end(). */
static void catch_begin(void)
{
	char path[128];

	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	snprintf(path, sizeof path, "%s/stderr", root);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
}

static void catch_end(void)
{
	fflush(stderr);
	ssize_t n = pread(STDERR_FILENO, out, sizeof out - 1, 0);

	out[n > 0 ? n : 0] = '\0';
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
}

/* Opens a query of these words, separated by spaces. Returns the status. */
static int open_words(const char *text)
{
	static char words[2048];
	char *word[QUERY_WORDS_MAX + 9];
	size_t count = 0;

	snprintf(words, sizeof words, "%s", text);
	for (char *p = strtok(words, " "); p; p = strtok(NULL, " "))
		word[count++] = p;
	memset(&query, 0xff, sizeof query);
	catch_begin();
	int status = store_query_open(&query, &conf, ask_nobody, word, count);

	catch_end();
	assert_int_equal(status != 0, strlen(out) > 0);
	return status;
}

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

#define CHECK(words, ...)                                                        \
	do {                                                                     \
		const unsigned expected[] = { __VA_ARGS__ };                     \
		check(words, expected, sizeof expected / sizeof *expected);      \
	} while (0)

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
		"list --limit 0",  "list --limit x", "list --rate x",  "list --since yesterday",
		"list --before x", "list --after x", "list --unknown", "list --limit",
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
}

/* ---- images ---- */

static void images_are_listed_in_order(void **state)
{
	char words[128];

	(void)state;
	CHECK("list", 0, 1, 2, 3, 4, 5, 6);
	CHECK("list --newest", 6, 5, 4, 3, 2, 1, 0);
	CHECK("list --limit 3", 0, 1, 2);
	CHECK("list --limit 1", 0);
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
		cmocka_unit_test(images_are_listed_in_order),
		cmocka_unit_test(words_and_lines_are_ids),
		cmocka_unit_test(what_is_not_an_id_ends_the_walk),
		cmocka_unit_test(a_status_ends_the_walk),
		cmocka_unit_test(a_list_that_fails_is_reported),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
