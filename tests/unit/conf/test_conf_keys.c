/* test_conf_keys.c - what documents the configuration's keys, the program's own printout and the
 * shipped file, is a configuration of the real stages, means the defaults, and leaves nothing out.
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

/* What --keys prints is a configuration file, and means the defaults. */
static void printed_keys_are_the_defaults(void **state)
{
	static struct conf defaults, printed;
	char path[] = "/tmp/darkroom-test-conf-XXXXXX";
	int fd = mkstemp(path);
	struct text errors;

	(void)state;
	assert_true(fd >= 0);
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	conf_print_keys(f);
	assert_int_equal(fclose(f), 0);
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(conf_load(&defaults, NULL, NULL, 0, &errors), 0);
	assert_int_equal(conf_load(&printed, path, NULL, 0, &errors), 0);
	unlink(path);
	assert_string_equal(errors.data, "");
	assert_memory_equal(&defaults, &printed, sizeof printed);
	text_fini(&errors);
}

/* The shipped file as well; it is found when the tests run in the source tree. */
static void the_shipped_file_is_the_defaults(void **state)
{
	static struct conf defaults, shipped;
	struct text errors;

	(void)state;
	if (access("conf/darkroomd.ini", R_OK) != 0)
		skip();
	text_init_growable(&errors, 1 << 20);
	assert_int_equal(conf_load(&defaults, NULL, NULL, 0, &errors), 0);
	assert_int_equal(conf_load(&shipped, "conf/darkroomd.ini", NULL, 0, &errors), 0);
	assert_string_equal(errors.data, "");
	assert_memory_equal(&defaults, &shipped, sizeof shipped);
	text_fini(&errors);
}

/* Whether a line of the file sets the key, or would without its ';'. */
static bool mentions(const char *ini, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = ini; line; line = strchr(line, '\n')) {
		line += strspn(line, "\n;");
		if (strncmp(line, key, length) == 0 && strncmp(line + length, " =", 2) == 0)
			return true;
	}
	return false;
}

/* And it leaves no key out. */
static void the_shipped_file_is_complete(void **state)
{
	static char shipped[1 << 16], line[1024];
	FILE *f = fopen("conf/darkroomd.ini", "r"), *keys = tmpfile();

	(void)state;
	assert_non_null(keys);
	if (!f)
		skip();
	shipped[fread(shipped, 1, sizeof shipped - 1, f)] = '\0';
	conf_print_keys(keys);
	rewind(keys);
	while (fgets(line, sizeof line, keys)) {
		char *key = line + (*line == ';');

		key[strspn(key, "abcdefghijklmnopqrstuvwxyz_")] = '\0';
		if (*key && !mentions(shipped, key))
			fail_msg("conf/darkroomd.ini does not mention %s", key);
	}
	fclose(f);
	fclose(keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printed_keys_are_the_defaults),
		cmocka_unit_test(the_shipped_file_is_the_defaults),
		cmocka_unit_test(the_shipped_file_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
