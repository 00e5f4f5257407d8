/* test_store_page.c - pages of ids against a sorted list, in both layouts, with bounds. */
#include <errno.h>
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
#include <fcntl.h>

#include "store/store_page.h"
#include "store/store_path.h"

#define COUNT 200

static char root[64], ids[COUNT][ULID_LENGTH + 1];
static int root_fd;

/* Makes a directory below the root, and those on its way. */
static void make_path(char *path)
{
	for (char *end = path; (end = strchr(end, '/')); *end++ = '/') {
		*end = '\0';
		assert_true(mkdirat(root_fd, path, 0700) == 0 || errno == EEXIST);
	}
	assert_int_equal(mkdirat(root_fd, path, 0700), 0);
}

static void make(enum store_layout layout, const char *id)
{
	char path[STORE_PATH_MAX];

	store_image_path(path, layout, id, NULL);
	make_path(path);
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Makes images over 40 days, most of them close to others; a third as earlier versions did. */
static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/darkroom-page-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	srandom(5);
	for (unsigned i = 0; i < COUNT; i++) {
		uint64_t ms = UINT64_C(1790000000000) + (uint64_t)(random() % 10) * 345600000 +
		              (uint64_t)(random() % 4000000);

		ulid_bound(ms, '0', ids[i]);
		for (unsigned k = 10; k < ULID_LENGTH; k++)
			ids[i][k] = (char)('A' + random() % 8);
		make(i % 3 ? STORE_BY_TIME : STORE_BY_TAIL, ids[i]);
	}
	make(STORE_BY_TIME, "01KAnot-an-image");
	char hidden[2][64] = { ".B/01KA000000000000000000000B",
		               ".1KA/00/01KA000000000000000000000B" };

	make_path(hidden[0]);
	make_path(hidden[1]);
	qsort(ids, COUNT, sizeof ids[0], compare);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(root_fd);
	snprintf(command, sizeof command, "rm -r %s", root);
	return system(command);
}

/* Reads all pages of that size. They must be ids[first..end) in their order. */
static void check_pages(struct store_page page, unsigned size, unsigned first, unsigned end)
{
	char id[COUNT + 1][ULID_LENGTH + 1];
	unsigned n = 0;

	page.id = id;
	page.max = size;
	do {
		assert_int_equal(store_page_read(root_fd, &page), 0);
		for (unsigned i = 0; i < page.count; i++, n++) {
			assert_true(n < end - first);
			assert_string_equal(id[i],
			                    ids[page.is_newest_first ? end - 1 - n : first + n]);
		}
		store_page_advance(&page);
	} while (page.count == size);
	assert_int_equal(n, end - first);
}

static void pages_are_in_order_and_complete(void **state)
{
	static const unsigned sizes[] = { 1, 7, COUNT, COUNT + 1 };

	(void)state;
	for (unsigned newest = 0; newest < 2; newest++) {
		struct store_page page = { .is_newest_first = newest };

		for (unsigned i = 0; i < 4; i++)
			check_pages(page, sizes[i], 0, COUNT);
		memcpy(page.after, ids[49], sizeof page.after);
		check_pages(page, 7, 50, COUNT);
		memcpy(page.before, ids[150], sizeof page.before);
		check_pages(page, 7, 50, 150);
		memcpy(page.before, ids[50], sizeof page.before);
		check_pages(page, 7, 50, 50);
	}
}

static void an_empty_store_has_an_empty_page(void **state)
{
	char id[1][ULID_LENGTH + 1];
	struct store_page page = { .id = id, .max = 1 };
	int fd = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(store_page_read(fd, &page), 0);
	assert_int_equal(page.count, 0);
	store_page_advance(&page);
	assert_string_equal(page.after, "");
	close(fd);
	assert_true(store_page_read(fd, &page) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_in_order_and_complete),
		cmocka_unit_test(an_empty_store_has_an_empty_page),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
