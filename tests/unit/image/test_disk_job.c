/* test_disk_job.c - which jobs may read the disk, and the order of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image/disk_job.c"

#define MAX 2

static struct disk_reads reads;
static struct disk_job job[6];

static int setup(void **state)
{
	(void)state;
	disk_reads_init(&reads, MAX);
	for (unsigned i = 0; i < MAX; i++)
		assert_true(disk_reads_begin(&reads, &job[i]));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	disk_reads_fini(&reads);
	return 0;
}

static void add(unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++)
		assert_false(disk_reads_begin(&reads, &job[i]));
}

static void jobs_over_the_limit_start_in_the_order_of_the_line(void **state)
{
	(void)state;
	add(2, 4);
	for (unsigned i = 2; i <= 4; i++)
		assert_ptr_equal(disk_reads_end(&reads), &job[i]);
	assert_null(disk_reads_end(&reads)); /* one of the MAX that are left */
	assert_true(disk_reads_begin(&reads, &job[5]));
	assert_null(disk_reads_end(&reads));
	assert_null(disk_reads_end(&reads));
}

static void a_cancelled_job_is_never_started(void **state)
{
	(void)state;
	add(2, 5);
	assert_true(disk_reads_cancel(&reads, &job[3])); /* between others */
	assert_true(disk_reads_cancel(&reads, &job[5])); /* the last */
	assert_false(disk_reads_cancel(&reads, &job[5]));
	assert_false(disk_reads_begin(&reads, &job[3])); /* behind the others */
	assert_true(disk_reads_cancel(&reads, &job[2])); /* the first */
	assert_ptr_equal(disk_reads_end(&reads), &job[4]);
	assert_ptr_equal(disk_reads_end(&reads), &job[3]);
	assert_null(disk_reads_end(&reads));
}

static void a_job_that_was_started_cannot_be_cancelled(void **state)
{
	(void)state;
	assert_false(disk_reads_cancel(&reads, &job[0]));
	add(2, 2);
	assert_ptr_equal(disk_reads_end(&reads), &job[2]);
	assert_false(disk_reads_cancel(&reads, &job[2]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(jobs_over_the_limit_start_in_the_order_of_the_line,
		                                setup, teardown),
		cmocka_unit_test_setup_teardown(a_cancelled_job_is_never_started, setup, teardown),
		cmocka_unit_test_setup_teardown(a_job_that_was_started_cannot_be_cancelled, setup,
		                                teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
