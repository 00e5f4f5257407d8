/* test_weights.c - tables of weights, compared with the curves in double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "pixel/weights.h"

static const double pi = 3.14159265358979323846;
static struct curves curves;

static int setup(void **state)
{
	(void)state;
	curves_init(&curves);
	return 0;
}

/* Makes the table in memory of exact size, for the address sanitizer. The caller frees it. */
static void *make(struct weights *t, const struct filter *f)
{
	void *memory = malloc((size_t)weights_bytes(f));

	assert_non_null(memory);
	weights_make(t, f, &curves, memory);
	return memory;
}

/* Asserts that the weights of output o sum to one and that its inputs exist. */
static void assert_whole(const struct weights *t, int o)
{
	int sum = 0;

	for (int k = 0; k < t->taps; k++)
		sum += t->w[o * t->taps + k];
	assert_int_equal(sum, WEIGHTS_ONE);
	assert_in_range(t->first[o], 0, t->in - t->taps);
}

static double cube(double x)
{
	return x * x * x;
}

/* Returns the curve at a distance between input and output. */
static double curve(const struct filter *f, double distance)
{
	double x = fabs(distance) / f->wide, u = pi * x;

	switch (f->kind) {
	case FILTER_LANCZOS:
		return u < 1e-9 ? 1 : x >= 3 ? 0 : 3 * sin(u) * sin(u / 3) / (u * u);
	case FILTER_GAUSS:
		return x >= 4 ? 0 : exp(-x * x / 2);
	default:
		return x < 1 ? (cube(2 - x) - 4 * cube(1 - x)) / 6 : x < 2 ? cube(2 - x) / 6 : 0;
	}
}

/* Computes the exact share of each input in output o. The shares sum to 1. */
static void exact(const struct filter *f, int o, double *of_input)
{
	double centre = f->origin + o * f->step, sum = 0;

	for (int x = 0; x < f->in; x++)
		of_input[x] = 0;
	for (int x = -f->in - 2000; x < 2 * f->in + 2000; x++) {
		double w = curve(f, x - centre);

		if (x >= 0 && x < f->in)
			of_input[x] += w;
		else if (f->kind != FILTER_LANCZOS)
			of_input[x < 0 ? 0 : f->in - 1] += w;
		else
			w = 0;
		sum += w;
	}
	for (int x = 0; x < f->in; x++)
		of_input[x] /= sum;
}

/* The rounding error is half a unit per tap. Truncating the Gaussian at 3.2 sigma adds 0.14 %. */
static void assert_exact(const struct filter *f)
{
	double *of_input = malloc(sizeof *of_input * (size_t)f->in);
	struct weights t;
	void *memory = make(&t, f);

	assert_non_null(of_input);
	for (int o = 0; o < t.out; o++) {
		double off = 0;

		exact(f, o, of_input);
		assert_whole(&t, o);
		for (int k = 0; k < t.taps; k++) {
			off += fabs(t.w[o * t.taps + k] - WEIGHTS_ONE * of_input[t.first[o] + k]);
			of_input[t.first[o] + k] = 0;
		}
		for (int x = 0; x < t.in; x++)
			off += fabs(WEIGHTS_ONE * of_input[x]);
		if (off > t.taps + (f->kind == FILTER_GAUSS ? WEIGHTS_ONE * .003 : 0))
			fail_msg("kind %d, %d to %d, step %.12f, output %d is off by %.1f units",
			         f->kind, f->in, f->out, f->step, o, off);
	}
	free(memory);
	free(of_input);
}

static void scaling_weights_are_exact(void **state)
{
	static const int side[][2] = { { 240, 160 }, { 250, 160 }, { 187, 120 }, { 1000, 125 },
		                       { 97, 96 },   { 33, 64 },   { 5, 5 },     { 3, 100 },
		                       { 1, 7 },     { 100, 1 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(side); i++)
		for (int mirrored = 0; mirrored < 2; mirrored++) {
			struct filter whole = filter_lanczos(side[i][0], side[i][1], side[i][0],
			                                     side[i][1], 1, 0, mirrored);
			struct filter part =
				filter_lanczos(side[i][0], side[i][1], side[i][0] - .5, side[i][1],
			                       .7, mirrored - .7, mirrored);

			assert_exact(&whole);
			assert_exact(&part);
		}
}

/* Uses the grids of a blur. Sigma 16/3 with few digits has steps of nearly 4, so that outputs lie
 * slightly before or behind an input. */
static void blurring_weights_are_exact(void **state)
{
	static const double sigma[] = { .5,           1,   8, 4, 5.333333333, 5.3333333329,
		                        2.6666666667, 3.7, 30 };
	static const int side[] = { 1, 2, 7, 48, 49, 50, 240, 1001 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sigma); i++)
		for (size_t k = 0; k < COUNT_OF(side); k++) {
			double step = .75 * sigma[i];
			int count = (int)ceil(side[k] / step) + 5;
			struct filter direct = filter_gauss(side[k], side[k], 0, 1, sigma[i]);
			struct filter to =
				filter_gauss(side[k], count, -1.5 * step, step, sigma[i]);
			struct filter back = filter_spline(count, side[k], -1.5 * step, step);

			assert_exact(&direct);
			assert_exact(&to);
			assert_exact(&back);
		}
}

/* Includes enlarging so far that the centres of outputs lie outside of the picture. */
static void weights_sum_to_one(void **state)
{
	static const int side[] = { 1, 2, 3, 5, 16, 100, 1000 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(side); i++)
		for (size_t o = 0; o < COUNT_OF(side); o++) {
			struct filter f =
				filter_lanczos(side[i], side[o], side[i], side[o], 1, 0, o % 2);
			struct weights t;
			void *memory = make(&t, &f);

			for (int k = 0; k < t.out; k++)
				assert_whole(&t, k);
			free(memory);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scaling_weights_are_exact),
		cmocka_unit_test(blurring_weights_are_exact),
		cmocka_unit_test(weights_sum_to_one),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
