/* test_store.c - publishing by one rename, removal, leftovers, and failures of writing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"
#include "store/store.h"
#include "store/store_find.h"

static char root[64];

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/darkroom-store-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static struct store *open_store(struct store *s, unsigned cleared_expected)
{
	unsigned cleared;

	assert_int_equal(store_open(s, root, false, &cleared), 0);
	assert_int_equal(cleared, cleared_expected);
	return s;
}

static int put(struct store *s, const char *id, const struct store_file *files, unsigned count)
{
	struct store_item item = {
		.place = STORE_IMAGES, .id = id, .file = files, .file_count = count
	};

	store_put(s, &item, 1);
	return item.err;
}

static bool exists(const char *directory, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s/%s", root, directory, name);
	return stat(path, &st) == 0;
}

static void an_image_is_published_and_removed_as_a_whole(void **state)
{
	struct store s;
	char id[ULID_LENGTH + 1];
	const struct store_file files[] = { { "a.jpg", "aaa", 3 }, { "image.json", "{}", 2 } };
	uint64_t size;

	(void)state;
	open_store(&s, 0);
	ulid_new(id);
	assert_int_equal(store_open_file(&s, id, "a.jpg", &size), -ENOENT);
	assert_int_equal(put(&s, id, files, 2), 0);
	assert_true(exists(id + ULID_LENGTH - 2, id));
	assert_false(exists(".incoming", id));
	int fd = store_open_file(&s, id, "a.jpg", &size);
	char data[4] = "";

	assert_true(fd >= 0);
	assert_int_equal(size, 3);
	assert_int_equal(read(fd, data, 3), 3);
	assert_string_equal(data, "aaa");
	close(fd);
	assert_int_equal(store_open_file(&s, id, "b.jpg", &size), -ENOENT);
	assert_int_equal(store_remove(&s, STORE_IMAGES, id), 0);
	assert_int_equal(store_remove(&s, STORE_IMAGES, id), -ENOENT);
	assert_int_equal(store_open_file(&s, id, "a.jpg", &size), -ENOENT);
	store_close(&s);
}

static mode_t mode_of(const char *directory, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s/%s", root, directory, name);
	assert_return_code(lstat(path, &st), errno);
	return st.st_mode & 07777;
}

/* Publishes an image as a picture and its original. */
static void put_original(struct store *s, enum store_place place, const char *id)
{
	const struct store_file files[] = { { "a.jpg", "a", 1 }, { STORE_ORIGINAL, "b", 1 } };
	struct store_item item = { .place = place, .id = id, .file = files, .file_count = 2 };

	store_put(s, &item, 1);
	assert_int_equal(item.err, 0);
}

/* With the most careless umask. Originals have the place where a picture was taken. */
static void originals_are_private(void **state)
{
	static const char *const private[] = { ".incoming", ".trash", ".spool", ".quarantine" };
	char id[ULID_LENGTH + 1], directory[64];
	mode_t mask = umask(0);
	struct store s;

	(void)state;
	assert_return_code(rmdir(root), errno);
	open_store(&s, 0);
	assert_int_equal(mode_of("", ""), 0750);
	for (size_t i = 0; i < sizeof private / sizeof private[0]; i++)
		assert_int_equal(mode_of(private[i], ""), 0700);
	ulid_new(id);
	put_original(&s, STORE_IMAGES, id);
	snprintf(directory, sizeof directory, "%s/%s", id + ULID_LENGTH - 2, id);
	assert_int_equal(mode_of(directory, ""), 0755);
	assert_int_equal(mode_of(directory, "a.jpg"), 0644);
	assert_int_equal(mode_of(directory, STORE_ORIGINAL), 0600);
	put_original(&s, STORE_SPOOL, id);
	snprintf(directory, sizeof directory, ".spool/%s", id);
	assert_int_equal(mode_of(directory, ""), 0700);
	assert_int_equal(mode_of(directory, "a.jpg"), 0600);
	store_close(&s);
	umask(mask);
}

/* A store of an earlier version. The mode of the root is the operator's. */
static void an_existing_store_becomes_private(void **state)
{
	char command[256];
	struct store s;

	(void)state;
	open_store(&s, 0);
	store_close(&s);
	snprintf(command, sizeof command, "chmod 755 %s %s/.spool %s/.quarantine", root, root,
	         root);
	assert_int_equal(system(command), 0);
	open_store(&s, 0);
	assert_int_equal(mode_of("", ""), 0755);
	assert_int_equal(mode_of(".spool", ""), 0700);
	assert_int_equal(mode_of(".quarantine", ""), 0700);
	store_close(&s);
}

static void leftovers_are_removed_at_startup(void **state)
{
	struct store s;
	char command[512];

	(void)state;
	open_store(&s, 0);
	store_close(&s);
	snprintf(command, sizeof command,
	         "mkdir -p %s/.incoming/x %s/.trash/y && touch %s/.incoming/x/a %s/.trash/y/b",
	         root, root, root, root);
	assert_int_equal(system(command), 0);
	open_store(&s, 2);
	assert_false(exists(".incoming", "x"));
	assert_false(exists(".trash", "y"));
	store_close(&s);
}

static void a_second_daemon_cannot_open_the_store(void **state)
{
	struct store s, t;
	unsigned cleared;

	(void)state;
	open_store(&s, 0);
	assert_int_equal(store_open(&t, root, true, &cleared), -EWOULDBLOCK);
	store_close(&s);
	open_store(&t, 0);
	store_close(&t);
}

static void a_failed_write_leaves_no_files(void **state)
{
	struct store s;
	char id[ULID_LENGTH + 1];
	static char data[1 << 16];
	const struct store_file files[] = { { "a.jpg", data, 100 },
		                            { "b.jpg", data, sizeof data } };
	struct rlimit before, small;

	(void)state;
	open_store(&s, 0);
	ulid_new(id);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 5000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(put(&s, id, files, 2), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_false(exists(".incoming", id));
	assert_false(exists(id + ULID_LENGTH - 2, id));
	assert_int_equal(put(&s, id, files, 2), 0); /* the next one succeeds */
	store_close(&s);
}

/* An item that fails does not fail the others. */
static void a_batch_shares_two_flushes(void **state)
{
	struct store s;
	unsigned cleared;
	char id[3][ULID_LENGTH + 1];
	const struct store_file good = { "a.jpg", "aaa", 3 }, bad = { "no/such/place", "b", 1 };
	struct store_item items[3];

	(void)state;
	assert_int_equal(store_open(&s, root, true, &cleared), 0);
	for (unsigned i = 0; i < 3; i++) {
		ulid_new(id[i]);
		items[i] = (struct store_item){ .place = STORE_IMAGES,
			                        .id = id[i],
			                        .file = i == 1 ? &bad : &good,
			                        .file_count = 1 };
	}
	store_put(&s, items, 3);
	assert_int_equal(s.flushes, 2);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(items[i].err, i == 1 ? -ENOENT : 0);
		assert_int_equal(exists(id[i] + ULID_LENGTH - 2, id[i]), i != 1);
		assert_false(exists(".incoming", id[i]));
	}
	store_put(&s, &items[1], 1);
	assert_int_equal(s.flushes, 2); /* no item to flush */
	assert_int_equal(store_remove(&s, STORE_IMAGES, id[0]), 0);
	assert_int_equal(s.flushes, 3);
	store_close(&s);
}

static void an_unusable_root_is_an_error(void **state)
{
	struct store s;
	unsigned cleared;

	(void)state;
	assert_int_equal(store_open(&s, "/proc/no/such/place", false, &cleared), -ENOENT);
	assert_int_equal(store_open(&s, "/dev/null", false, &cleared), -ENOTDIR);
}

int main(void)
{
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_ROOT(an_image_is_published_and_removed_as_a_whole),
		WITH_ROOT(originals_are_private),
		WITH_ROOT(an_existing_store_becomes_private),
		WITH_ROOT(leftovers_are_removed_at_startup),
		WITH_ROOT(a_second_daemon_cannot_open_the_store),
		WITH_ROOT(a_failed_write_leaves_no_files),
		WITH_ROOT(a_batch_shares_two_flushes),
		cmocka_unit_test(an_unusable_root_is_an_error),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
