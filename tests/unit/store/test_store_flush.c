/* test_store_flush.c - a disk that cannot be flushed: no image is acknowledged, and none stays
 * visible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>

static int fake_syncfs(int fd);

#define syncfs fake_syncfs
#include "store/store.c"
#include "store/store_find.c"
#include "store/store_put.c"
#undef syncfs

static unsigned flushes_left; /* before one fails */

static int fake_syncfs(int fd)
{
	(void)fd;
	if (flushes_left-- > 0)
		return 0;
	errno = EIO;
	return -1;
}

static char root[64];
static struct store store;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	flushes_left = 1; /* of the start */
	log_set_level(LOG_LEVEL_ERROR);
	snprintf(root, sizeof root, "/tmp/darkroom-flush-XXXXXX");
	return mkdtemp(root) ? store_open(&store, root, true, &cleared) : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	store_close(&store);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static unsigned entries(int at)
{
	int fd = openat(at, ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fdopendir(fd);
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* Puts two good items and one that cannot be written, while good_flushes flushes succeed. */
static void put_all(unsigned good_flushes, const int expected[3])
{
	static const struct store_file good = { "a.jpg", "aaa", 3, NULL },
				       bad = { "no/such/place", "b", 1, NULL };
	char id[3][ULID_LENGTH + 1];
	struct store_item items[3];
	uint64_t size;

	for (unsigned i = 0; i < 3; i++) {
		ulid_new(id[i]);
		items[i] = (struct store_item){ .place = i == 2 ? STORE_SPOOL : STORE_IMAGES,
			                        .id = id[i],
			                        .file = i == 1 ? &bad : &good,
			                        .file_count = 1 };
	}
	flushes_left = good_flushes;
	store_put(&store, items, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(items[i].err, expected[i]);
	int fd = store_open_file(&store, id[0], "a.jpg", &size);

	assert_int_equal(fd >= 0, expected[0] == 0);
	if (fd >= 0)
		close(fd);
	assert_int_equal(store_is_spooled(&store, id[2]), expected[2] == 0);
	assert_int_equal(entries(store.incoming_fd), 0);
	/* Their names may return as long as no flush succeeds: then they need their files. */
	assert_int_equal(entries(store.trash_fd), good_flushes == 1 ? 2 : 0);
	flushes_left = 1;
	store.tidy_ns = store.tidy_ns ? 1 : 0;
	tidy(&store);
	assert_int_equal(entries(store.trash_fd), 0);
}

static void a_failed_flush_fails_all_items(void **state)
{
	(void)state;
	put_all(0, (const int[3]){ -EIO, -ENOENT, -EIO }); /* of the files */
	put_all(1, (const int[3]){ -EIO, -ENOENT, -EIO }); /* of the names */
	put_all(2, (const int[3]){ 0, -ENOENT, 0 });
}

static void a_removal_that_cannot_be_flushed_is_an_error(void **state)
{
	static const struct store_file file = { "a.jpg", "aaa", 3, NULL };
	char id[ULID_LENGTH + 1];
	struct store_item item = {
		.place = STORE_IMAGES, .id = id, .file = &file, .file_count = 1
	};

	(void)state;
	ulid_new(id);
	flushes_left = 2;
	store_put(&store, &item, 1);
	assert_int_equal(item.err, 0);
	assert_int_equal(store_remove(&store, STORE_IMAGES, id), -EIO);
	/* Its name may return after a crash, then with its files. */
	assert_int_equal(entries(store.trash_fd), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_failed_flush_fails_all_items, setup, teardown),
		cmocka_unit_test_setup_teardown(a_removal_that_cannot_be_flushed_is_an_error, setup,
		                                teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
