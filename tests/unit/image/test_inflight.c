/* test_inflight.c - images in flight by id, and who waits for them. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/inflight.h"
#include "store/ulid.h"

#define IMAGES 200 /* more than there are buckets */

static struct fake_image {
	struct inflight_image known;
	char id[ULID_LENGTH + 1];
	_Atomic uint32_t width, height;
} * images[IMAGES];
static struct inflight table;

static int set_up(void **state)
{
	(void)state;
	for (unsigned i = 0; i < IMAGES; i++) {
		images[i] = calloc(1, sizeof **images);
		if (!images[i])
			return -1;
		images[i]->known = (struct inflight_image){ .id = images[i]->id,
			                                    .width = &images[i]->width,
			                                    .height = &images[i]->height };
		snprintf(images[i]->id, sizeof images[i]->id, "%026u", i);
	}
	return inflight_init(&table, 1);
}

static int tear_down(void **state)
{
	(void)state;
	inflight_fini(&table);
	for (unsigned i = 0; i < IMAGES; i++)
		free(images[i]);
	return 0;
}

static void an_image_is_found_while_it_is_in_flight(void **state)
{
	uint32_t size[2] = { 7, 8 };

	(void)state;
	for (unsigned i = 0; i < IMAGES; i++) {
		assert_false(inflight_find(&table, images[i]->id, size));
		inflight_add(&table, &images[i]->known);
	}
	assert_int_equal(size[0], 7);
	assert_int_equal(size[1], 8);
	for (unsigned i = 0; i < IMAGES; i++) {
		atomic_store(&images[i]->width, i);
		atomic_store(&images[i]->height, 2 * i);
		assert_true(inflight_find(&table, images[i]->id, size));
		assert_int_equal(size[0], i);
		assert_int_equal(size[1], 2 * i);
	}
	for (unsigned i = 0; i < IMAGES; i++) {
		assert_null(inflight_remove(&table, &images[i]->known));
		assert_false(inflight_find(&table, images[i]->id, size));
	}
}

static void an_id_is_added_once(void **state)
{
	(void)state;
	memcpy(images[1]->id, images[0]->id, sizeof images[1]->id);
	assert_true(inflight_add(&table, &images[0]->known));
	assert_false(inflight_add(&table, &images[1]->known));
	assert_true(inflight_add(&table, &images[2]->known));
	assert_null(inflight_remove(&table, &images[0]->known));
	assert_true(inflight_add(&table, &images[1]->known));
	assert_null(inflight_remove(&table, &images[1]->known));
	assert_null(inflight_remove(&table, &images[2]->known));
}

static void waiters_are_those_that_have_not_gone(void **state)
{
	struct waiter waiter[3] = { 0 };

	(void)state;
	assert_false(inflight_wait(&table, images[0]->id, &waiter[0]));
	assert_false(inflight_cancel(&table, &waiter[0]));
	inflight_add(&table, &images[0]->known);
	for (unsigned i = 0; i < 3; i++)
		assert_true(inflight_wait(&table, images[0]->id, &waiter[i]));
	assert_true(inflight_cancel(&table, &waiter[1]));
	assert_false(inflight_cancel(&table, &waiter[1]));
	assert_ptr_equal(inflight_remove(&table, &images[0]->known), &waiter[2]);
	assert_ptr_equal(waiter[2].next, &waiter[0]);
	assert_null(waiter[0].next);
	assert_false(inflight_cancel(&table, &waiter[0])); /* its event has been sent */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_image_is_found_while_it_is_in_flight, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(an_id_is_added_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waiters_are_those_that_have_not_gone, set_up,
		                                tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
