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
#include "store/checksum.h"
#include "store/store.h"
#include "store/store_find.h"
#include "store/store_path.h"

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

static const char *shard_of(const char *id)
{
	static char shard[STORE_PATH_MAX];

	store_shard_path(shard, STORE_BY_TIME, id);
	return shard;
}

static void an_image_is_published_and_removed_as_a_whole(void **state)
{
	struct store s;
	char id[ULID_LENGTH + 1];
	const struct store_file files[] = { { "a.jpg", "aaa", 3, NULL },
		                            { "image.json", "{}", 2, NULL } };
	uint64_t size;

	(void)state;
	open_store(&s, 0);
	ulid_new(id);
	assert_int_equal(store_open_file(&s, id, "a.jpg", &size), -ENOENT);
	assert_int_equal(put(&s, id, files, 2), 0);
	assert_true(exists(shard_of(id), id));
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

static void directories_sort_by_time(void **state)
{
	static const char id[] = "01KAX2YNQ0ABCDEFGHJKMNPQRS";
	char path[STORE_PATH_MAX];

	(void)state;
	store_shard_path(path, STORE_BY_TIME, id);
	assert_string_equal(path, "01KA/X2");
	store_image_path(path, STORE_BY_TIME, id, "a.jpg");
	assert_string_equal(path, "01KA/X2/01KAX2YNQ0ABCDEFGHJKMNPQRS/a.jpg");
	store_image_path(path, STORE_BY_TAIL, id, "a.jpg");
	assert_string_equal(path, "RS/01KAX2YNQ0ABCDEFGHJKMNPQRS/a.jpg");
}

/* Moves an image to where earlier versions stored it. */
static void images_of_earlier_versions_are_read_and_removed(void **state)
{
	static const struct store_file file = { "a.jpg", "aaa", 3, NULL };
	char id[ULID_LENGTH + 1], from[256], to[256], path[STORE_PATH_MAX];
	struct store s;
	uint64_t size;

	(void)state;
	open_store(&s, 0);
	ulid_new(id);
	assert_int_equal(put(&s, id, &file, 1), 0);
	store_image_path(path, STORE_BY_TIME, id, NULL);
	snprintf(from, sizeof from, "%s/%s", root, path);
	store_shard_path(path, STORE_BY_TAIL, id);
	snprintf(to, sizeof to, "%s/%s", root, path);
	assert_return_code(mkdir(to, 0755), errno);
	store_image_path(path, STORE_BY_TAIL, id, NULL);
	snprintf(to, sizeof to, "%s/%s", root, path);
	assert_return_code(rename(from, to), errno);
	int fd = store_open_file(&s, id, "a.jpg", &size);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(store_remove(&s, STORE_IMAGES, id), 0);
	assert_int_equal(store_open_file(&s, id, "a.jpg", &size), -ENOENT);
	store_close(&s);
}

static void write_tag(struct store *s, const char *id, char tag[STORE_TAG_MAX])
{
	uint64_t size;
	int fd = store_open_file(s, id, "a.jpg", &size);

	assert_true(fd >= 0);
	store_tag(fd, tag);
	close(fd);
}

static void a_tag_is_the_checksum_or_size_and_time(void **state)
{
	char id[ULID_LENGTH + 1], sum[CHECKSUM_LENGTH + 1], tag[STORE_TAG_MAX];
	struct store s;

	(void)state;
	checksum_of("aaa", 3, sum);
	open_store(&s, 0);
	ulid_new(id);
	assert_int_equal(put(&s, id, &(struct store_file){ "a.jpg", "aaa", 3, sum }, 1), 0);
	write_tag(&s, id, tag);
	/* The file system may have no extended attributes. */
	if (tag[1] != '-')
		assert_string_equal(tag, sum);
	ulid_new(id);
	assert_int_equal(put(&s, id, &(struct store_file){ "a.jpg", "aaa", 3, NULL }, 1), 0);
	write_tag(&s, id, tag);
	assert_memory_equal(tag, "3-", 2);
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
	const struct store_file files[] = { { "a.jpg", "a", 1, NULL },
		                            { STORE_ORIGINAL, "b", 1, NULL } };
	struct store_item item = { .place = place, .id = id, .file = files, .file_count = 2 };

	store_put(s, &item, 1);
	assert_int_equal(item.err, 0);
}

/* With the most careless umask. Originals have the place where a picture was taken. */
static void originals_are_private(void **state)
{
	static const char *const private[] = { ".incoming", ".trash", ".spool", ".quarantine" };
	char id[ULID_LENGTH + 1], directory[STORE_PATH_MAX];
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
	store_image_path(directory, STORE_BY_TIME, id, NULL);
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
	static const char left[] = "01K0000000000000000000000A";
	struct store s;
	char command[512];

	(void)state;
	open_store(&s, 0);
	store_close(&s);
	snprintf(command, sizeof command,
	         "cd %s && mkdir .incoming/%s .trash/%s.0 .trash/y && touch .incoming/%s/a "
	         ".trash/%s.0/b .trash/y/b .incoming/x",
	         root, left, left, left, left);
	assert_int_equal(system(command), 0);
	open_store(&s, 2);
	assert_false(exists(".incoming", left));
	assert_true(exists(".incoming", "x"));
	assert_true(exists(".trash", "y")); /* another's */
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
	const struct store_file files[] = { { "a.jpg", data, 100, NULL },
		                            { "b.jpg", data, sizeof data, NULL } };
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
	assert_false(exists(shard_of(id), id));
	assert_int_equal(put(&s, id, files, 2), 0); /* the next one succeeds */
	store_close(&s);
}

/* An item that fails does not fail the others. */
static void a_batch_shares_two_flushes(void **state)
{
	struct store s;
	unsigned cleared;
	char id[3][ULID_LENGTH + 1];
	const struct store_file good = { "a.jpg", "aaa", 3, NULL },
				bad = { "no/such/place", "b", 1, NULL };
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
	assert_int_equal(s.flushes, 3); /* with that of the start */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(items[i].err, i == 1 ? -ENOENT : 0);
		assert_int_equal(exists(shard_of(id[i]), id[i]), i != 1);
		assert_false(exists(".incoming", id[i]));
	}
	store_put(&s, &items[1], 1);
	assert_int_equal(s.flushes, 3); /* no item to flush */
	assert_int_equal(store_remove(&s, STORE_IMAGES, id[0]), 0);
	assert_int_equal(s.flushes, 4);
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
		cmocka_unit_test(directories_sort_by_time),
		WITH_ROOT(images_of_earlier_versions_are_read_and_removed),
		WITH_ROOT(a_tag_is_the_checksum_or_size_and_time),
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
