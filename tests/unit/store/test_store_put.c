/* test_store_put.c - tags, figures, replaced images, and items that are put again. */
#include <sys/xattr.h>

#include "base/check.h"
#include "store/store_path.h"
#include "store/usage.h"
#include "support/store_faults.h"

/* The lock of the figures, and what is done while it is held. */
static unsigned lock_depth;

static void checked_lock(struct usage *u)
{
	usage_lock(u);
	assert_int_equal(lock_depth++, 0);
}

static void checked_unlock(struct usage *u)
{
	assert_int_equal(lock_depth--, 1);
	usage_unlock(u);
}

static void checked_stored(struct usage *u, const char *id, const char *token, uint64_t bytes)
{
	assert_int_equal(lock_depth, 1);
	usage_stored(u, id, token, bytes);
}

static void checked_removed(struct usage *u, const char *id, const char *token, uint64_t bytes)
{
	assert_int_equal(lock_depth, 1);
	usage_removed(u, id, token, bytes);
}

/* The last attribute that was written, and how many were. */
static char attribute[64];
static unsigned attribute_count;

static int fake_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	(void)fd;
	assert_string_equal(name, STORE_TAG_ATTRIBUTE);
	assert_non_null(value);
	assert_true(size < sizeof attribute);
	assert_int_equal(flags, 0);
	memcpy(attribute, value, size);
	attribute[size] = '\0';
	attribute_count++;
	return 0;
}

static int exchange_error;
static unsigned exchange_count;

static int fake_renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	exchange_count++;
	if (exchange_error) {
		errno = exchange_error;
		return -1;
	}
	return renameat2(from_at, from, to_at, to, flags);
}

/* The lock of the list of leftovers. */
static unsigned list_depth;

static int list_lock(pthread_mutex_t *lock)
{
	assert_int_equal(list_depth++, 0);
	return pthread_mutex_lock(lock);
}

static int list_unlock(pthread_mutex_t *lock)
{
	assert_int_equal(list_depth--, 1);
	return pthread_mutex_unlock(lock);
}

#include "store/directory.c"
#define pthread_mutex_lock list_lock
#define pthread_mutex_unlock list_unlock
#include "store/leftovers.c"
#undef pthread_mutex_lock
#undef pthread_mutex_unlock
#include "store/store.c"
#include "store/store_find.c"
#define renameat2 fake_renameat2
#include "store/store_replace.c"
#undef renameat2
#define fsetxattr fake_fsetxattr
#define usage_lock checked_lock
#define usage_unlock checked_unlock
#define usage_stored checked_stored
#define usage_removed checked_removed
#include "store/store_put.c"

#define ID "01K0000000000000000000000A"
#define SUM "0123456789abcdef0123456789abcdef"

static struct store store;
static unsigned descriptors;

static int setup(void **state)
{
	unsigned cleared;

	(void)state;
	no_fault();
	fake_now = NS_PER_S;
	lock_depth = attribute_count = exchange_count = 0;
	exchange_error = 0;
	snprintf(test_root, sizeof test_root, "/tmp/darkroom-put-XXXXXX");
	if (!mkdtemp(test_root) || store_open(&store, test_root, true, &cleared))
		return -1;
	descriptors = open_descriptors();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	no_fault();
	assert_int_equal(lock_depth, 0);
	assert_int_equal(open_descriptors(), descriptors);
	store_close(&store);
	remove_test_root();
	return 0;
}

static const struct store_file two_files[] = { { "a.jpg", "content", 7, SUM },
	                                       { "b.jpg", "other", 5, NULL } };

static struct store_item item_of(enum store_place place, const char *id)
{
	return (struct store_item){ .place = place,
		                    .id = id,
		                    .file = two_files,
		                    .file_count = 2,
		                    .token = "site",
		                    .old_fd = -1,
		                    .is_published = true /* of an earlier attempt */ };
}

/* Puts the item, and checks that what lies behind it is left alone. */
static int put_one(struct store_item item)
{
	struct store_item items[2] = { item, item_of(STORE_SPOOL, "01K0000000000000000000000Z") };

	items[1].err = -ENOENT;
	store_put(&store, items, 1);
	assert_int_equal(items[1].err, -ENOENT);
	assert_false(exists(".spool/01K0000000000000000000000Z"));
	return items[0].err;
}

static struct usage_sum sum_of_all(void)
{
	return usage_total(&store.usage).all;
}

/* ---- tags ---- */

static void a_tag_is_written_for_files_with_a_checksum(void **state)
{
	struct store_item item = item_of(STORE_SPOOL, ID);

	(void)state;
	assert_int_equal(put_one(item), 0);
	assert_int_equal(attribute_count, 1); /* not for the second */
	assert_string_equal(attribute, SUM);
	assert_int_equal(store_unspool(&store, ID), 0);
	item.expires = UINT64_C(4102444801);
	assert_int_equal(put_one(item), 0);
	assert_string_equal(attribute, SUM ".4102444801");
	assert_int_equal(store_unspool(&store, ID), 0);
	attribute_count = 0;
	item.expires = UINT64_C(41024448010); /* too long for a tag */
	assert_int_equal(put_one(item), 0);
	assert_int_equal(attribute_count, 0);
	assert_int_equal(store_unspool(&store, ID), 0);
	fail_call(CALL_WRITE, 1, ENOSPC);
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), -ENOSPC);
	assert_int_equal(attribute_count, 0);
}

/* ---- items that fail ---- */

static void a_directory_for_the_image_is_made_three_times(void **state)
{
	(void)state;
	fail_calls(CALL_RENAMEAT, ENOENT);
	assert_int_equal(put_one(item_of(STORE_IMAGES, ID)), -ENOENT);
	assert_int_equal(calls[CALL_RENAMEAT], 4);
}

static void an_item_without_a_place_is_put_once(void **state)
{
	(void)state;
	fail_call(CALL_RENAMEAT, 1, ENOENT);
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), -ENOENT);
	assert_int_equal(calls[CALL_MKDIRAT], 1);
	assert_int_equal(entries(".incoming") + entries(".spool") + entries(".trash"), 0);
}

static void a_failed_item_is_not_taken_for_a_published_one(void **state)
{
	(void)state;
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), 0);
	fail_call(CALL_WRITE, 1, EIO);
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), -EIO);
	assert_true(exists(".spool/" ID)); /* the earlier one */
	assert_int_equal(entries(".incoming"), 0);
}

static void one_good_item_is_enough_for_a_flush(void **state)
{
	static const struct store_file bad = { "no/such/place", "b", 1, NULL };
	struct store_item items[2] = { item_of(STORE_SPOOL, "01K0000000000000000000000B"),
		                       item_of(STORE_SPOOL, ID) };

	(void)state;
	items[0].file = &bad;
	items[0].file_count = 1;
	store_put(&store, items, 2);
	assert_int_equal(items[0].err, -ENOENT);
	assert_int_equal(items[1].err, 0);
	assert_int_equal(store.flushes, 2);
}

static void a_failed_flush_does_not_touch_what_is_behind_the_items(void **state)
{
	struct store_item items[2] = { item_of(STORE_SPOOL, ID), { .err = 0 } };

	(void)state;
	fail_call(CALL_SYNCFS, 1, EIO);
	store_put(&store, items, 1);
	assert_int_equal(items[0].err, -EIO);
	assert_int_equal(items[1].err, 0);
}

static void what_cannot_be_discarded_keeps_its_id_in_the_trash(void **state)
{
	(void)state;
	fail_calls(CALL_UNLINKAT, EIO);
	write_most = 0;
	assert_int_equal(put_one(item_of(STORE_SPOOL, ID)), -EIO);
	shell("test -d .trash/" ID ".0");
}

/* The daemon holds the old one open. */
static void items_go_into_a_root_that_was_made_again(void **state)
{
	char command[512];
	struct store_item items[2] = { item_of(STORE_SPOOL, ID),
		                       item_of(STORE_IMAGES, "01K0000000000000000000000B") };

	(void)state;
	for (unsigned turn = 1; turn <= 2; turn++) {
		snprintf(command, sizeof command, "rm -r %s && mkdir -m 700 %s", test_root,
		         test_root);
		assert_int_equal(system(command), 0);
		if (turn == 1) {
			assert_int_equal(put_one(items[0]), 0);
		} else {
			store_put(&store, items, 2);
			assert_int_equal(items[0].err, 0);
			assert_int_equal(items[1].err, 0);
			assert_true(exists("01K0/00/01K0000000000000000000000B/b.jpg"));
		}
		assert_true(exists(".spool/" ID "/b.jpg"));
		assert_int_equal(store.openings, turn);
		assert_int_equal(store_unspool(&store, ID), 0);
	}
}

/* ---- figures and replaced images ---- */

static void figures_are_those_of_all_files_but_the_document(void **state)
{
	static const struct store_file files[] = { { "a.jpg", "content", 7, NULL },
		                                   { STORED_IMAGE, "{}", 2, NULL },
		                                   { "b.jpg", "other", 5, NULL } };
	struct store_item item = item_of(STORE_IMAGES, ID);

	(void)state;
	usage_switch(&store.usage, &store, true);
	while (usage_count(&store.usage, &store, 100) == 0)
		continue;
	item.file = files;
	item.file_count = 3;
	assert_int_equal(put_one(item), 0);
	assert_int_equal(sum_of_all().images, 1);
	assert_int_equal(sum_of_all().bytes, 12);
	fail_call(CALL_RENAMEAT, 1, EIO);
	item.id = "01K0000000000000000000000B";
	assert_int_equal(put_one(item), -EIO);
	assert_int_equal(sum_of_all().images, 1);
}

/* Stores an image with a.jpg, c.jpg and d.jpg, in this layout. Returns its directory. */
static int store_old(const char *directory)
{
	char command[256];

	snprintf(command, sizeof command,
	         "mkdir -p %s/" ID " && cd %s/" ID " && printf old >a.jpg && printf c >c.jpg && "
	         "printf d >d.jpg",
	         directory, directory);
	shell(command);
	int fd = store_open_directory(&store, ID);

	assert_true(fd >= 0);
	return fd;
}

static struct store_item replacement(int old_fd)
{
	struct store_item item = item_of(STORE_REPLACED, ID);

	item.old_fd = old_fd;
	item.old_bytes = 5;
	item.new_bytes = 14;
	return item;
}

static void a_replaced_image_keeps_its_other_files(void **state)
{
	static const char *const layouts[] = { "01K0/00", "0A" };

	(void)state;
	usage_switch(&store.usage, &store, true);
	while (usage_count(&store.usage, &store, 100) == 0)
		continue;
	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		char command[256];
		int fd = store_old(layouts[i]);

		checked_lock(&store.usage);
		checked_stored(&store.usage, ID, "site", 5);
		checked_unlock(&store.usage);
		struct usage_sum before = sum_of_all();

		exchange_count = 0;
		assert_int_equal(put_one(replacement(fd)), 0);
		assert_int_equal(exchange_count, i + 1);
		close(fd);
		snprintf(command, sizeof command,
		         "cd %s/" ID " && test \"$(cat a.jpg b.jpg c.jpg d.jpg)\" = "
		         "contentothercd && test $(ls | wc -l) = 4",
		         layouts[i]);
		shell(command);
		assert_int_equal(entries(".incoming") + entries(".trash"), 0);
		assert_int_equal(sum_of_all().images, before.images);
		assert_int_equal(sum_of_all().bytes, before.bytes + 9);
		shell("rm -r 01K0 0A 2>/dev/null || true");
	}
}

static void an_image_that_is_not_stored_is_not_replaced(void **state)
{
	(void)state;
	int fd = store_old("01K0/00");

	shell("rm -r 01K0");
	assert_int_equal(put_one(replacement(fd)), -ENOENT);
	assert_int_equal(exchange_count, STORE_LAYOUT_COUNT);
	assert_int_equal(entries(".incoming"), 0);
	close(fd);
	fd = store_old("01K0/00");
	exchange_count = 0;
	exchange_error = EIO;
	assert_int_equal(put_one(replacement(fd)), -EIO);
	assert_int_equal(exchange_count, 1);
	shell("test \"$(cat 01K0/00/" ID "/a.jpg)\" = old");
	assert_int_equal(entries(".incoming"), 0);
	close(fd);
}

static void files_that_cannot_be_linked_fail_the_item(void **state)
{
	(void)state;
	int fd = store_old("01K0/00");

	fail_call(CALL_FDOPENDIR, 1, ENOMEM);
	assert_int_equal(put_one(replacement(fd)), -ENOMEM);
	fail_call(CALL_OPENAT, 4, EMFILE); /* its directory, two files, the old directory */
	assert_int_equal(put_one(replacement(fd)), -EMFILE);
	no_fault();
	assert_int_equal(open_descriptors(), descriptors + 1);
	shell("mkdir 01K0/00/" ID "/directory"); /* cannot be linked */
	assert_int_equal(put_one(replacement(fd)), -EPERM);
	shell("test \"$(cat 01K0/00/" ID "/a.jpg)\" = old");
	assert_int_equal(entries(".incoming") + entries(".trash"), 0);
	close(fd);
}

/* The old files return, and the new ones go to the trash. */
static void a_replacement_that_is_not_flushed_is_taken_back(void **state)
{
	(void)state;
	int fd = store_old("01K0/00");

	fail_call(CALL_SYNCFS, 2, EIO);
	assert_int_equal(put_one(replacement(fd)), -EIO);
	shell("test \"$(cat 01K0/00/" ID "/a.jpg)\" = old && test ! -e 01K0/00/" ID "/b.jpg");
	assert_int_equal(entries(".incoming"), 0);
	shell("test -f .trash/" ID ".0/b.jpg");
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	fake_now += STORE_TIDY_NS;
	no_fault();
	store_tidy(&store);
	assert_int_equal(entries(".trash"), 0);
	close(fd);
}

static void a_replacement_that_cannot_go_to_the_trash_is_noted(void **state)
{
	static const int errors[] = { EIO, ENOENT };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(errors); i++) {
		shell("mkdir .incoming/" ID);
		exchange_error = EIO;
		fail_call(CALL_RENAMEAT, 1, errors[i]);
		store_withdraw_exchange(&store, ID);
		assert_int_equal(store.leftovers.count, errors[i] == EIO);
		no_fault();
		shell("rmdir .incoming/" ID);
		leftovers_forget(&store.leftovers, ID);
	}
	shell("mkdir .incoming/" ID);
	store_withdraw_exchange(&store, ID);
	assert_int_equal(store.leftovers.count, 0);
	assert_int_equal(entries(".trash"), 1);
}

static void unfinished_images_are_listed_under_the_lock(void **state)
{
	char all[LEFTOVERS_MAX][ULID_LENGTH + 1];

	(void)state;
	shell("mkdir .incoming/" ID " .incoming/other");
	fail_call(CALL_FDOPENDIR, 1, ENOMEM);
	leftovers_add_all(&store.leftovers, store.incoming_fd);
	assert_int_equal(store.leftovers.count, 0);
	assert_int_equal(open_descriptors(), descriptors);
	fail_call(CALL_OPENAT, 1, EMFILE);
	leftovers_add_all(&store.leftovers, store.incoming_fd);
	assert_int_equal(store.leftovers.count, 0);
	no_fault();
	leftovers_add_all(&store.leftovers, store.incoming_fd);
	assert_int_equal(leftovers_take(&store.leftovers, all), 1);
	assert_string_equal(all[0], ID);
	assert_int_equal(list_depth, 0);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_tag_is_written_for_files_with_a_checksum),
		WITH_STORE(a_directory_for_the_image_is_made_three_times),
		WITH_STORE(an_item_without_a_place_is_put_once),
		WITH_STORE(a_failed_item_is_not_taken_for_a_published_one),
		WITH_STORE(one_good_item_is_enough_for_a_flush),
		WITH_STORE(a_failed_flush_does_not_touch_what_is_behind_the_items),
		WITH_STORE(what_cannot_be_discarded_keeps_its_id_in_the_trash),
		WITH_STORE(items_go_into_a_root_that_was_made_again),
		WITH_STORE(figures_are_those_of_all_files_but_the_document),
		WITH_STORE(a_replaced_image_keeps_its_other_files),
		WITH_STORE(an_image_that_is_not_stored_is_not_replaced),
		WITH_STORE(files_that_cannot_be_linked_fail_the_item),
		WITH_STORE(a_replacement_that_is_not_flushed_is_taken_back),
		WITH_STORE(a_replacement_that_cannot_go_to_the_trash_is_noted),
		WITH_STORE(unfinished_images_are_listed_under_the_lock),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
