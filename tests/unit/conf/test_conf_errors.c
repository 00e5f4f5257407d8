/*
 * test_conf_errors.c - the messages about a wrong configuration, and what it cannot contain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/conf_fixture.h"

CONF_FIXTURE_STAGES

static void messages_name_place_text_and_expectation(void **state)
{
	(void)state;
	refuse(VARIANT "[server]\nlisten = foo\n",
	       "@:4: server.listen = \"foo\": expected HOST:PORT or [HOST]:PORT\n");
	refuse(VARIANT "[log]\naccess_file = access.log\n",
	       "@:4: log.access_file = \"access.log\": expected stderr, or an absolute path of at "
	       "most 255 bytes\n");
	refuse(VARIANT "[log]\naccess_file = /var/log/\n",
	       "@:4: log.access_file = \"/var/log/\": expected stderr, or an absolute path of at "
	       "most 255 bytes\n");
	refuse(VARIANT "[log]\naccess = xml\n",
	       "@:4: log.access = \"xml\": expected no, text or json\n");
	refuse(VARIANT "[server]\nlisen = foo\n",
	       "@:4: server.lisen = \"foo\": unknown key; did you mean listen? CHANGES.md names former keys\n");
	refuse(VARIANT "[server]\npolicy = cohort\n",
	       "@:4: server.policy = \"cohort\": unknown key; it belongs to [scheduler]\n");
	refuse(VARIANT "[server]\nquality = 1\n",
	       "@:4: server.quality = \"1\": unknown key; it belongs to [variant.NAME]\n");
	refuse(VARIANT "[server]\nzzzzzzz = 1\n",
	       "@:4: server.zzzzzzz = \"1\": unknown key; CHANGES.md names former keys\n");
	refuse(VARIANT "[sevrer]\nlisten = foo\nx = y\n",
	       "@:3: [sevrer]: unknown section; did you mean server?\n");
	refuse(VARIANT "[stage.blurr]\n",
	       "@:3: [stage.blurr]: unknown stage; did you mean blur?\n");
	refuse(VARIANT "[variants]\n",
	       "@:3: [variants]: unknown section; did you mean variant.NAME?\n");
	refuse(VARIANT "[stage]\nthreads = 1\n",
	       "@:3: [stage]: unknown section; did you mean stage.NAME?\n");
	refuse(VARIANT "[quite.another]\n",
	       "@:3: [quite.another]: unknown section; expected one of server, log, access, input, store, "
	       "limits, overload, scheduler, layout, group.NAME, stage.NAME, variant.NAME\n");
}

static void messages_name_an_override(void **state)
{
	(void)state;
	refuse_override("sevrer.listen=a:1",
	                "-o sevrer.listen=a:1: unknown section; did you mean server?\n");
	refuse_override(
		"server.lisen=a:1",
		"-o server.lisen=a:1: unknown key; did you mean listen? CHANGES.md names former keys\n");
	refuse_override("server.own_huffman=no",
	                "-o server.own_huffman=no: now experiment.pixel_own\n");
	refuse_override("experiment.own_huffman=no",
	                "-o experiment.own_huffman=no: now experiment.pixel_own\n");
	refuse_override(
		"scheduler.spin=10us", /* its default: a file may say so, an order may not */
		"-o scheduler.spin=10us: now experiment.spin\n");
	refuse_override("overload.increase=3",
	                "-o overload.increase=3: now experiment.welsh_increase\n");
	refuse_override("stage.blur.kind=exclusive",
	                "-o stage.blur.kind=exclusive: now experiment.blur.kind\n");
	refuse_override("listen=a:1", "-o \"listen=a:1\": expected SECTION.KEY=VALUE\n");
	refuse_override("server.listen", "-o \"server.listen\": expected SECTION.KEY=VALUE\n");
	refuse_override(".listen=x", "-o \".listen=x\": expected SECTION.KEY=VALUE\n");
	refuse_override("server.=x", "-o \"server.=x\": expected SECTION.KEY=VALUE\n");
	refuse_override("", "-o \"\": expected SECTION.KEY=VALUE\n");
}

/* So the shipped file of an earlier version, which had every key, still works. */
static void moved_keys_may_keep_their_defaults(void **state)
{
	static struct conf conf;

	(void)state;
	assert_int_equal(load(&conf, VARIANT "[scheduler]\nspin = 10us\n"
	                                     "[experiment]\nspin = 3us\n"),
	                 0);
	assert_int_equal(conf.experiment.spin_us, 3);
	refuse(VARIANT "[scheduler]\nspin = 11us\n",
	       "@:4: scheduler.spin = \"11us\": now experiment.spin\n");
	assert_int_equal(load(&conf, VARIANT "[overload]\nsamples = 100\nrate_max = 5000\n"), 0);
}

/* What merely ends as a moved key does was never its name. 32 is the default of s3_connections. */
static void keys_that_never_moved_are_unknown_with_any_value(void **state)
{
	(void)state;
	refuse(VARIANT "[overload]\nconnections = 32\n",
	       "@:4: overload.connections = \"32\": unknown key; it belongs to [limits]\n");
	refuse_override("overload.max=5000",
	                "-o overload.max=5000: unknown key; CHANGES.md names former keys\n");
	refuse_override("overload.spin=10us",
	                "-o overload.spin=10us: unknown key; it belongs to [experiment]\n");
}

static void syntax_is_checked_line_by_line(void **state)
{
	(void)state;
	refuse("listen = a:1\n" VARIANT,
	       "@:1: \"listen = a:1\": expected a [SECTION] before the first key\n");
	refuse(VARIANT "nonsense\n",
	       "@:3: \"nonsense\": expected KEY = VALUE, [SECTION] or a comment\n");
	refuse(VARIANT "x", "@:3: \"x\": expected KEY = VALUE, [SECTION] or a comment\n");
	refuse(VARIANT "= 1\n",
	       "@:3: \"= 1\": expected a key of letters, digits, '_' and '-' before the '='\n");
	refuse(VARIANT "[server\n", "@:3: \"[server\": expected [SECTION]\n");
	refuse(VARIANT "[server] x\n", "@:3: \"[server] x\": expected [SECTION]\n");
	refuse(VARIANT "[]\n",
	       "@:3: \"[]\": expected a section's name of letters, digits, '_', '-' and '.'\n");
	refuse(VARIANT "[variant.Big]\noperations = blur 1\n",
	       "@:3: \"[variant.Big]\": expected a name in lower case: it becomes part of URLs\n");
	refuse(VARIANT "[server]\nroot = \"/a\n",
	       "@:4: \"root = \"/a\": the quotation mark is not closed\n");
	refuse(VARIANT "[server]\nroot = \"/a\" b\n",
	       "@:4: \"root = \"/a\" b\": expected nothing but a comment after the closing "
	       "quotation mark\n");
	refuse(VARIANT "[server]\nroot = /a#b\n",
	       "@:4: \"root = /a#b\": expected double quotation marks around a value with ';' or "
	       "'#', or a space before a comment\n");
	refuse(VARIANT "[server]\nroot = /a\\\n/b\n",
	       "@:4: \"root = /a\\\": ends in a backslash: expected the whole value on one line\n"
	       "@:5: \"/b\": expected KEY = VALUE, [SECTION] or a comment\n");
	refuse(VARIANT "[server]\nroot = /a\nroot = /b\n",
	       "@:5: duplicate key server.root, first on line 4\n");
	refuse(VARIANT "[server]\n[SERVER]\n",
	       "@:4: duplicate section [server], first on line 3\n");
	refuse(VARIANT "[server]\nroot = /a\tb\n",
	       "@:4: server.root = \"/a?b\": expected an absolute path of at most 255 bytes\n");
}

static void hostile_bytes_are_refused(void **state)
{
	static const char zero[] = VARIANT "qual\0ity = 3\n";
	static struct conf conf;
	char *big = malloc(2 << 20);

	(void)state;
	assert_non_null(big);
	assert_int_equal(load_bytes(&conf, zero, sizeof zero - 1, NULL, 0), -22);
	assert_errors("@:3: a zero byte: expected text\n");
	memset(big, 'a', 2 << 20);
	memcpy(big, VARIANT, strlen(VARIANT));
	assert_int_equal(load_bytes(&conf, big, 2000, NULL, 0), -22);
	assert_non_null(strstr(conf_errors.data, " bytes: expected at most 1000\n"));
	assert_int_equal(load_bytes(&conf, big, 2 << 20, NULL, 0), -27);
	assert_errors("@: more than 1048576 bytes: not a configuration file\n");
	/* a line of exactly the greatest length reaches the value's own check */
	strcpy(big, VARIANT "[server]\nroot=");
	memset(big + strlen(big), 'a', 995);
	memcpy(big + strlen(VARIANT "[server]\nroot=") + 995, "\n", 2);
	assert_int_equal(load(&conf, big), -22);
	assert_non_null(
		strstr(conf_errors.data, "expected an absolute path of at most 255 bytes\n"));
	assert_true(strlen(conf_errors.data) < 300);
	free(big);
}

static void unreadable_files_are_reported(void **state)
{
	static struct conf conf;

	(void)state;
	conf_clear_errors();
	assert_int_equal(conf_load(&conf, NULL, "/nonexistent/x.ini", NULL, 0, &conf_errors), -2);
	assert_string_equal(conf_errors.data,
	                    "/nonexistent/x.ini: cannot be read: No such file or directory\n");
	conf_clear_errors();
	assert_int_equal(conf_load(&conf, NULL, "/tmp", NULL, 0, &conf_errors), -21);
	assert_string_equal(conf_errors.data, "/tmp: cannot be read: Is a directory\n");
}

static const char *place_of(const char *section, const char *key)
{
	static char data[256];
	struct text place;

	text_init(&place, data, sizeof data);
	conf_source_where(conf_last_source(), conf_source_find(conf_last_source(), section, key),
	                  &place);
	return data;
}

static void places_are_lines_or_overrides(void **state)
{
	static const char ini[] = VARIANT "[server]\n\nroot = /y\nlisten = a:1\n";
	static const char *const overrides[] = { "server.root=/x",
		                                 "variant.new.operations=blur 1" };
	static struct conf conf;
	char expected[128];

	(void)state;
	assert_int_equal(load_bytes(&conf, ini, sizeof ini - 1, overrides, 2), 0);
	snprintf(expected, sizeof expected, "%s:2", conf_path);
	assert_string_equal(place_of("variant.a", "operations"), expected);
	snprintf(expected, sizeof expected, "%s:6", conf_path);
	assert_string_equal(place_of("server", "listen"), expected);
	assert_string_equal(place_of("server", "root"), "-o server.root=/x");
	assert_string_equal(place_of("variant.new", "operations"),
	                    "-o variant.new.operations=blur 1");
	assert_string_equal(place_of("server", "damaged"), "default");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_name_place_text_and_expectation),
		cmocka_unit_test(messages_name_an_override),
		cmocka_unit_test(moved_keys_may_keep_their_defaults),
		cmocka_unit_test(keys_that_never_moved_are_unknown_with_any_value),
		cmocka_unit_test(syntax_is_checked_line_by_line),
		cmocka_unit_test(hostile_bytes_are_refused),
		cmocka_unit_test(unreadable_files_are_reported),
		cmocka_unit_test(places_are_lines_or_overrides),
	};

	return cmocka_run_group_tests(tests, conf_fixture_begin, conf_fixture_end);
}
