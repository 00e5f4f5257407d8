/* test_store_page_calls.c - the heap of a page, the directories that it reads, and calls that fail.
 */
#include "support/store_faults.h"

#include "base/check.h"
#include "store/directory.c"
#include "store/store_page.c"

#define MAX 100

static int root_fd;
static unsigned descriptors;
static char (*ids)[ULID_LENGTH + 1]; /* exactly as many as the page has */
static struct store_page page;

static void size_page(unsigned max)
{
	free(ids);
	ids = malloc(max * sizeof *ids);
	assert_non_null(ids);
	page = (struct store_page){ .id = ids, .max = max };
}

static int setup(void **state)
{
	(void)state;
	no_fault();
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-page-XXXXXX");
	if (!mkdtemp(test_root))
		return -1;
	root_fd = open(test_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	descriptors = open_descriptors();
	size_page(MAX);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(open_descriptors(), descriptors);
	close(root_fd);
	free(ids);
	ids = NULL;
	remove_test_root();
	return 0;
}

/* Makes an image of the id that begins so. */
static void make(const char *begin)
{
	char command[128];

	snprintf(command, sizeof command, "mkdir -p %.4s/%.2s/%s%0*d", begin, begin + 4, begin,
	         ULID_LENGTH - (int)strlen(begin), 0);
	shell(command);
}

static void read_page(unsigned count)
{
	memset(calls, 0, sizeof calls);
	assert_int_equal(store_page_read(root_fd, &page), 0);
	assert_int_equal(page.count, count);
}

/* ---- the heap ---- */

static int by_id(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void ids_in_any_order_are_sorted(void **state)
{
	char all[MAX][ULID_LENGTH + 1], sorted[MAX][ULID_LENGTH + 1];

	(void)state;
	srandom(7);
	for (unsigned turn = 0; turn < 2000; turn++) {
		unsigned count = 1 + turn % MAX, max = 1 + (unsigned)random() % count;

		for (unsigned i = 0; i < count; i++)
			snprintf(all[i], sizeof all[i], "01K%07ld%016u", random() % 1000000, i);
		memcpy(sorted, all, sizeof all);
		qsort(sorted, count, sizeof sorted[0], by_id);
		size_page(max);
		page.is_newest_first = turn % 3 == 0;
		for (unsigned i = 0; i < count; i++)
			offer(&page, all[i]);
		sort(&page);
		assert_int_equal(page.count, max);
		for (unsigned i = 0; i < max; i++)
			assert_string_equal(page.id[i],
			                    sorted[page.is_newest_first ? count - 1 - i : i]);
	}
}

/* ---- directories ---- */

static void a_full_page_reads_no_further_directories(void **state)
{
	(void)state;
	make("01KA00");
	make("01KA01");
	make("01KB00");
	size_page(1);
	for (unsigned newest = 0; newest < 2; newest++) {
		page.is_newest_first = newest;
		read_page(1);
		assert_memory_equal(page.id[0], newest ? "01KB00" : "01KA00", 6);
		/* The root, a span and a shard; the root for those of earlier versions. */
		assert_int_equal(calls[CALL_OPENAT], 4);
	}
}

static void directories_outside_the_bounds_are_not_read(void **state)
{
	static const char *const begins[] = { "01KA00", "01KA01", "01KA02", "01KB00", "01KC00" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(begins); i++)
		make(begins[i]);
	read_page(5);
	assert_int_equal(calls[CALL_OPENAT], 1 + 3 + 5 + 1);
	memcpy(page.after, "01KB0000000000000000000000", sizeof page.after);
	read_page(1);
	assert_int_equal(calls[CALL_OPENAT], 1 + 2 + 2 + 1);
	memset(page.after, 0, sizeof page.after);
	memcpy(page.before, "01KA01ZZZZZZZZZZZZZZZZZZZZ", sizeof page.before);
	read_page(2);
	assert_int_equal(calls[CALL_OPENAT], 1 + 1 + 2 + 1);
	memcpy(page.after, "01KA0100000000000000000000", sizeof page.after);
	read_page(0);
	assert_int_equal(calls[CALL_OPENAT], 1 + 1 + 1 + 1);
}

static void more_names_than_are_listed_are_left_out(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefgh";
	char name[3] = "";

	(void)state;
	for (unsigned i = 0; i < NAMES_MAX + 9; i++) {
		name[0] = digits[i / 40];
		name[1] = digits[i % 40];
		assert_int_equal((mkdirat)(root_fd, name, 0755), 0);
	}
	read_page(0);
	assert_int_equal(calls[CALL_OPENAT], 2 + NAMES_MAX);
}

static void directories_that_go_meanwhile_are_empty(void **state)
{
	static const int gone[] = { ENOENT, ENOTDIR };

	(void)state;
	make("01KA00");
	make("01KA01");
	for (size_t i = 0; i < COUNT_OF(gone); i++) {
		fail_call(CALL_OPENAT, 2, gone[i]); /* the span */
		assert_int_equal(store_page_read(root_fd, &page), 0);
		assert_int_equal(page.count, 0);
		fail_call(CALL_OPENAT, 3, gone[i]); /* the first shard */
		assert_int_equal(store_page_read(root_fd, &page), 0);
		assert_int_equal(page.count, 1);
		assert_memory_equal(page.id[0], "01KA01", 6);
	}
}

static void each_failing_call_is_an_error(void **state)
{
	static const enum call all[] = { CALL_OPENAT, CALL_FDOPENDIR };

	(void)state;
	make("01KA00");
	shell("mkdir 7Z");
	for (size_t i = 0; i < COUNT_OF(all); i++) {
		for (unsigned nth = 1; nth <= 5; nth++) {
			fail_call(all[i], nth, EMFILE);
			assert_int_equal(store_page_read(root_fd, &page), -EMFILE);
			assert_int_equal(calls[all[i]], nth); /* it ends there */
			assert_int_equal(open_descriptors(), descriptors);
		}
		fail_call(all[i], 6, EMFILE);
		assert_int_equal(store_page_read(root_fd, &page), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ids_in_any_order_are_sorted),
		TEST(a_full_page_reads_no_further_directories),
		TEST(directories_outside_the_bounds_are_not_read),
		TEST(more_names_than_are_listed_are_left_out),
		TEST(directories_that_go_meanwhile_are_empty),
		TEST(each_failing_call_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
