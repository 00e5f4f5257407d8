/*
 * weights.c - tables of integer weights for the resampler.
 *
 * Weights have 14 fraction bits and sum to exactly one, so that flat areas stay flat. Curves are looked up, and weights whose
 * phase repeats are copied. Tables serve for one plane, and for the next if it is of the same size.
 */
#include "weights.h"

#include <math.h>
#include <string.h>

#include "../../src/check.h"

#define PERIOD_MAX 64
/* Beyond so many taps the rounding of single weights adds up to a spike where it would be made good: it is carried
 * from weight to weight instead. */
#define TAPS_ROUNDED_ALONE 64

void curves_init(struct curves *c)
{
	const double pi = 3.14159265358979323846;

	memset(c, 0, sizeof(*c));
	for (int i = 0; i < 3 * WEIGHTS_LUT; i++) {
		double x = pi * i / WEIGHTS_LUT;

		c->lanczos[i] = i == 0 ? 1 : (float)(3 * sin(x) * sin(x / 3) / (x * x));
	}
	for (int i = 0; i < 4 * WEIGHTS_LUT + 2; i++)
		c->gauss[i] = (float)exp(-.5 * i * i / (WEIGHTS_LUT * WEIGHTS_LUT));
}

static inline float curve_at(const float *lut, int limit, float x)
{
	int i;

	x = fabsf(x) * WEIGHTS_LUT;
	if (x >= (float)(limit * WEIGHTS_LUT))
		return 0;
	i = (int)x;
	return lut[i] + (lut[i + 1] - lut[i]) * (x - (float)i);
}

struct filter filter_lanczos(int in, int out, double real_in, double real_out, double shown, int is_mirrored)
{
	double scale = real_in * shown / real_out, before = (real_in - real_in * shown) / 2;

	return (struct filter){
		.kind = FILTER_LANCZOS, .in = in, .out = out,
		.origin = is_mirrored ? real_in - before - .5 * scale - .5 : before + .5 * scale - .5,
		.step = is_mirrored ? -scale : scale,
		.wide = scale > 1 ? scale : 1,
	};
}

struct filter filter_gauss(int in, int out, double origin, double step, double sigma)
{
	return (struct filter){
		.kind = FILTER_GAUSS, .in = in, .out = out, .origin = origin, .step = step, .wide = sigma,
	};
}

struct filter filter_spline(int in, int out, double origin, double step)
{
	return (struct filter){
		.kind = FILTER_SPLINE, .in = in, .out = out, .origin = -origin / step, .step = 1 / step, .wide = 1,
	};
}

bool filter_is_same(const struct filter *a, const struct filter *b)
{
	return a->kind == b->kind && a->in == b->in && a->out == b->out && a->origin == b->origin && a->step == b->step &&
	       a->wide == b->wide;
}

static int gauss_radius(const struct filter *f)
{
	return (int)ceil(3.2 * f->wide);
}

/* Inputs that the filter looks at before the row's ends are considered. */
static int filter_taps(const struct filter *f)
{
	double n = f->kind == FILTER_LANCZOS ? ceil(6 * f->wide) :
	           f->kind == FILTER_GAUSS ? 2. * gauss_radius(f) + 1 : 4;

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

	return (each * (uint64_t)f->out + 63) / 64 * 64;
}

/* The first input that an output at centre looks at, inside of the row or not. */
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

/* The n real weights of inputs x0, x0 + 1, ... */
static void filter_real(const struct filter *f, const struct curves *curves, double centre, int x0, int n, float *real)
{
	if (f->kind == FILTER_SPLINE) {
		float t = (float)(centre - floor(centre)), u = 1 - t;

		real[0] = u * u * u / 6;
		real[1] = (3 * t * t * t - 6 * t * t + 4) / 6;
		real[2] = (3 * u * u * u - 6 * u * u + 4) / 6;
		real[3] = t * t * t / 6;
	} else {
		bool is_lanczos = f->kind == FILTER_LANCZOS;
		const float *lut = is_lanczos ? curves->lanczos : curves->gauss;
		int limit = is_lanczos ? 3 : 4;
		float at = (float)((x0 - centre) / f->wide), by = (float)(1 / f->wide);

		for (int k = 0; k < n; k++)
			real[k] = curve_at(lut, limit, at + (float)k * by);
	}
}

/* Inputs beyond the row's ends are left out (scaling) or taken to be copies of the end sample (blur). Returns the
 * first input of the weights in inside[taps]; *middle is where the middle one of real has gone. */
static int weights_fold(const struct weights *t, int x0, int n, const float *real, bool copies, float *inside, int *middle)
{
	int first = x0 < 0 ? 0 : x0;

	if (first + t->taps > t->in)
		first = t->in - t->taps;
	memset(inside, 0, sizeof(*inside) * (size_t)t->taps);
	for (int k = 0; k < n; k++) {
		int x = x0 + k;

		if ((x < 0 || x >= t->in) && !copies)
			continue;
		x = (x < 0 ? 0 : x >= t->in ? t->in - 1 : x) - first;
		x = x < 0 ? 0 : x >= t->taps ? t->taps - 1 : x;
		inside[x] += real[k];
		if (k == n / 2)
			*middle = x;
	}
	return first;
}

/* For |v| < 32768, without a call as lrintf would be. */
static inline int round_small(float v)
{
	return (int)(v + 32768.5f) - 32768;
}

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
	w[middle] = (int16_t)(w[middle] + WEIGHTS_ONE - total);
}

/* Where output o lies a whole number of inputs after output o - period, its weights are the same. Returns the
 * period, 0 if there is no short one. */
static int filter_period(double step)
{
	for (int p = 1; p <= PERIOD_MAX; p++)
		if (fabs(p * step - rint(p * step)) < 1e-9)
			return p;
	return 0;
}

/* True if output o has the same weights as output o - period, which looks at the inputs from before on. */
static bool weights_repeat(const struct weights *t, int o, int n, int x0, int period, int before)
{
	return period && o >= period && n == t->taps && x0 >= 0 && x0 + n <= t->in && before >= 0 &&
	       before + n <= t->in && t->first[o - period] == before;
}

void weights_make(struct weights *t, const struct filter *f, const struct curves *curves, void *memory)
{
	float real[WEIGHTS_TAPS_MAX], inside[WEIGHTS_TAPS_MAX];
	int n = filter_taps(f), period = filter_period(f->step);
	int hop = (int)rint(period * f->step);
	int16_t *w;

	*t = (struct weights){.in = f->in, .out = f->out, .taps = weights_taps(f), .first = memory};
	t->w = w = (int16_t *)(void *)(t->first + t->out);
	for (int o = 0; o < t->out; o++, w += t->taps) {
		double centre = f->origin + o * f->step;
		int x0 = filter_first(f, centre, n), middle = n / 2;

		if (weights_repeat(t, o, n, x0, period, x0 - hop)) {
			memcpy(w, w - (ptrdiff_t)period * n, sizeof(*w) * (size_t)n);
			t->first[o] = x0;
			continue;
		}
		filter_real(f, curves, centre, x0, n, real);
		if (n == t->taps && x0 >= 0 && x0 + n <= t->in) {
			weights_round(w, n, real, middle);
			t->first[o] = x0;
		} else {
			t->first[o] = weights_fold(t, x0, n, real, f->kind != FILTER_LANCZOS, inside, &middle);
			weights_round(w, t->taps, inside, middle);
		}
	}
}
