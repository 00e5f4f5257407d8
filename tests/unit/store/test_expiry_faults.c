/* test_expiry_faults.c - notes of times whose directories go, fail, or have other names in them. */
#include "support/store_faults.h"

#include "base/check.h"

static uint64_t filled_with;

static void *filled_malloc(size_t size)
{
	uint64_t *memory = malloc(size);

	for (size_t i = 0; memory && i < size / sizeof *memory; i++)
		memory[i] = filled_with;
	return memory;
}

#define malloc filled_malloc
#include "store/directory.c"
#include "store/expiry.c"
#undef malloc

#define NOW UINT64_C(1763798400) /* the beginning of an hour */
#define ID "01K0000000000000000000000A"
#define HOUR "0489944"      /* of NOW */
#define HOUR_PAST "0489943" /* before it */

static struct store store;
static struct expiry_due due[8];
static unsigned descriptors;

static int setup(void **state)
{
	(void)state;
	no_fault();
	filled_with = NOW / SECONDS;
	memset(due, 0, sizeof due);
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-expiry-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	store.root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(store.root_fd);
	remove_test_root();
	return 0;
}

static void a_note_is_tried_again_while_its_hour_is_removed(void **state)
{
	(void)state;
	assert_int_equal(expiry_note(&store, ID, EXPIRES_MAX), 0);
	assert_true(exists(".expiry/2777777/9999999999." ID));
	fail_call(CALL_OPENAT, 2, ENOENT);
	assert_int_equal(expiry_note(&store, ID, NOW), 0);
	assert_int_equal(calls[CALL_OPENAT], 3);
	assert_true(exists(".expiry/" HOUR "/1763798400." ID));
	fail_calls(CALL_OPENAT, ENOENT);
	assert_int_equal(expiry_note(&store, ID, NOW), -ENOENT);
	assert_int_equal(calls[CALL_OPENAT], 3);
	fail_calls(CALL_OPENAT, EACCES);
	assert_int_equal(expiry_note(&store, ID, NOW), -EACCES);
	assert_int_equal(calls[CALL_OPENAT], 1);
	for (unsigned nth = 1; nth <= 2; nth++) {
		shell("rm -r .expiry");
		fail_call(CALL_MKDIRAT, nth, EROFS);
		assert_int_equal(expiry_note(&store, ID, NOW), -EROFS);
		no_fault();
		assert_int_equal(expiry_note(&store, ID, NOW), 0);
	}
	expiry_forget(&store, ID, NOW);
	assert_false(exists(".expiry/" HOUR "/1763798400." ID));
}

static void hours_are_in_order_and_other_names_are_ignored(void **state)
{
	(void)state;
	shell("mkdir -p .expiry/yyyyyyy .expiry/zzzzzzz"); /* and others behind the hours */
	/* In the order of a directory, which is not that of time. */
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(expiry_note(&store, ID, NOW - i * 3 % 7 * SECONDS), 0);
	shell("cd .expiry && mkdir aaaaaaa bbbbbbb ccccccc ddddddd 48 048994 04899440 0489945 && "
	      "touch eeeeeee 0489930");
	assert_int_equal(expiry_list(&store, NOW, due, COUNT_OF(due)), 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(due[i].expires, NOW - (6 - i) * SECONDS);
	assert_int_equal(expiry_list(&store, NOW, due, 3), 3);
}

static void other_names_in_an_hour_are_ignored(void **state)
{
	(void)state;
	shell("mkdir -p .expiry/" HOUR_PAST " && cd .expiry/" HOUR_PAST " && touch "
	      "1763794800-" ID " 1763794800." ID "X 176379480x." ID
	      " 1763794800.01K00000000000000000000000U "
	      "1763794800 x 1763794800." ID " 1763794801." ID " 1763794802." ID " 1763794803-" ID
	      "X");
	assert_int_equal(expiry_list(&store, NOW, due, COUNT_OF(due)), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_string_equal(due[i].id, ID);
		assert_in_range(due[i].expires, 1763794800, 1763794802);
	}
	memset(due, 0, sizeof due);
	assert_int_equal(expiry_list(&store, NOW, due, 2), 2);
	assert_int_equal(due[2].expires, 0);
	assert_int_equal(expiry_list(&store, NOW - SECONDS + 1, due, 8), 2); /* within the hour */
}

static void empty_hours_of_the_past_are_removed(void **state)
{
	(void)state;
	shell("mkdir -p .expiry/" HOUR " .expiry/" HOUR_PAST " .expiry/0489942 .expiry/0489945");
	assert_int_equal(expiry_list(&store, NOW, due, 8), 0);
	assert_true(exists(".expiry/" HOUR));
	assert_true(exists(".expiry/0489945"));
	assert_false(exists(".expiry/" HOUR_PAST));
	assert_false(exists(".expiry/0489942"));
	/* None is looked at behind the last that is wanted. */
	shell("mkdir -p .expiry/" HOUR_PAST
	      " .expiry/0489942 && touch .expiry/0489942/1763791200." ID);
	assert_int_equal(expiry_list(&store, NOW, due, 1), 1);
	assert_true(exists(".expiry/" HOUR_PAST));
}

static void as_many_hours_as_have_room_are_looked_at(void **state)
{
	(void)state;
	shell("mkdir .expiry && cd .expiry && seq -f %07.0f 1 4100 | xargs mkdir");
	assert_int_equal(expiry_list(&store, NOW, due, 8), 0);
	assert_int_equal(entries(".expiry"), 4100 - HOURS_MAX);
}

static void each_failing_call_of_a_list_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(expiry_list(&store, NOW, due, 8), 0); /* no directory */
	assert_int_equal(expiry_note(&store, ID, NOW), 0);
	assert_int_equal(expiry_note(&store, ID, NOW - SECONDS), 0);
	for (unsigned nth = 1; nth <= 3; nth++) {
		fail_call(CALL_OPENAT, nth, EACCES);
		assert_int_equal(expiry_list(&store, NOW, due, 8), -EACCES);
		fail_call(CALL_FDOPENDIR, nth, ENOMEM);
		assert_int_equal(expiry_list(&store, NOW, due, 8), -ENOMEM);
		assert_int_equal(open_descriptors(), descriptors);
	}
	fail_call(CALL_OPENAT, 2, ENOENT); /* an hour that another process removes */
	assert_int_equal(expiry_list(&store, NOW, due, 8), 1);
	assert_int_equal(due[0].expires, NOW);
	fail_call(CALL_OPENAT, 2, ENOTDIR);
	assert_int_equal(expiry_list(&store, NOW, due, 8), 1);
	fail_call(CALL_OPENAT, 1, ENOTDIR); /* .expiry itself */
	assert_int_equal(expiry_list(&store, NOW, due, 8), -ENOTDIR);
	no_fault();
	assert_int_equal(expiry_list(&store, NOW, due, 8), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_note_is_tried_again_while_its_hour_is_removed),
		TEST(hours_are_in_order_and_other_names_are_ignored),
		TEST(other_names_in_an_hour_are_ignored),
		TEST(empty_hours_of_the_past_are_removed),
		TEST(as_many_hours_as_have_room_are_looked_at),
		TEST(each_failing_call_of_a_list_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
