/* test_admission.c - the image whose time is that of its upload. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "image/admission.c"

static void the_first_good_image_of_an_upload_is_measured(void **state)
{
	static struct upload recovered, upload = { .begun_ns = 1 };
	static struct image bad, good;

	(void)state;
	atomic_store(&bad.has_failed, true);
	assert_false(is_measured(&recovered, &good)); /* nobody waits for it */
	assert_false(is_measured(&upload, &bad));
	assert_true(is_measured(&upload, &good));
	assert_false(is_measured(&upload, &good));
	assert_false(is_measured(&upload, &bad));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_good_image_of_an_upload_is_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
