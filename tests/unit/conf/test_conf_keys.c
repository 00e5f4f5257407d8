/*
 * test_conf_keys.c - the documentation of keys: the shipped file is what the table of keys
 * generates, and it means the defaults of the real stages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_keys.h"
#include "conf/conf_print.h"
#include "sched/core/graph.h"

#define SHIPPED "conf/darkroomd.ini" /* the tests run in the source tree */
#define LINE_MAX_BYTES 98            /* of help, after "; ": one line has 100 columns */

static struct text keys, all_keys; /* of --keys, and of --keys=all */

static int print_keys(void **state)
{
	(void)state;
	text_init_growable(&keys, 1 << 20);
	conf_print_keys(&keys, false);
	text_init_growable(&all_keys, 1 << 20);
	conf_print_keys(&all_keys, true);
	return keys.overflowed || all_keys.overflowed;
}

static int free_keys(void **state)
{
	(void)state;
	text_fini(&keys);
	text_fini(&all_keys);
	return 0;
}

/* After a change of the table of keys: make conf/darkroomd.ini. */
static void the_shipped_file_is_generated_from_the_table(void **state)
{
	static char shipped[1 << 17];
	FILE *f = fopen(SHIPPED, "r");

	(void)state;
	assert_non_null(f);
	shipped[fread(shipped, 1, sizeof shipped - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(shipped, keys.data);
}

static void the_shipped_file_means_the_defaults(void **state)
{
	static struct conf defaults, shipped;
	struct text errors;

	(void)state;
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(conf_load(&defaults, NULL, NULL, NULL, 0, &errors), 0);
	assert_int_equal(conf_load(&shipped, NULL, SHIPPED, NULL, 0, &errors), 0);
	assert_string_equal(errors.data, "");
	assert_memory_equal(&defaults, &shipped, sizeof shipped);
	text_fini(&errors);
}

static void every_key_is_documented(void **state)
{
	const struct conf_key *key;
	char line[64];

	(void)state;
	for (size_t i = 0; (key = conf_key_at(i)); i++) {
		snprintf(line, sizeof line, "\n%s%s =",
		         strstr("stage group variant experiment_stage", key->section) &&
		                         strcmp(key->section, "experiment") != 0
		                 ? ";"
		                 : "",
		         key->name);
		assert_non_null(strstr(all_keys.data, line));
		if (strncmp(key->section, "experiment", strlen("experiment")) != 0)
			assert_non_null(strstr(keys.data, line));
		for (const char *help = key->help; *help; help += strspn(help, "\n")) {
			assert_in_range(strcspn(help, "\n"), 1, LINE_MAX_BYTES);
			help += strcspn(help, "\n");
		}
	}
}

static void operators_see_at_most_100_keys(void **state)
{
	const struct conf_key *key;
	unsigned count = 0;

	(void)state;
	for (size_t i = 0; (key = conf_key_at(i)); i++)
		count += strncmp(key->section, "experiment", strlen("experiment")) != 0;
	assert_in_range(count, 50, 100);
	assert_null(strstr(keys.data, "[experiment"));
	assert_non_null(strstr(all_keys.data, "\n[experiment]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shipped_file_is_generated_from_the_table),
		cmocka_unit_test(the_shipped_file_means_the_defaults),
		cmocka_unit_test(every_key_is_documented),
		cmocka_unit_test(operators_see_at_most_100_keys),
	};

	return cmocka_run_group_tests(tests, print_keys, free_keys);
}
