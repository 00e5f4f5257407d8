/* test_top.c - the table of ctl top without a terminal: which documents it takes, and its lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/top.c"

static struct history history;
static char table[65536];

/* Adds a document of two stages; n: images so far. */
static void add_document(double uptime_s, unsigned n)
{
	char json[4096];
	int length = snprintf(
		json, sizeof json,
		"{\"uptime_s\": %.1f, \"draining\": false, \"images\": {\"in_flight\": 3, "
		"\"stored\": %u}, \"overload\": {\"degrade\": [{\"step\": \"a\", \"images\": 7}, "
		"{\"step\": \"b\", \"images\": 5}]}, \"http\": {\"connections\": 1, "
		"\"rejections\": {\"overloaded\": %u, \"too-large\": 1}, \"uploads\": "
		"{\"buckets\": [{\"below_ms\": 10, \"count\": %u}, {\"below_ms\": 100, \"count\": "
		"%u}]}}, \"memory\": {\"budget_bytes\": 104857600, \"reserved_body_bytes\": "
		"1048576, \"reserved_image_bytes\": 2097152}, \"stages\": [{\"name\": \"early\", "
		"\"queued\": %u, \"events\": %u, \"service\": {\"count\": %u, \"sum_ms\": %u}}, "
		"{\"name\": \"late\", \"queued\": 0, \"events\": %u, \"service\": {\"count\": %u, "
		"\"sum_ms\": %u}}], \"scheduler\": {\"policy\": \"drain\"}}",
		uptime_s, n, 2 * n, 9 * n, n, n / 10, n, n, 4 * n, 2 * n, 2 * n, 20 * n);

	assert_in_range(length, 1, sizeof json - 1);
	assert_int_equal(history_add(&history, json), 0);
}

/* Draws, and returns the line that begins with the word. */
static const char *line_of(const char *word)
{
	struct text to;

	text_init(&to, table, sizeof table);
	put_table(&history, &to);
	assert_false(to.overflowed);
	for (char *line = strtok(table, "\n"); line; line = strtok(NULL, "\n"))
		if (strncmp(line, word, strlen(word)) == 0)
			return line;
	fail_msg("no line of %s", word);
	return NULL;
}

static int drop_documents(void **state)
{
	(void)state;
	history_clear(&history);
	return 0;
}

static void rates_are_those_of_the_last_five_seconds(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= 20; i++)
		add_document(100 + i / 2.0, i < 10 ? 0 : 20 * (i - 10));
	assert_string_equal(line_of("early"), "early              20       44       40       4"
	                                      "   0.16          200");
	assert_string_equal(line_of("late"), "late                0       80       80      10"
	                                     "   0.80          400");
	assert_string_equal(line_of("40 "),
	                    "40 images/s   200 stored   3 in flight   memory 3 of 100 MiB");
	/* The second step of degradation contains the first. */
	assert_string_equal(line_of("rejected"), "rejected 80/s, 401 in all   degraded 7");
	assert_string_equal(line_of("     400"), "     400  overloaded");
	assert_string_equal(line_of("       1"), "       1  too-large");
}

static void percentiles_are_those_of_new_uploads(void **state)
{
	(void)state;
	add_document(1, 10);
	assert_string_equal(line_of("uploads"), "uploads of the last 0 s: p50 -, p90 -, p99 - ms");
	add_document(2, 10);
	assert_string_equal(line_of("uploads"), "uploads of the last 1 s: p50 -, p90 -, p99 - ms");
	add_document(3, 30);
	assert_string_equal(line_of("uploads"),
	                    "uploads of the last 2 s: p50 9.20, p90 9.20, p99 92 ms");
}

static void restart_drops_what_was_before(void **state)
{
	(void)state;
	add_document(1000, 500);
	add_document(1, 20);
	assert_int_equal(history.count, 1);
	assert_non_null(line_of("0 images/s"));
	add_document(2, 30);
	assert_non_null(line_of("10 images/s"));
}

static void check_uptime(double uptime_s, const char *expected)
{
	history_clear(&history);
	add_document(uptime_s, 0);
	assert_string_equal(line_of("darkroomd"), expected);
}

static void uptime_is_in_hours_and_minutes(void **state)
{
	(void)state;
	check_uptime(59.9, "darkroomd: policy drain, up 0:00 h, 1 connection");
	check_uptime(119 * 60 + 59, "darkroomd: policy drain, up 1:59 h, 1 connection");
	check_uptime(48 * 3600 + 60, "darkroomd: policy drain, up 48:01 h, 1 connection");
}

static void nothing_of_a_document_controls_the_terminal(void **state)
{
	struct text to;

	(void)state;
	assert_int_equal(history_add(&history,
	                             "{\"stages\": [{\"name\": \"\\u001b[2J\"}, {\"name\": "
	                             "\"\xC2\x9B\"}], \"http\": {\"rejections\": "
	                             "{\"\\u001b\": 1}}, \"scheduler\": {\"policy\": \"x\"}}"),
	                 0);
	text_init(&to, table, sizeof table);
	put_table(&history, &to);
	assert_true(to.length > 0);
	for (size_t i = 0; i < to.length; i++)
		assert_true(table[i] == '\n' || (table[i] >= 0x20 && table[i] < 0x7F));
}

static void damaged_documents_are_refused(void **state)
{
	static const char *const bad[] = { "",
		                           "{",
		                           "[]",
		                           "{}",
		                           "null",
		                           "{\"stages\": [{}]}",
		                           "{\"stages\": 5, \"scheduler\": {\"policy\": \"x\"}}",
		                           "{\"scheduler\": {\"policy\": \"x\"}, \"stages\": []}" };
	static const char *const odd[] = {
		"{\"stages\": [5], \"scheduler\": {\"policy\": \"x\"}}",
		"{\"stages\": [{\"name\": \"a\", \"service\": []}], \"scheduler\": {\"policy\": "
		"\"x\", \"groups\": 3}, \"http\": {\"rejections\": {\"a\": 1e999, \"b\": 2}, "
		"\"uploads\": []}, \"overload\": 1}"
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_not_equal(history_add(&history, bad[i]), 0);
	assert_int_equal(history.count, 0);
	for (size_t i = 0; i < COUNT_OF(odd); i++)
		assert_int_equal(history_add(&history, odd[i]), 0);
	assert_non_null(line_of("rejected 0/s, 2 in all"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(rates_are_those_of_the_last_five_seconds, drop_documents),
		cmocka_unit_test_teardown(percentiles_are_those_of_new_uploads, drop_documents),
		cmocka_unit_test_teardown(restart_drops_what_was_before, drop_documents),
		cmocka_unit_test_teardown(uptime_is_in_hours_and_minutes, drop_documents),
		cmocka_unit_test_teardown(nothing_of_a_document_controls_the_terminal,
		                          drop_documents),
		cmocka_unit_test_teardown(damaged_documents_are_refused, drop_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
