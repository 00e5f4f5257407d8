/* test_options.c - command lines, and what they ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/options.h"

#define WORDS_MAX 12

static struct options options;
static char line[200], *words[WORDS_MAX + 1];

/* Parses the words between spaces. Returns the exit status. */
static int parse(const char *text)
{
	int count = 0;
	char *at = line;

	options_fini(&options);
	assert_true(strlen(text) < sizeof line);
	memcpy(line, text, strlen(text) + 1);
	memset(words, 0, sizeof words);
	for (char *word; (word = strsep(&at, " "));) {
		assert_true(count < WORDS_MAX);
		words[count++] = word;
	}
	return options_parse(&options, count, words);
}

static void check_words(enum verb verb, const char *first, size_t count)
{
	assert_int_equal(options.verb, verb);
	assert_int_equal(options.word_count, count);
	assert_string_equal(options.words[0], first);
}

static void options_are_taken(void **state)
{
	(void)state;
	assert_int_equal(parse("darkroomd"), 0);
	assert_int_equal(options.verb, VERB_RUN);
	assert_null(options.config_path);
	assert_int_equal(parse("darkroomd -c file -o a=1 -ob=2 -q --trace t"), 0);
	assert_int_equal(options.verb, VERB_RUN);
	assert_string_equal(options.config_path, "file");
	assert_int_equal(options.override_count, 2);
	assert_string_equal(options.overrides[0], "a=1");
	assert_string_equal(options.overrides[1], "b=2");
	assert_true(options.quiet);
	assert_string_equal(options.trace, "t");
	assert_int_equal(parse("darkroomd -VV"), 0);
	assert_int_equal(options.verb, VERB_VERSION);
	assert_true(options.verbose);
}

static void the_last_of_several_verbs_wins(void **state)
{
	(void)state;
	assert_int_equal(parse("darkroomd -t -T"), 0);
	assert_int_equal(options.verb, VERB_DUMP);
	assert_int_equal(parse("darkroomd -T -t"), 0);
	assert_int_equal(options.verb, VERB_DUMP);
	assert_int_equal(parse("darkroomd --help --nothing"), 0);
	assert_int_equal(options.verb, VERB_HELP);
	assert_int_equal(parse("darkroomd token -t x"), 0);
	assert_int_equal(options.verb, VERB_TOKEN);
}

static void keys_are_those_of_operators_or_all(void **state)
{
	(void)state;
	assert_int_equal(parse("darkroomd --keys"), 0);
	assert_int_equal(options.verb, VERB_KEYS);
	assert_false(options.all_keys);
	assert_int_equal(parse("darkroomd --keys=all"), 0);
	assert_int_equal(options.verb, VERB_KEYS);
	assert_true(options.all_keys);
}

static void commands_have_their_words(void **state)
{
	(void)state;
	assert_int_equal(parse("darkroomd -c file store list -n 5 -c x"), 0);
	check_words(VERB_STORE, "list", 5);
	assert_string_equal(options.config_path, "file");
	assert_int_equal(parse("darkroomd ctl set a=1 -c file"), 0);
	check_words(VERB_CTL, "set", 2);
	assert_string_equal(options.config_path, "file");
	assert_int_equal(parse("darkroomd token me upload"), 0);
	check_words(VERB_TOKEN, "me", 2);
	assert_int_equal(parse("darkroomd ctl top --once"), 0);
	assert_int_equal(options.verb, VERB_TOP);
	assert_true(options.once);
}

static void wrong_lines_are_refused(void **state)
{
	static const char *const lines[] = {
		"darkroomd --nothing",    "darkroomd -c",        "darkroomd word",
		"darkroomd store",        "darkroomd ctl",       "darkroomd ctl top more",
		"darkroomd ctl x --once", "darkroomd -t --once", "darkroomd --keys=some",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (parse(lines[i]) != OPTIONS_EXIT_USAGE)
			fail_msg("%s is not refused", lines[i]);
}

static int tear_down(void **state)
{
	(void)state;
	options_fini(&options);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_taken),
		cmocka_unit_test(the_last_of_several_verbs_wins),
		cmocka_unit_test(keys_are_those_of_operators_or_all),
		cmocka_unit_test(commands_have_their_words),
		cmocka_unit_test(wrong_lines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
