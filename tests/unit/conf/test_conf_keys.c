/*
 * test_conf_keys.c - the documentation of keys: what is printed means the defaults of the real
 * stages, and so does the shipped file.
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
#include "conf/conf_source.h"
#include "conf/conf_value.h"
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

/* Loads a file, and compares it with the defaults. */
static void check_defaults(const char *path, struct conf_source *source)
{
	static struct conf defaults, loaded;
	struct text errors;

	text_init_growable(&errors, 1 << 20);
	assert_int_equal(conf_load(&defaults, NULL, NULL, NULL, 0, &errors), 0);
	assert_int_equal(conf_load(&loaded, source, path, NULL, 0, &errors), 0);
	assert_string_equal(errors.data, "");
	assert_memory_equal(&defaults, &loaded, sizeof loaded);
	text_fini(&errors);
}

static void the_printed_keys_mean_the_defaults(void **state)
{
	char path[] = "/tmp/darkroom-keys-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, keys.data, keys.length), keys.length);
	close(fd);
	check_defaults(path, NULL);
	unlink(path);
}

/* What it sets, an upgrade cannot change. A file needs variants; every other key has a default. */
static void the_shipped_file_sets_only_variants(void **state)
{
	struct conf_source source;

	(void)state;
	check_defaults(SHIPPED, &source);
	for (size_t i = 0; i < source.count; i++)
		if (source.setting[i].key)
			assert_int_equal(strncmp(source.setting[i].section, "variant.", 8), 0);
	conf_source_fini(&source);
}

static void the_examples_of_the_shipped_file_are_valid(void **state)
{
	char line[256], section[64] = "", message[256];
	FILE *f = fopen(SHIPPED, "r");
	unsigned count = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		const struct conf_key *key;
		static struct conf conf;
		char name[64], value[128];

		if (sscanf(line, "[%63[^]]", section) == 1 ||
		    sscanf(line, ";%63[a-z_] = %127[^\n]", name, value) != 2)
			continue;
		key = conf_key_find(section, name);
		assert_non_null(key);
		assert_int_equal(conf_value_parse(key, value, &conf, message, sizeof message), 0);
		count++;
	}
	fclose(f);
	assert_in_range(count, 5, 15);
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
		cmocka_unit_test(the_printed_keys_mean_the_defaults),
		cmocka_unit_test(the_shipped_file_sets_only_variants),
		cmocka_unit_test(the_examples_of_the_shipped_file_are_valid),
		cmocka_unit_test(every_key_is_documented),
		cmocka_unit_test(operators_see_at_most_100_keys),
	};

	return cmocka_run_group_tests(tests, print_keys, free_keys);
}
