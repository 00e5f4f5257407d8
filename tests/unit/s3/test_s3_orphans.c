/* test_s3_orphans.c - which objects a pass removes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "s3/s3_objects.h"
#include "s3/s3_orphans.h"
#include "support/s3_memory.h"

#define ID "01K0000000000000000000000A"
#define NEXT "01K0000000000000000000000B"
#define ORIGINAL "spool/" ID
#define LEASE "spool/" ID ".lease"
#define OLD 1000000

static struct s3_store store;
static struct s3_orphans in_files, in_spool;

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
	in_files = (struct s3_orphans){ 0 };
	in_spool = (struct s3_orphans){ .is_in_spool = true };
	return 0;
}

static int pass(struct s3_orphans *o)
{
	return s3_orphans_remove(&store, o, knows_none, NULL);
}

static void files_without_an_image_are_removed(void **state)
{
	(void)state;
	s3_memory_add("file/" ID "/a.jpg", "a", OLD);
	s3_memory_add("file/" ID "/b.jpg", "b", OLD);
	s3_memory_add("file/" NEXT "/a.jpg", "a", OLD);
	s3_memory_add("image/" NEXT, "{}", OLD);
	assert_int_equal(pass(&in_files), 2);
	assert_false(s3_memory_has("file/" ID "/a.jpg"));
	assert_true(s3_memory_has("file/" NEXT "/a.jpg"));
}

static void an_original_without_a_lease_is_removed(void **state)
{
	(void)state;
	s3_memory_add(ORIGINAL, "original", OLD);
	assert_int_equal(pass(&in_spool), 1);
	assert_false(s3_memory_has(ORIGINAL));
}

static void an_original_with_a_lease_stays(void **state)
{
	(void)state;
	s3_memory_add(ORIGINAL, "original", OLD);
	s3_memory_add(LEASE, "held 0123456789abcdef 1\n0\na", OLD);
	assert_int_equal(pass(&in_spool), 0);
	assert_true(s3_memory_has(ORIGINAL));
	assert_true(s3_memory_has(LEASE));
}

static void an_original_that_a_client_removed_goes_with_its_lease(void **state)
{
	(void)state;
	s3_memory_add(ORIGINAL, "original", OLD);
	s3_memory_add(LEASE, "removed 0123456789abcdef 1\n0\na", OLD);
	assert_int_equal(pass(&in_spool), 2);
	assert_false(s3_memory_has(ORIGINAL));
	assert_false(s3_memory_has(LEASE));
}

static void an_original_goes_though_its_image_is_stored(void **state)
{
	(void)state;
	s3_memory_add("image/" ID, "{}", OLD);
	s3_memory_add(ORIGINAL, "original", OLD);
	assert_int_equal(pass(&in_spool), 1);
	assert_false(s3_memory_has(ORIGINAL));
	assert_true(s3_memory_has("image/" ID));
}

static void files_stay_while_the_image_has_a_lease(void **state)
{
	(void)state;
	s3_memory_add("file/" ID "/a.jpg", "a", OLD);
	s3_memory_add(LEASE, "held 0123456789abcdef 1\n0\na", OLD);
	assert_int_equal(pass(&in_files), 0);
	assert_true(s3_memory_has("file/" ID "/a.jpg"));
}

static void an_unknown_lease_ends_the_pass(void **state)
{
	(void)state;
	s3_memory_add(ORIGINAL, "original", OLD);
	s3_memory_fail(S3_GET, S3_AWAY);
	assert_int_equal(pass(&in_spool), S3_AWAY);
	assert_true(s3_memory_has(ORIGINAL));
}

static void a_list_that_fails_is_told(void **state)
{
	(void)state;
	s3_memory_add("file/" ID "/a.jpg", "a", OLD);
	s3_memory_fail(S3_LIST, S3_AWAY);
	assert_int_equal(pass(&in_files), S3_AWAY);
	assert_int_equal(s3_memory_count(S3_LIST), 1);
	assert_false(in_files.is_in_spool);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		CASE(files_without_an_image_are_removed),
		CASE(an_original_without_a_lease_is_removed),
		CASE(an_original_with_a_lease_stays),
		CASE(an_original_that_a_client_removed_goes_with_its_lease),
		CASE(an_original_goes_though_its_image_is_stored),
		CASE(files_stay_while_the_image_has_a_lease),
		CASE(an_unknown_lease_ends_the_pass),
		CASE(a_list_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
