/* test_sandbox_files.c - the sandbox covers the store's parent only if nothing else is in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/sandbox/sandbox.h"

static void a_store_with_neighbours_is_covered_alone(void **state)
{
	char own[64] = "/tmp/darkroom-root-XXXXXX", root[80], slashes[96];

	(void)state;
	assert_non_null(mkdtemp(own));
	snprintf(root, sizeof root, "%s/store", own);
	snprintf(slashes, sizeof slashes, "%s///", root);
	assert_string_equal(sandbox_files_root(root), root); /* is not there */
	assert_int_equal(mkdir(root, 0700), 0);
	assert_string_equal(sandbox_files_root(root), own);
	assert_string_equal(sandbox_files_root(slashes), own);
	snprintf(slashes, sizeof slashes, "%s/.hidden", own);
	assert_int_equal(mkdir(slashes, 0700), 0);
	assert_string_equal(sandbox_files_root(root), root);
	assert_int_equal(rmdir(slashes), 0);
	assert_int_equal(rmdir(root), 0);
	assert_int_equal(rmdir(own), 0);
}

static void the_whole_file_system_is_never_covered(void **state)
{
	(void)state;
	assert_string_equal(sandbox_files_root("/store"), "/store");
	assert_string_equal(sandbox_files_root("/"), "/");
	assert_string_equal(sandbox_files_root("store"), "store");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_with_neighbours_is_covered_alone),
		cmocka_unit_test(the_whole_file_system_is_never_covered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
