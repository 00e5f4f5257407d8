/* test_cores.c - the cores that control groups grant, from files of the test. */
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

#include "layout/cores.h"

static char root[] = "/tmp/darkroom-test-cores-XXXXXX";

static void put(const char *path, const char *data)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof full, "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0700);
	}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(data, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static unsigned cores_of(const char *membership, unsigned cores)
{
	char path[512];

	put("membership", membership);
	snprintf(path, sizeof path, "%s/membership", root);
	cores_read(cores, path, root);
	return cores_usable();
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -r %s", root);
	return system(command);
}

static void the_tightest_quota_of_all_nested_groups_counts(void **state)
{
	(void)state;
	assert_int_equal(cores_of("0::/\n", 64), 64); /* the root has none */
	put("a/cpu.max", "200000 100000\n");
	put("a/b/cpu.max", "max 100000\n");
	put("a/b/c/cpu.max", "1600000 100000\n");
	assert_int_equal(cores_of("0::/a\n", 64), 2);
	assert_int_equal(cores_of("0::/a/b\n", 64), 2);
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 2);
	assert_int_equal(cores_of("0::/a/b/c\n", 1), 1); /* never more than the cores */
	put("a/cpu.max", "max 100000\n");
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 16);
	put("a/b/c/cpu.max", "1600001 100000\n"); /* rounded up */
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 17);
	put("a/b/c/cpu.max", "1000 100000\n");
	assert_int_equal(cores_of("0::/a/b/c\n", 64), 1);
	put("cpu.max", "300000 100000\n"); /* a container's view of its own group */
	assert_int_equal(cores_of("0::/\n", 64), 3);
	assert_int_equal(cores_of("0::/not/here/at/all\n", 64), 3);
	put("cpu.max", "max 100000\n");
}

static void a_quota_that_changes_is_seen(void **state)
{
	(void)state;
	put("live/cpu.max", "600000 100000\n");
	assert_int_equal(cores_of("0::/live\n", 64), 6);
	put("live/cpu.max", "200000 100000\n");
	assert_int_equal(cores_usable(), 2);
}

static void version_1_has_two_files(void **state)
{
	(void)state;
	put("cpu/x/cpu.cfs_quota_us", "-1\n");
	put("cpu/x/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cores_of("4:memory:/y\n3:cpu,cpuacct:/x\n", 64), 64);
	put("cpu/x/cpu.cfs_quota_us", "450000\n");
	assert_int_equal(cores_of("4:memory:/y\n3:cpu,cpuacct:/x\n", 64), 5);
	assert_int_equal(cores_of("3:cpuset,cpuacct:/x\n", 64),
	                 64); /* that is another controller */
	assert_int_equal(cores_of("3:cpuacct,cpu:/x/y\n1:name=systemd:/x\n0::/\n", 64), 5);
}

static void malformed_files_are_not_a_quota(void **state)
{
	static const char *const odd[] = { "",
		                           "\n",
		                           "max",
		                           "100000",
		                           "100000 0",
		                           "0 100000",
		                           "-5 100000",
		                           "100000 -1",
		                           "x y",
		                           "1e5 1e5",
		                           "99999999999999999999999 99999999999999999999999",
		                           "\xff\xfe" };

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		unsigned granted;

		put("odd/cpu.max", odd[i]);
		granted = cores_of("0::/odd\n", 8);
		assert_true(granted >= 1 && granted <= 8);
		if (i < 10)
			assert_int_equal(granted, 8);
	}
	put("odd/cpu.max", "100000 100000");
	assert_int_equal(cores_of("0::/odd\n", 8), 1);
	assert_int_equal(cores_of("0::/odd/../odd\n", 8),
	                 8); /* not a path that the kernel writes */
	assert_int_equal(cores_of("0::odd\n", 8), 8);
	assert_int_equal(cores_of("0:\n:::\n\n0::\n", 8), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tightest_quota_of_all_nested_groups_counts),
		cmocka_unit_test(a_quota_that_changes_is_seen),
		cmocka_unit_test(version_1_has_two_files),
		cmocka_unit_test(malformed_files_are_not_a_quota),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
