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

static void call(struct feeder *f)
{
	assert_ptr_equal(f, &remake.feeder);
	calls++;
}

#define pthread_mutex_lock lock
#define pthread_mutex_unlock unlock
#define remake_queue_put put
#define remake_queue_drop drop
#define feeder_call call
#include "background/remake.c"

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
	return 0;
}

static void skipped_variants_are_noted(void **state)
{
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skipped_variants_are_noted),
		cmocka_unit_test(other_images_are_not_noted),
		cmocka_unit_test(an_image_that_failed_leaves_the_queue),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
