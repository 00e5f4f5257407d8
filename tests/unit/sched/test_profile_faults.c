/* test_profile_faults.c - a profile whose file takes little at a time, or nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static ssize_t write_little(int fd, const void *data, size_t length, off_t at);

#define pwrite write_little
#include "sched/core/profile.c"
#undef pwrite

static ssize_t results[3]; /* of the next calls; then all bytes are written. < 0: -errno */
static unsigned calls;

static ssize_t write_little(int fd, const void *data, size_t length, off_t at)
{
	ssize_t result = calls < COUNT_OF(results) ? results[calls] : (ssize_t)length;

	calls++;
	errno = result < 0 ? (int)-result : 0;
	return result < 0 ? -1 : pwrite(fd, data, (size_t)result, at);
}

/* Writes a profile of no work. *size: of the file. */
static int write_with(ssize_t first, ssize_t second, ssize_t third, long *size)
{
	static const struct partition_weights none;
	FILE *f = tmpfile();

	assert_non_null(f);
	calls = 0;
	results[0] = first;
	results[1] = second;
	results[2] = third;
	int err = profile_write(&none, fileno(f));

	fseek(f, 0, SEEK_END);
	*size = ftell(f);
	fclose(f);
	return err;
}

static void short_writes_are_continued(void **state)
{
	long whole, size;

	(void)state;
	assert_int_equal(write_with(1, 1, 1, &whole), 0);
	assert_true(whole > 10);
	assert_int_equal(write_with(1, 2, 3, &size), 0);
	assert_int_equal(size, whole);
	assert_int_equal(write_with(1, -EINTR, 2, &size), 0);
	assert_int_equal(size, whole);
}

static void a_profile_in_part_is_removed(void **state)
{
	long size;

	(void)state;
	assert_int_equal(write_with(5, -ENOSPC, 0, &size), -ENOSPC);
	assert_int_equal(size, 0);
	assert_int_equal(write_with(5, 0, 0, &size), -EIO);
	assert_int_equal(size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_writes_are_continued),
		cmocka_unit_test(a_profile_in_part_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
