/* test_s3_orphans.c - which objects a pass removes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "s3/s3_objects.h"
#include "support/s3_memory.h"

#define ID "01K0000000000000000000000A"
#define NEXT "01K0000000000000000000000B"
#define OLD 1000000

static struct s3_orphans orphans;

static bool knows_none(void *arg, const char *id)
{
	(void)arg;
	(void)id;
	return false;
}

static int begin(void **state)
{
	(void)state;
	s3_memory_clear();
	orphans = (struct s3_orphans){ 0 };
	return 0;
}

static int pass(void)
{
	return s3_orphans_remove(NULL, &orphans, knows_none, NULL);
}

static void files_without_an_image_are_removed(void **state)
{
	(void)state;
	s3_memory_add("file/" ID "/a.jpg", "a", OLD);
	s3_memory_add("file/" ID "/b.jpg", "b", OLD);
	s3_memory_add("file/" NEXT "/a.jpg", "a", OLD);
	s3_memory_add("image/" NEXT, "{}", OLD);
	assert_int_equal(pass(), 2);
	assert_false(s3_memory_has("file/" ID "/a.jpg"));
	assert_true(s3_memory_has("file/" NEXT "/a.jpg"));
}

static void objects_outside_of_files_stay(void **state)
{
	(void)state;
	s3_memory_add("file/" ID "/a.jpg", "a", OLD);
	s3_memory_add("spool/" ID, "original", OLD);
	assert_int_equal(pass(), 1);
	assert_int_equal(pass(), 0);
	assert_true(s3_memory_has("spool/" ID));
}

static void an_unknown_image_ends_the_pass(void **state)
{
	(void)state;
	s3_memory_add("file/" ID "/a.jpg", "a", OLD);
	s3_memory_fail(S3_GET, S3_AWAY);
	assert_int_equal(pass(), S3_AWAY);
	assert_true(s3_memory_has("file/" ID "/a.jpg"));
}

static void a_list_that_fails_is_told(void **state)
{
	(void)state;
	s3_memory_add("file/" ID "/a.jpg", "a", OLD);
	s3_memory_fail(S3_LIST, S3_AWAY);
	assert_int_equal(pass(), S3_AWAY);
	assert_int_equal(s3_memory_count(S3_LIST), 1);
	assert_string_equal(orphans.after, "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		CASE(files_without_an_image_are_removed),
		CASE(objects_outside_of_files_stay),
		CASE(an_unknown_image_ends_the_pass),
		CASE(a_list_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
