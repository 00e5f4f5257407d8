/* test_scale_need.c - the memory that a converting scale is said to need, exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jpeglib.h>

#include "pixel/picture_job.h"
#include "pixel/weights.h"

/* Returns the scratch memory of scaling a plane that is neither turned nor cropped. */
static uint64_t scratch(const struct plane_shape *from, const struct plane_shape *to)
{
	struct filter x = filter_lanczos(from->width, to->width, from->real_width, to->real_width,
	                                 1, 0, false);
	struct filter y = filter_lanczos(from->height, to->height, from->real_height,
	                                 to->real_height, 1, 0, false);

	return resample_bytes(&x, &y);
}

static void a_conversion_needs_its_planes_and_the_halving_of_chroma(void **state)
{
	static const enum chroma chromas[] = { CHROMA_420, CHROMA_444 };
	struct plane_shape source[PLANE_MAX], full[PLANE_MAX], result[PLANE_MAX];

	(void)state;
	for (unsigned c = 0; c < PLANE_MAX; c++) {
		struct plane_shape of_all[PLANE_MAX];

		picture_shapes(of_all, CHROMA_NONE, 1000, 700);
		source[c] = of_all[0];
	}
	for (size_t i = 0; i < 2; i++) {
		struct scaling to = { 1, 300, 210, 1, 1, chromas[i], 0, 0 };

		picture_shapes(result, chromas[i], to.width, to.height);
		for (unsigned c = 0; c < PLANE_MAX; c++)
			full[c] = result[0];
		uint64_t expected = 4 * scratch(&source[0], &full[0]) +
		                    scratch(&full[0], &result[1]) + picture_bytes(result, 3) +
		                    picture_bytes(full, 4) + picture_bytes(full, 2);

		assert_int_equal(picture_scale_bytes(source, 4, JCS_CMYK, &to), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_conversion_needs_its_planes_and_the_halving_of_chroma),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
