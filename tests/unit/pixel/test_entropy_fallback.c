/* test_entropy_fallback.c - decoding without the private structures of libjpeg, as with
 * libjpeg-turbo 3: the same pixels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pixel/libjpeg_private.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/picture_fixture.h"

/* This file replaces libjpeg_private.c. */
static bool is_usable;

bool libjpeg_private_is_usable(void)
{
	return is_usable;
}

static struct picture *decoded(const uint8_t *jpeg, size_t size, bool use_private)
{
	struct picture *p;

	is_usable = use_private && LIBJPEG_HAS_PRIVATE;
	p = decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true);
	assert_non_null(p);
	if (!use_private)
		assert_false(decoder.has_entropy);
	return p;
}

static void other_versions_decode_with_libjpeg_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTURE_COUNT; i++) {
		size_t size;
		uint8_t *jpeg = fixture_make(&structures[i], &size);
		struct picture *own = decoded(jpeg, size, true),
			       *theirs = decoded(jpeg, size, false);

		if (!is_same_picture(own, theirs))
			fail_msg("%s", structures[i].name);
		picture_unref(own);
		picture_unref(theirs);
		free(jpeg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_versions_decode_with_libjpeg_alone),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
