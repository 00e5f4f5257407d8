/*
 * test_top.c - ctl top without a terminal: reading documents, rates, sorting, and lines of every
 * width.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "daemon/top_table.h"

static struct top_history history;
static struct top_figures figures;
static struct top_table table;

/* A document of two stages and two threads; n: images so far. */
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
		"\"threads\": 1, \"queued\": %u, \"events\": %u, \"service\": {\"count\": %u, "
		"\"sum_ms\": %u}}, {\"name\": \"late\", \"threads\": 2, \"queued\": 0, \"events\": "
		"%u, \"service\": {\"count\": %u, \"sum_ms\": %u}}], \"scheduler\": {\"policy\": "
		"\"drain\", \"groups\": [{\"name\": \"io\", \"workers\": [{\"stages\": {}}]}, "
		"{\"name\": \"main\", \"workers\": [{\"core\": 5, \"stages\": {\"early\": "
		"{\"busy_ms\": %u}, \"late\": {\"busy_ms\": %u}}}]}]}}",
		uptime_s, n, 2 * n, 9 * n, n, n / 10, n, n, 4 * n, 2 * n, 2 * n, 20 * n, 4 * n,
		20 * n);

	assert_in_range(length, 1, sizeof json - 1);
	assert_true(top_document_read(top_history_place(&history), json, (size_t)length));
	top_history_add(&history);
}

static int set_up(void **state)
{
	(void)state;
	memset(&history, 0, sizeof history);
	return 0;
}

#define assert_near(a, b) assert_true((a) - (b) < 1e-6 && (b) - (a) < 1e-6)

static void rates_are_those_of_the_last_two_seconds(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= 10; i++)
		add_document(100 + i / 2.0, i < 6 ? 0 : 20 * (i - 6));
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	assert_near(figures.images_per_s, 40);
	assert_near(figures.rejected_per_s, 80);
	assert_string_equal(figures.stage[0].name, "early");
	assert_int_equal(figures.stage[0].queued, 8);
	assert_near(figures.stage[0].out_per_s, 40);
	assert_near(figures.stage[0].in_per_s, 44);
	assert_near(figures.stage[0].service_ms, 4);
	assert_near(figures.stage[0].busy, 0.16);
	assert_near(figures.stage[1].busy, 0.4); /* of two threads */
	assert_int_equal(figures.now->rejected, 161);
	assert_int_equal(figures.now->degraded, 7); /* the second step contains the first */
	assert_int_equal(figures.now->memory_bytes, 3 << 20);
}

static void thread_is_in_the_stage_with_most_of_its_time(void **state)
{
	(void)state;
	add_document(1, 0);
	add_document(2, 30);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	assert_int_equal(figures.now->thread_count, 2);
	assert_string_equal(figures.thread[0].name, "io 0");
	assert_string_equal(figures.thread[0].most, "");
	assert_string_equal(figures.thread[1].name, "core 5");
	assert_string_equal(figures.thread[1].most, "late");
	assert_near(figures.thread[1].busy, 0.72);
	assert_int_equal(figures.stage[0].thread_count, 0);
	assert_int_equal(figures.stage[1].thread_count, 1);
	assert_string_equal(figures.stage[1].thread[0], "core 5");
}

static void percentiles_are_those_of_new_uploads(void **state)
{
	(void)state;
	add_document(1, 10);
	add_document(2, 10);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	assert_true(figures.p50_ms < 0 && figures.p99_ms < 0);
	add_document(3, 30);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	assert_near(figures.p50_ms, 9.2);
	assert_near(figures.p99_ms, 92);
}

static void restart_drops_what_was_before(void **state)
{
	(void)state;
	add_document(1000, 500);
	add_document(1, 20);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	assert_int_equal(history.count, 1);
	assert_near(figures.images_per_s, 0);
	add_document(2, 30);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	assert_near(figures.images_per_s, 10);
}

static void stages_are_sorted_by_every_column(void **state)
{
	(void)state;
	add_document(1, 0);
	add_document(2, 30);
	for (enum top_order order = TOP_BY_PIPELINE; order < TOP_ORDER_COUNT; order++) {
		bool is_late_first = order != TOP_BY_PIPELINE && order != TOP_BY_QUEUE;

		for (int reversed = 0; reversed < 2; reversed++) {
			top_figures(&history, order, reversed, &figures);
			assert_string_equal(figures.stage[0].name,
			                    is_late_first != (bool)reversed ? "late" : "early");
		}
	}
}

/* Returns the columns of a text, of which no character is a part. */
static int columns_of(const char *text)
{
	int columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xC0) != 0x80;
	return columns;
}

static void lines_fit_every_width(void **state)
{
	struct top_line title;

	(void)state;
	add_document(1, 0);
	add_document(2, 1000000);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	for (int width = 0; width < 2 * TOP_WIDTH_MAX; width++) {
		for (int utf8 = 0; utf8 < 2; utf8++) {
			const struct top_look look = { width, utf8, width % 2 };
			int room = width < TOP_WIDTH_MIN   ? TOP_WIDTH_MIN
			           : width > TOP_WIDTH_MAX ? TOP_WIDTH_MAX
			                                   : width;

			top_title(&figures, look, &title);
			top_table(&figures, look, &table);
			assert_in_range(columns_of(title.text), 1, room);
			for (unsigned i = 0; i < table.count; i++)
				assert_in_range(columns_of(table.line[i].text), 0, room);
		}
	}
}

static void check_uptime(double uptime_s, const char *expected)
{
	struct top_line title;

	set_up(NULL);
	add_document(uptime_s, 0);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	top_title(&figures, (struct top_look){ 200, false, false }, &title);
	if (!strstr(title.text, expected))
		fail_msg("%.0f s: no '%s' in '%s'", uptime_s, expected, title.text);
}

static void uptime_has_one_unit(void **state)
{
	(void)state;
	check_uptime(59.9, " 59 s");
	check_uptime(60, " 1 min");
	check_uptime(119 * 60 + 59, " 119 min");
	check_uptime(120 * 60, " 2 h");
	check_uptime(48 * 3600 - 1, " 47 h");
	check_uptime(48 * 3600, " 2 days");
}

/* Returns the first line that begins with the word. */
static const struct top_line *line_of(const char *word)
{
	for (unsigned i = 0; i < table.count; i++)
		if (strncmp(table.line[i].text, word, strlen(word)) == 0)
			return &table.line[i];
	fail_msg("no line of %s", word);
	return NULL;
}

static void narrow_table_has_the_most_important_columns(void **state)
{
	(void)state;
	add_document(1, 0);
	add_document(2, 30);
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	top_table(&figures, (struct top_look){ 80, false, false }, &table);
	assert_string_equal(line_of("late ")->text, "late              0      60      60     10"
	                                            "  30 %          60  core 5");
	top_table(&figures, (struct top_look){ 27, false, false }, &table);
	assert_string_equal(line_of("late ")->text, "late              0  30 %");
	assert_int_equal(line_of("stage")->style, TOP_HEAD);
	assert_string_equal(line_of("      60")->text, "      60  overloaded");
}

static void bar_is_as_long_as_the_share(void **state)
{
	(void)state;
	add_document(1, 0);
	add_document(2, 30); /* 72 %, of a bar of 40 columns */
	top_figures(&history, TOP_BY_PIPELINE, false, &figures);
	top_table(&figures, (struct top_look){ 100, false, false }, &table);
	assert_string_equal(strchr(line_of("core 5")->text, '#'),
	                    "#############################            late");
	top_table(&figures, (struct top_look){ 100, true, false }, &table);
	/* 230 of 320 eighths: 28 blocks and six eighths */
	const char *bar = strchr(line_of("core 5")->text, '%') + 3;

	for (int i = 0; i < 28; i++, bar += 3)
		assert_memory_equal(bar, "\xE2\x96\x88", 3);
	assert_memory_equal(bar, "\xE2\x96\x8A ", 4);
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
		"\"x\", \"groups\": [1, {\"workers\": [2, {\"stages\": 3}]}]}, \"http\": "
		"{\"rejections\": {\"a\": -1, \"b\": 2}, \"uploads\": []}, \"overload\": 1}"
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_false(
			top_document_read(top_history_place(&history), bad[i], strlen(bad[i])));
	for (size_t i = 0; i < COUNT_OF(odd); i++) {
		assert_true(top_document_read(top_history_place(&history), odd[i], strlen(odd[i])));
		top_history_add(&history);
		top_figures(&history, TOP_BY_BUSY, false, &figures);
		top_table(&figures, (struct top_look){ 80, true, false }, &table);
	}
	assert_int_equal(figures.now->rejected, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rates_are_those_of_the_last_two_seconds, set_up),
		cmocka_unit_test_setup(thread_is_in_the_stage_with_most_of_its_time, set_up),
		cmocka_unit_test_setup(percentiles_are_those_of_new_uploads, set_up),
		cmocka_unit_test_setup(restart_drops_what_was_before, set_up),
		cmocka_unit_test_setup(stages_are_sorted_by_every_column, set_up),
		cmocka_unit_test_setup(lines_fit_every_width, set_up),
		cmocka_unit_test(uptime_has_one_unit),
		cmocka_unit_test_setup(narrow_table_has_the_most_important_columns, set_up),
		cmocka_unit_test_setup(bar_is_as_long_as_the_share, set_up),
		cmocka_unit_test_setup(damaged_documents_are_refused, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
