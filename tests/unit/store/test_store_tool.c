/* test_store_tool.c - which command runs, its help, and its exit status. */
#include "support/text_streams.h"

#include <stdbool.h>

#include "base/check.h"
#include "conf/conf.h"
#include "store/store_query.h"

static int open_status, run_status, usages, closed;
static const char *ran; /* the command */
static char usage[256];
static bool fails_fflush, has_failed;

static int fake_open(struct store_query *q, const struct conf *conf, store_ask *ask,
                     char *const *words, size_t count)
{
	assert_non_null(q);
	assert_true(conf && !ask && words);
	assert_int_equal(count, 1);
	return open_status;
}

static void fake_close(struct store_query *q)
{
	assert_non_null(q);
	closed++;
}

static int fake_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(usage, sizeof usage, format, args);
	va_end(args);
	usages++;
	return QUERY_EXIT_USAGE;
}

#define COMMAND(name)                                 \
	static int fake_##name(struct store_query *q) \
	{                                             \
		assert_non_null(q);                   \
		ran = #name;                          \
		return run_status;                    \
	}
COMMAND(store_list)
COMMAND(store_find_images)
COMMAND(store_count)
COMMAND(store_delete)
COMMAND(store_audit)
COMMAND(store_plan)
COMMAND(store_remake)
COMMAND(store_export)
COMMAND(store_import)

#include "store/store_commands.h"
#define store_list fake_store_list
#define store_find_images fake_store_find_images
#define store_count fake_store_count
#define store_delete fake_store_delete
#define store_audit fake_store_audit
#define store_plan fake_store_plan
#define store_remake fake_store_remake
#define store_export fake_store_export
#define store_import fake_store_import
#define store_query_open fake_open
#define store_query_close fake_close
#define store_query_usage fake_usage
#define fflush(f) (fails_fflush ? -1 : fflush(f))
#undef ferror
#define ferror(f) (has_failed || (ferror)(f))
#include "store/store_tool.c"

static struct conf conf;

static int setup(void **state)
{
	(void)state;
	open_streams();
	open_status = run_status = usages = closed = 0;
	fails_fflush = has_failed = false;
	ran = "";
	conf.store.kind = CONF_STORE_FILE;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_streams();
	return 0;
}

static int run(const char *name)
{
	char word[16];
	char *const words[] = { word };

	snprintf(word, sizeof word, "%s", name);
	ran = "";
	return store_tool(&conf, NULL, words, 1);
}

static void each_command_runs(void **state)
{
	static const char *const names[][2] = {
		{ "list", "store_list" },     { "find", "store_find_images" },
		{ "count", "store_count" },   { "remove", "store_delete" },
		{ "check", "store_audit" },   { "plan", "store_plan" },
		{ "remake", "store_remake" }, { "export", "store_export" },
		{ "import", "store_import" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		run_status = (int)i;
		assert_int_equal(run(names[i][0]), i);
		assert_string_equal(ran, names[i][1]);
		assert_int_equal(closed, i + 1);
	}
	assert_int_equal(usages, 0);
}

static void a_store_that_is_not_opened_is_left(void **state)
{
	(void)state;
	open_status = 5;
	assert_int_equal(run("list"), 5);
	assert_string_equal(ran, "");
	assert_int_equal(closed, 1);
}

static void other_commands_are_refused(void **state)
{
	(void)state;
	assert_int_equal(run("lis"), QUERY_EXIT_USAGE);
	assert_int_equal(usages, 1);
	assert_string_equal(usage, "lis: expected list, find, count, remove, check, plan, remake, "
	                           "export or import");
	conf.store.kind = CONF_STORE_S3;
	assert_int_equal(run("list"), QUERY_EXIT_USAGE);
	assert_int_equal(usages, 2);
	assert_int_equal(closed, 0);
	assert_string_equal(ran, "");
}

static void output_that_is_not_written_is_a_failure(void **state)
{
	(void)state;
	run_status = 3;
	fails_fflush = true;
	assert_int_equal(run("list"), EXIT_FAILURE);
	fails_fflush = false;
	check_written("", "darkroomd store: standard output: error\n");
	has_failed = true;
	assert_int_equal(run("list"), EXIT_FAILURE);
	has_failed = false;
	check_written("", "darkroomd store: standard output: error\n");
	assert_int_equal(run("list"), 3);
}

static bool help(const char *first, const char *second)
{
	char one[16], two[16];
	char *const words[] = { one, two };

	snprintf(one, sizeof one, "%s", first);
	snprintf(two, sizeof two, "%s", second);
	return store_tool_help(words, 2);
}

#define SEE "See darkroom-store(7).\n"

static void help_is_for_a_command_or_all(void **state)
{
	static const char all[] =
		"usage: darkroomd [-c FILE] store COMMAND [OPTION...]\n\nCommands: list find count "
		"remove check plan remake export import\n'store COMMAND --help' has the options of "
		"one.\n" SEE;

	(void)state;
	assert_false(help("list", "help"));
	check_written("", "");
	assert_true(help("import", "--help"));
	check_written("usage: darkroomd [-c FILE] store import [OPTION...]\n\nStores the images of "
	              "such an archive, from standard input.\n\n  --dry-run                print "
	              "the ids, and do nothing\n" SEE,
	              "");
	assert_true(help("-h", "x"));
	check_written(all, "");
	assert_true(help("what", "-h"));
	check_written(all, "");
	assert_true(help("-h", "--help"));
	check_written(all, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_command_runs),
		TEST(a_store_that_is_not_opened_is_left),
		TEST(other_commands_are_refused),
		TEST(output_that_is_not_written_is_a_failure),
		TEST(help_is_for_a_command_or_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
