/* test_cost.c - what the model of CPU time learns, and what files tell it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/cost.h"
#include "base/clock.h"
#include "base/random.h"

static struct cost c;
static uint64_t state_of_random = 1;

/* Returns a number between 0 and 1. */
static double draw(void)
{
	state_of_random = random_mix(state_of_random + 1);
	return (double)(state_of_random >> 11) / 9007199254740992.0;
}

/* A photograph of 0.01 to 24 megapixels, with 1 to 6 bits for each. */
static struct cost_facts draw_file(void)
{
	double pixels = 1e4 * pow(2400, draw());

	return (struct cost_facts){ .pixels = pixels,
		                    .made = fmin(pixels, 5e5),
		                    .bytes = (uint64_t)(pixels * (1 + 5 * draw()) / 8),
		                    .is_progressive = draw() < 0.2 };
}

/* The time of a daemon with other weights than the prior's, of which up to a tenth is chance. */
static double true_ms(const struct cost_facts *f)
{
	double ms = 3 + 8e-6 * (double)f->bytes + 0.4e-6 * f->pixels + 5e-6 * f->made;

	if (f->is_progressive)
		ms += 12e-6 * f->pixels;
	return ms * (0.9 + 0.2 * draw());
}

/* Returns how many of a thousand files are estimated within 25 %. */
static unsigned good_estimates(bool learns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 1000; i++) {
		struct cost_facts f = draw_file();
		double ms = true_ms(&f), ratio = (double)cost_ns(&c, &f) / NS_PER_MS / ms;

		n += ratio > 0.75 && ratio < 1.25;
		if (learns)
			cost_learn(&c, &f, (uint64_t)(ms * NS_PER_MS));
	}
	return n;
}

static void nine_of_ten_estimates_are_within_a_quarter(void **state)
{
	(void)state;
	cost_init(&c);
	assert_true(good_estimates(false) < 500);
	for (unsigned i = 0; i < 50; i++) {
		struct cost_facts f = draw_file();

		cost_learn(&c, &f, (uint64_t)(true_ms(&f) * NS_PER_MS));
	}
	assert_true(good_estimates(true) > 900);
	assert_true(good_estimates(false) > 950);
}

static void errors_of_rounding_do_not_grow(void **state)
{
	(void)state;
	cost_init(&c);
	for (unsigned i = 0; i < 100; i++)
		good_estimates(true);
	assert_true(good_estimates(false) > 950);
}

/* A hundred thousand images of one size do not make those of other sizes forgotten. */
static void equal_images_do_not_spoil_the_others(void **state)
{
	const struct cost_facts f = { .bytes = 200000, .pixels = 750e3, .made = 500e3 };

	(void)state;
	cost_init(&c);
	good_estimates(true);
	for (unsigned i = 0; i < 100000; i++)
		cost_learn(&c, &f, (uint64_t)(true_ms(&f) * NS_PER_MS));
	assert_true(good_estimates(false) > 900);
}

/* A client sends files that take a thousand times what they should, and others that take nothing.
 */
static void crafted_files_do_not_make_estimates_absurd(void **state)
{
	static const uint64_t times[] = { 60 * NS_PER_S, 1, 0 };
	const struct cost_facts f = { .bytes = 60000, .pixels = 1000, .is_progressive = true };
	struct cost prior;

	(void)state;
	cost_init(&prior);
	for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++) {
		cost_init(&c);
		for (unsigned k = 0; k < 1000; k++)
			cost_learn(&c, &f, times[i]);
		for (unsigned k = 0; k < 1000; k++) {
			struct cost_facts other = draw_file();
			double ratio =
				(double)cost_ns(&c, &other) / (double)cost_ns(&prior, &other);

			assert_true(ratio > 0.12 && ratio < 8.1);
		}
	}
}

static void a_header_tells_pixels_and_coding(void **state)
{
	static const uint8_t file[] = { 0xff, 0xd8, 0xff, 0xe1, 0, 4,    0xff, 0xc0, /* in EXIF */
		                        0xff, 0xff, 0xc4, 0,    2, 0xff, 0xc2, 0,    11,
		                        8,    1,    2,    3,    4, 1,    1,    0x11, 0 };

	(void)state;
	struct cost_facts f = cost_facts_of_file(file, sizeof file);

	assert_int_equal(f.bytes, sizeof file);
	assert_int_equal(f.height, 0x102);
	assert_int_equal(f.width, 0x304);
	assert_true(f.is_progressive);
	for (size_t size = 0; size < sizeof file; size++) { /* it is cut anywhere */
		uint8_t *copy = malloc(size ? size : 1);

		assert_non_null(copy);
		memcpy(copy, file, size);
		f = cost_facts_of_file(copy, size);
		assert_true(f.width == 0 ? f.pixels == (double)size * 4 : f.width == 0x304);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nine_of_ten_estimates_are_within_a_quarter),
		cmocka_unit_test(errors_of_rounding_do_not_grow),
		cmocka_unit_test(equal_images_do_not_spoil_the_others),
		cmocka_unit_test(crafted_files_do_not_make_estimates_absurd),
		cmocka_unit_test(a_header_tells_pixels_and_coding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
