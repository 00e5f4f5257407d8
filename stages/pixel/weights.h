/*
 * weights.h - one-dimensional filters as tables of integer weights.
 *
 * Scaling (Lanczos-3), sampling a Gaussian-blurred row, and interpolating such samples with a cubic
 * B-spline are all the same thing: every output is a weighted sum of neighbouring inputs. Pure
 * functions on memory of the caller.
 */
#ifndef DARKROOM_PIXEL_WEIGHTS_H
#define DARKROOM_PIXEL_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIGHTS_ONE 16384
#define WEIGHTS_TAPS_MAX \
	1280            /* enough for the Gaussian of the largest sigma that the planner allows */
#define WEIGHTS_LUT 256 /* samples of a filter's curve per unit */

enum filter_kind { FILTER_LANCZOS = 1, FILTER_GAUSS, FILTER_SPLINE };

/* Output o lies at origin + o * step among the inputs, whose centres have whole numbers. */
struct filter {
	enum filter_kind kind;
	int in, out;
	double origin, step; /* step < 0: mirrored */
	double wide; /* of the curve, in inputs: Lanczos the reduction (>= 1), Gauss sigma, spline
	                unused */
};

struct weights {
	int in, out, taps;
	int *first; /* [out] first input of each output */
	int16_t *w; /* [out][taps] */
};

/* Curves of the filters, read by interpolation; one per worker. */
struct curves {
	float lanczos[3 * WEIGHTS_LUT + 2];
	float gauss[4 * WEIGHTS_LUT + 2];
};

void curves_init(struct curves *c);

/* From in samples, of which the picture covers real_in, to out samples, of which it covers
 * real_out. Of the picture only the part shown (0..1) from its middle goes there. */
struct filter filter_lanczos(int in, int out, double real_in, double real_out, double shown,
                             int is_mirrored);

/* Samples of the blurred row at origin, origin + step, ... Beyond its ends the row goes on with its
 * end samples. */
struct filter filter_gauss(int in, int out, double origin, double step, double sigma);

/* The row again, of which in holds samples at origin, origin + step, ... */
struct filter filter_spline(int in, int out, double origin, double step);

/* Whether both make the same weights. */
bool filter_is_same(const struct filter *a, const struct filter *b);

/* Bytes that weights_make() needs for this filter, a multiple of 64. */
uint64_t weights_bytes(const struct filter *f);

/* Fills *t, whose arrays lie in memory. */
void weights_make(struct weights *t, const struct filter *f, const struct curves *curves,
                  void *memory);

#endif
