/* test_remade.c - remade images have places among those in flight. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "image/remade.c"

static void a_place_that_is_refused_is_not_kept(void **state)
{
	static struct image_service images;
	static struct conf_epoch epoch = { .conf = { .limits = { .images_in_flight = 2 } } };
	static const struct upload upload = { .service = &images, .epoch = &epoch };

	(void)state;
	assert_int_equal(take_place(&upload), 0);
	assert_int_equal(take_place(&upload), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(take_place(&upload), -EAGAIN);
	assert_int_equal(atomic_load(&images.in_flight), 2);
	atomic_fetch_sub(&images.in_flight, 1);
	assert_int_equal(take_place(&upload), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_that_is_refused_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
