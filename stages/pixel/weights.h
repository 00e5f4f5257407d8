/*
 * weights.h - one-dimensional filters as tables of integer weights.
 *
 * Scaling (Lanczos-3), sampling of a Gaussian-blurred row, and interpolation of such samples by a
 * cubic B-spline share one form: every output is a weighted sum of neighbouring inputs. Pure
 * functions on memory of the caller. Any thread.
 */
#ifndef DARKROOM_PIXEL_WEIGHTS_H
#define DARKROOM_PIXEL_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIGHTS_ONE 16384
#define WEIGHTS_TAPS_MAX 1280 /* enough for a Gaussian with the largest sigma of the plan, 200 */
#define WEIGHTS_LUT 256       /* samples of a curve per unit */

enum filter_kind { FILTER_LANCZOS = 1, FILTER_GAUSS, FILTER_SPLINE };

/* Output o lies at origin + o * step. The centres of the inputs are at whole numbers. */
struct filter {
	enum filter_kind kind;
	int in, out;
	double origin, step; /* step < 0: mirrored */
	double wide; /* width of the curve in inputs. Lanczos: the reduction, >= 1. Gauss: sigma.
	                Spline: unused. */
};

struct weights {
	int in, out, taps;
	int *first; /* [out] first input of each output */
	int16_t *w; /* [out][taps] */
};

/* Lookup tables of the curves. One per worker. */
struct curves {
	float lanczos[3 * WEIGHTS_LUT + 2];
	float gauss[4 * WEIGHTS_LUT + 2];
};

void curves_init(struct curves *c);

/* Scales `in` samples to `out` samples. The image covers real_in and real_out of them. Only the
 * part `shown` (0..1) of the image is used. place: of that part, in the direction of the output: -1
 * at its beginning, 0 in the middle, 1 at its end. */
struct filter filter_lanczos(int in, int out, double real_in, double real_out, double shown,
                             double place, int is_mirrored);

/* Samples the blurred row at origin, origin + step, ... End samples are replicated. */
struct filter filter_gauss(int in, int out, double origin, double step, double sigma);

/* Reconstructs a row from its samples at origin, origin + step, ... */
struct filter filter_spline(int in, int out, double origin, double step);

/* Returns whether both filters have the same weights. */
bool filter_is_same(const struct filter *a, const struct filter *b);

/* Returns the bytes that weights_make() needs for this filter, a multiple of 64. */
uint64_t weights_bytes(const struct filter *f);

/* Fills *t. Its arrays lie in memory[weights_bytes(f)]. */
void weights_make(struct weights *t, const struct filter *f, const struct curves *curves,
                  void *memory);

#endif
