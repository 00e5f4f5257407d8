/* test_store_replace.c - images that are stored already change as a whole. */
#include "support/put_harness.h"

/* Stores an image with a.jpg, b.jpg and others, in this layout. Returns its directory. */
static int store_old(const char *directory)
{
	char command[256];

	snprintf(command, sizeof command,
	         "mkdir -p %s/" ID " && cd %s/" ID " && printf old >a.jpg && printf b >b.jpg && "
	         "printf c >c.jpg && printf d >a.jpf",
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

		pthread_mutex_lock(&store.usage.lock);
		usage_stored(&store.usage, ID, "site", 5);
		pthread_mutex_unlock(&store.usage.lock);
		struct usage_sum before = sum_of_all();

		exchange_count = 0;
		assert_int_equal(put_one(replacement(fd)), 0);
		assert_int_equal(exchange_count, 1);
		close(fd);
		snprintf(command, sizeof command,
		         "cd %s/" ID " && test \"$(cat a.jpg b.jpg c.jpg a.jpf)\" = "
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
	assert_int_equal(exchange_count, 0);
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

static void an_image_that_was_replaced_meanwhile_is_not_replaced(void **state)
{
	(void)state;
	int fd = store_old("01K0/00");

	shell("cp -r 01K0/00/" ID " copy && mv 01K0/00/" ID " old && mv copy 01K0/00/" ID
	      " && printf x >01K0/00/" ID "/new.jpg");
	exchange_count = 0;
	assert_int_equal(put_one(replacement(fd)), -ESTALE);
	assert_int_equal(exchange_count, 0);
	shell("test \"$(cat 01K0/00/" ID "/new.jpg)\" = x && rm -r old");
	assert_int_equal(entries(".incoming") + entries(".trash"), 0);
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
	shell("test \"$(cat 01K0/00/" ID "/a.jpg)\" = old && test \"$(cat 01K0/00/" ID
	      "/b.jpg)\" = b");
	assert_int_equal(entries(".incoming"), 0);
	shell("test \"$(cat .trash/" ID ".0/b.jpg)\" = other");
	assert_int_equal(store.tidy_ns, fake_now + STORE_TIDY_NS);
	fake_now += STORE_TIDY_NS;
	no_fault();
	tidy(&store);
	assert_int_equal(entries(".trash"), 0);
	close(fd);
}

static void what_an_earlier_attempt_has_left_makes_room(void **state)
{
	(void)state;
	shell("mkdir .incoming/" ID " && touch .incoming/" ID "/a.jpg");
	struct store_item item = item_of(STORE_IMAGES, ID);

	assert_int_equal(put_one(item), 0);
	assert_int_equal(entries(".incoming") + entries(".trash"), 0);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_replaced_image_keeps_its_other_files),
		WITH_STORE(an_image_that_is_not_stored_is_not_replaced),
		WITH_STORE(an_image_that_was_replaced_meanwhile_is_not_replaced),
		WITH_STORE(files_that_cannot_be_linked_fail_the_item),
		WITH_STORE(a_replacement_that_is_not_flushed_is_taken_back),
		WITH_STORE(what_an_earlier_attempt_has_left_makes_room),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
