/*
 * weights.c - tables of integer weights for the resampler.
 *
 * Weights have 14 fraction bits and sum to exactly one, so flat areas stay flat. Curves are looked
 * up. Weights whose phase repeats are copied. A table serves one plane, and the next one if it has
 * the same size.
 */
#include "weights.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/round.h"

#define PERIOD_MAX 64
/* With more taps the rounding errors would add up to a spike at the corrected weight. The error is
 * then carried from weight to weight. */
#define TAPS_ROUNDED_ALONE 64

void curves_init(struct curves *c)
{
	const double pi = 3.14159265358979323846;

	memset(c, 0, sizeof(*c));
	for (int i = 0; i < 3 * WEIGHTS_LUT; i++) {
		double x = pi * i / WEIGHTS_LUT;

		c->lanczos[i] = i == 0 ? 1 : (float)(3 * sin(x) * sin(x / 3) / (x * x));
	}
	for (int i = 0; i < 4 * WEIGHTS_LUT; i++)
		c->gauss[i] = (float)exp(-.5 * i * i / (WEIGHTS_LUT * WEIGHTS_LUT));
}

/* Sets real[k] to the curve at `at + k * by`, in samples of the table. The last two are 0. */
static void curve_read(const float *lut, int last, float at, float by, int n, float *real)
{
	float end = (float)(last - 1);
	int index[WEIGHTS_TAPS_MAX];

	for (int k = 0; k < n; k++) { /* compilers vectorise this loop but not the next */
		float x = fabsf(at + (float)k * by);

		x = x < end ? x : end;
		index[k] = (int)x;
		real[k] = x - (float)index[k];
	}
	for (int k = 0; k < n; k++)
		real[k] = lut[index[k]] + (lut[index[k] + 1] - lut[index[k]]) * real[k];
}

struct filter filter_lanczos(int in, int out, double real_in, double real_out, double shown,
                             double place, int is_mirrored)
{
	double scale = real_in * shown / real_out;
	double before = (real_in - real_in * shown) / 2 * (1 + place);

	return (struct filter){
		.kind = FILTER_LANCZOS,
		.in = in,
		.out = out,
		.origin =
			is_mirrored ? real_in - before - .5 * scale - .5 : before + .5 * scale - .5,
		.step = is_mirrored ? -scale : scale,
		.wide = scale > 1 ? scale : 1,
	};
}

struct filter filter_gauss(int in, int out, double origin, double step, double sigma)
{
	return (struct filter){ FILTER_GAUSS, in, out, origin, step, sigma };
}

struct filter filter_spline(int in, int out, double origin, double step)
{
	return (struct filter){ FILTER_SPLINE, in, out, -origin / step, 1 / step, 1 };
}

bool filter_is_same(const struct filter *a, const struct filter *b)
{
	return a->kind == b->kind && a->in == b->in && a->out == b->out && a->origin == b->origin &&
	       a->step == b->step && a->wide == b->wide;
}

static int gauss_radius(const struct filter *f)
{
	return (int)ceil(3.2 * f->wide);
}

/* Returns the number of inputs of an output away from the ends of the row. */
static int filter_taps(const struct filter *f)
{
	double n = f->kind == FILTER_LANCZOS ? ceil(6 * f->wide)
	           : f->kind == FILTER_GAUSS ? 2. * gauss_radius(f) + 1
	                                     : 4;

	return n > WEIGHTS_TAPS_MAX ? WEIGHTS_TAPS_MAX : (int)n;
}

static int weights_taps(const struct filter *f)
{
	int n = filter_taps(f);

	return n < f->in ? n : f->in;
}

uint64_t weights_bytes(const struct filter *f)
{
	uint64_t each = sizeof(int) + sizeof(int16_t) * (uint64_t)weights_taps(f);

	return round_up(each * (uint64_t)f->out, 64);
}

/* Returns the first input of an output at centre. It may lie outside of the row. */
static int filter_first(const struct filter *f, double centre, int n)
{
	switch (f->kind) {
	case FILTER_LANCZOS:
		return (int)ceil(centre - n * .5);
	case FILTER_GAUSS:
		return (int)floor(centre) - gauss_radius(f);
	default:
		return (int)floor(centre) - 1;
	}
}

/* Computes the real weights of inputs x0 .. x0 + n - 1. */
static void filter_real(const struct filter *f, const struct curves *curves, double centre, int x0,
                        int n, float *real)
{
	if (f->kind == FILTER_SPLINE) {
		float t = (float)(centre - floor(centre)), u = 1 - t;

		real[0] = u * u * u / 6;
		real[1] = (3 * t * t * t - 6 * t * t + 4) / 6;
		real[2] = (3 * u * u * u - 6 * u * u + 4) / 6;
		real[3] = t * t * t / 6;
	} else {
		float at = (float)(WEIGHTS_LUT * (x0 - centre) / f->wide),
		      by = (float)(WEIGHTS_LUT / f->wide);

		if (f->kind == FILTER_LANCZOS)
			curve_read(curves->lanczos, 3 * WEIGHTS_LUT + 1, at, by, n, real);
		else
			curve_read(curves->gauss, 4 * WEIGHTS_LUT + 1, at, by, n, real);
	}
}

/* Rounds |v| < 32768 without a function call, which lrintf() is. */
static inline int round_small(float v)
{
	return (int)(v + 32768.5f) - 32768;
}

static int clamp(int v, int min, int max)
{
	return v < min ? min : v > max ? max : v;
}

/* Rounds the weights. The middle weight gets the remaining error. */
static void weights_round(int16_t *w, int taps, const float *real, int middle)
{
	float sum = 0, scale, carry = 0;
	int total = 0;

	for (int k = 0; k < taps; k++)
		sum += real[k];
	scale = WEIGHTS_ONE / sum;
	for (int k = 0; k < taps; k++) {
		float v = real[k] * scale + carry;
		int rounded = round_small(v);

		if (taps > TAPS_ROUNDED_ALONE)
			carry = v - (float)rounded;
		w[k] = (int16_t)rounded;
		total += rounded;
	}
	assert(middle >= 0 && middle < taps);
	w[middle] = (int16_t)(w[middle] + WEIGHTS_ONE - total);
}

/* Returns the number of outputs after which the phase repeats, or 0 if it exceeds PERIOD_MAX.
 * Outputs o and o - period have the same weights. */
static int filter_period(double step)
{
	for (int p = 1; p <= PERIOD_MAX; p++)
		if (fabs(p * step - rint(p * step)) < 1e-9)
			return p;
	return 0;
}

/* Computes the weights of inputs x0 .. x0 + n - 1. Inputs beyond the ends of the row are left out
 * when scaling. For a blur they replicate the end samples. */
static void row_compute(const struct filter *f, const struct curves *curves, double centre, int x0,
                        int n, int16_t *row)
{
	float real[WEIGHTS_TAPS_MAX];
	int before = 0, behind = 0;

	filter_real(f, curves, centre, x0, n, real);
	if (f->kind == FILTER_LANCZOS) {
		before = clamp(-x0, 0, n - 1);
		behind = clamp(x0 + n - f->in, 0, n - 1);
		memset(real, 0, sizeof *real * (size_t)before);
		memset(real + n - behind, 0, sizeof *real * (size_t)behind);
	}
	weights_round(row, n, real, clamp(n / 2, before, n - behind - 1));
}

/* Stores the row for output o. Weights of inputs beyond the ends are added to the end samples.
 * Returns whether all inputs are inside. */
static bool row_store(struct weights *t, int o, int x0, int n, const int16_t *row)
{
	int first = clamp(x0, 0, t->in - t->taps), before = clamp(-x0, 0, n),
	    behind = clamp(x0 + n - t->in, 0, n);
	int16_t *w = t->w + (ptrdiff_t)o * t->taps;
	int left = 0, right = 0;

	memset(w, 0, sizeof *w * (size_t)t->taps);
	if (before + behind < n)
		memcpy(w + x0 + before - first, row + before,
		       sizeof *w * (size_t)(n - before - behind));
	for (int k = 0; k < before; k++)
		left += row[k];
	for (int k = n - behind; k < n; k++)
		right += row[k];
	w[0] = (int16_t)(w[0] + left);
	w[t->taps - 1] = (int16_t)(w[t->taps - 1] + right);
	t->first[o] = first;
	return before + behind == 0;
}

/* Copies the weights of outputs o - period, ... to outputs o, ..., which start `hop` inputs later.
 * Stops at the first output that reaches beyond the row, or after one period. Returns the count. */
static int rows_repeat(struct weights *t, int o, int period, int hop)
{
	int16_t *w = t->w + (ptrdiff_t)o * t->taps;
	int count = 0;

	for (; count < period && o + count < t->out; count++) {
		int first = t->first[o + count - period] + hop;

		if (first < 0 || first + t->taps > t->in)
			break;
		t->first[o + count] = first;
	}
	memcpy(w, w - (ptrdiff_t)period * t->taps, sizeof *w * (size_t)t->taps * (size_t)count);
	return count;
}

void weights_make(struct weights *t, const struct filter *f, const struct curves *curves,
                  void *memory)
{
	int n = filter_taps(f), period = filter_period(f->step), hop = (int)rint(period * f->step);
	/* All outputs have the same weights before row_store() folds the ends. */
	bool is_one_row = period == 1 && f->kind != FILTER_LANCZOS;
	int x_first = filter_first(f, f->origin, n);
	int whole = 0; /* number of consecutive outputs before o with all inputs inside */
	int16_t row[WEIGHTS_TAPS_MAX];

	*t = (struct weights){
		.in = f->in, .out = f->out, .taps = weights_taps(f), .first = memory
	};
	t->w = (int16_t *)(void *)(t->first + t->out);
	for (int o = 0; o < t->out;) {
		int count = period && whole >= period ? rows_repeat(t, o, period, hop) : 0;

		if (count == 0) {
			double centre = f->origin + o * f->step;
			int x0 = is_one_row ? x_first + o * hop : filter_first(f, centre, n);

			if (o == 0 || !is_one_row)
				row_compute(f, curves, centre, x0, n, row);
			whole = row_store(t, o, x0, n, row) ? whole : -1;
			count = 1;
		}
		whole += count;
		o += count;
	}
}
