/* test_remake.c - which images go to the queue of those that lack variants, and their number. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "background/remake.h"
#include "image/image_service.h"
#include "image/remade.h"
#include "store/remake_queue.h"

static struct image_service images;
static struct remake remake;
static struct remake_entry noted;
static unsigned put_count, drops, calls;
static int put_error;
static bool is_locked;

static int lock(pthread_mutex_t *mutex)
{
	assert_ptr_equal(mutex, &remake.feeder.counting);
	assert_false(is_locked);
	is_locked = true;
	return 0;
}

static int unlock(pthread_mutex_t *mutex)
{
	assert_ptr_equal(mutex, &remake.feeder.counting);
	assert_true(is_locked);
	is_locked = false;
	return 0;
}

/* Whoever counts the queue must see the entry and its number together. */
static int put(struct store *s, const char *id, const struct remake_entry *entry)
{
	assert_ptr_equal(s, &images.store);
	assert_string_equal(id, "ID");
	assert_true(is_locked);
	noted = *entry;
	put_count++;
	return put_error;
}

static int drop(struct store *s, const char *id)
{
	(void)s;
	assert_string_equal(id, "ID");
	drops++;
	return 0;
}

/* The entry of the queue; is_queued: there is one. */
static struct remake_entry queued;
static bool is_queued, can_encode;

static int get(struct store *s, const char *id, struct remake_entry *entry)
{
	assert_ptr_equal(s, &images.store);
	assert_string_equal(id, "ID");
	if (is_queued)
		*entry = queued;
	return is_queued ? 0 : -ENOENT;
}

static void call(struct feeder *f)
{
	assert_ptr_equal(f, &remake.feeder);
	calls++;
}

#define pthread_mutex_lock lock
#define pthread_mutex_unlock unlock
#define remake_queue_put put
#define remake_queue_drop drop
#define remake_queue_get get
#define feeder_call call
#define jail_can_encode can_make
#include "background/remake.c"

bool can_make(enum file_format format)
{
	return format == FILE_AVIF && can_encode;
}

static struct conf_epoch epoch = {
	.conf = { .variant_count = 3,
	          .variant = { { .name = "a" }, { .name = "b" }, { .name = "c" } },
	          .overload = { .backfill = CONF_YES } }
};
static struct upload upload = { .service = &images, .epoch = &epoch, .plan = &epoch.plan };
static struct image image = { .upload = &upload, .id = "ID" };

static int set_up(void **state)
{
	(void)state;
	remake.feeder.service = &images;
	atomic_store(&remake.feeder.waiting, 0);
	put_count = drops = calls = 0;
	return 0;
}

static void skipped_variants_are_noted(void **state)
{
	(void)state;
	conf_files_list(&epoch.plan.files, &epoch.conf);
	epoch.plan.skipped = 1 << 0 | 1 << 2;
	assert_true(remake_skipped(&remake, &image));
	assert_int_equal(put_count, 1);
	assert_string_equal(noted.names, "a c");
	assert_true(noted.only_missing);
	assert_int_equal(atomic_load(&remake.feeder.waiting), 1);
	put_error = -ENOSPC;
	assert_false(remake_skipped(&remake, &image));
	assert_int_equal(put_count, 2);
	assert_int_equal(atomic_load(&remake.feeder.waiting), 1);
	assert_false(is_locked);
	put_error = 0;
}

static void other_images_are_not_noted(void **state)
{
	static struct remade remade;

	(void)state;
	put_count = 0;
	epoch.plan.skipped = 0;
	assert_false(remake_skipped(&remake, &image));
	epoch.plan.skipped = 1;
	image.remade = &remade;
	assert_false(remake_skipped(&remake, &image));
	image.remade = NULL;
	epoch.conf.overload.backfill = CONF_NO;
	assert_false(remake_skipped(&remake, &image));
	assert_int_equal(put_count, 0);
}

/* Also without backfill, but not of a format that cannot be made. */
static void files_for_idle_times_are_noted(void **state)
{
	(void)state;
	struct conf_variant *b = &epoch.conf.variant[1];

	memcpy(b->formats, "jpeg, avif", sizeof "jpeg, avif");
	b->when = CONF_WHEN_IDLE;
	conf_files_list(&epoch.plan.files, &epoch.conf);
	epoch.plan.skipped = 1;
	can_encode = false;
	assert_false(remake_skipped(&remake, &image));
	can_encode = true;
	assert_true(remake_skipped(&remake, &image));
	assert_string_equal(noted.names, "b.avif");
	b->when = CONF_WHEN_UPLOAD;
	conf_files_list(&epoch.plan.files, &epoch.conf);
	assert_false(remake_skipped(&remake, &image));
}

static void an_image_that_failed_leaves_the_queue(void **state)
{
	(void)state;
	remake_skipped_end(&remake, &image, 0);
	assert_int_equal(drops, 0);
	assert_int_equal(atomic_load(&remake.backfilled), 1);
	remake_skipped_end(&remake, &image, -EIO);
	assert_int_equal(drops, 1);
	assert_int_equal(atomic_load(&remake.backfilled), 1);
	assert_int_equal(calls, 2);
}

/* The entry of a damaged variant keeps what is asked for already. */
static void a_damaged_variant_is_added_to_the_queue(void **state)
{
	char most[REMAKE_QUEUE_NAMES_MAX];

	(void)state;
	is_queued = false;
	assert_int_equal(queue_file(&remake, "ID", "b"), 0);
	assert_string_equal(noted.names, "b");
	assert_true(noted.only_missing && counter_read(&remake.feeder.waiting) == 1 && calls == 1);
	is_queued = true;
	queued = (struct remake_entry){ .attempts = 2, .names = "a" };
	assert_int_equal(queue_file(&remake, "ID", "b"), 0);
	assert_string_equal(noted.names, "a b");
	assert_true(!noted.only_missing && noted.attempts == 0);
	queued.names[0] = '\0'; /* all of them */
	assert_int_equal(queue_file(&remake, "ID", "b"), 0);
	assert_string_equal(noted.names, "");
	memset(most, 'x', sizeof most - 1);
	most[sizeof most - 1] = '\0';
	memcpy(queued.names, most, sizeof most);
	assert_int_equal(queue_file(&remake, "ID", "b"), 0);
	assert_string_equal(noted.names, most);
	assert_int_equal(counter_read(&remake.feeder.waiting), 1);
}

/* It may have been damaged after it was linked to what was made. */
static void an_entry_that_was_renewed_meanwhile_stays(void **state)
{
	struct feeder_slot slot = { .item.id = "ID", .result = FEEDER_MADE, .is_counted = true };

	(void)state;
	is_queued = true;
	queued = (struct remake_entry){ .attempts = 0 };
	remake_ended(&remake.feeder, &slot);
	assert_true(drops == 0 && calls == 1);
	queued.attempts = 1;
	remake_ended(&remake.feeder, &slot);
	assert_true(drops == 1 && calls == 1);
	queued.attempts = 0; /* it began without an attempt: it lacked nothing */
	slot.is_counted = false;
	remake_ended(&remake.feeder, &slot);
	assert_int_equal(drops, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skipped_variants_are_noted),
		cmocka_unit_test(other_images_are_not_noted),
		cmocka_unit_test(files_for_idle_times_are_noted),
		cmocka_unit_test(an_image_that_failed_leaves_the_queue),
		cmocka_unit_test_setup(a_damaged_variant_is_added_to_the_queue, set_up),
		cmocka_unit_test_setup(an_entry_that_was_renewed_meanwhile_stays, set_up),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
