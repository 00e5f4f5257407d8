/*
 * picture_job.c - runs the passes of a job, one tile at a time.
 *
 * Scratch memory comes from the pool for each plane. The pool returns the buffer freed last, which
 * is still in the cache, and workers hold nothing large between jobs.
 *
 * It does not know the purpose of a pass: picture_scale.c, picture_blur.c and operations plan them.
 */
#include "picture_job.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "kernel.h"

/* ---- resampling: separable convolution of a plane, tile by tile ---- */

/* Keeps scratch rows out of one set of the cache. */
#define PITCH_ODD 32

void resampler_init(struct resampler *r)
{
	r->kernel = kernel_at(0);
	curves_init(&r->curves);
}

static uint64_t rows_pitch(const struct filter *x)
{
	return round_up((uint64_t)x->in, KERNEL_COLUMNS) + PITCH_ODD;
}

uint64_t resample_bytes(const struct filter *x, const struct filter *y)
{
	uint64_t columns = ((uint64_t)x->out + 16) * KERNEL_TILE;

	return weights_bytes(x) + weights_bytes(y) +
	       2 * rows_pitch(x) * KERNEL_TILE * sizeof(int16_t) + columns;
}

/* Copies the tile out unchanged: its rows are columns of the picture. */
static void transpose_tile(const uint8_t *columns, int width, int row_count, uint8_t *dst,
                           ptrdiff_t stride)
{
	for (int x = 0; x < width; x++)
		memcpy(dst + x * stride, columns + x * KERNEL_TILE, (size_t)row_count);
}

/* Starts to filter pass->src by x and y into dst, transposed if `transpose` is set. Returns 0 or
 * -ENOMEM. */
static int resampling_begin(struct resampling *g, const struct resampler *r,
                            const struct pass *pass)
{
	const struct filter *x = &pass->x, *y = &pass->y;
	uint64_t rows = rows_pitch(x) * KERNEL_TILE;
	uint8_t *memory = pool_get((size_t)resample_bytes(x, y));

	if (!memory)
		return -ENOMEM;
	assert(x->in == pass->src->width && y->in == pass->src->height);
	assert(x->out == (pass->transpose ? pass->dst->height : pass->dst->width));
	assert(y->out == (pass->transpose ? pass->dst->width : pass->dst->height));
	*g = (struct resampling){ .kernel = r->kernel, .memory = memory };
	weights_make(&g->x, x, &r->curves, memory);
	memory += weights_bytes(x);
	weights_make(&g->y, y, &r->curves, memory);
	memory += weights_bytes(y);
	g->rows = (int16_t *)(void *)memory;
	g->tile = g->rows + rows;
	g->columns = (uint8_t *)(g->tile + rows);
	return 0;
}

/* Makes rows (columns if transposed) top .. top + KERNEL_TILE - 1 of dst, clipped to its size. */
static void resampling_tile(const struct resampling *g, const struct pass *pass, int top)
{
	const struct kernel *kernel = g->kernel;
	const struct plane *src = pass->src;
	struct plane *dst = pass->dst;
	ptrdiff_t pitch = (g->tile - g->rows) / KERNEL_TILE;
	int n = g->y.out - top < KERNEL_TILE ? g->y.out - top : KERNEL_TILE;

	for (int i = 0; i < n; i++)
		kernel->vertical(src->data + g->y.first[top + i] * src->stride, src->stride,
		                 src->width, g->y.w + (ptrdiff_t)(top + i) * g->y.taps, g->y.taps,
		                 g->rows + i * pitch);
	kernel_into_tile(g->rows, pitch, src->width, n, g->tile);
	kernel->horizontal(g->tile, &g->x, g->columns);
	if (pass->transpose)
		transpose_tile(g->columns, g->x.out, n, dst->data + top, dst->stride);
	else
		kernel_out_of_tile(g->columns, g->x.out, n, dst->data + top * dst->stride,
		                   dst->stride);
}

/* Frees the memory. May be called before all tiles are made, and twice. */
static void resampling_end(struct resampling *g)
{
	pool_put(g->memory);
	g->memory = NULL;
}

/* ---- passes ---- */

static int line_count(const struct pass *pass)
{
	return pass->lines ? pass->src->height : pass->y.out;
}

void picture_job_copy(const struct picture_job *job, const struct pass *pass, int first, int count)
{
	(void)job;
	for (int line = first; line < first + count; line++)
		memcpy(pass->dst->data + line * pass->dst->stride,
		       pass->src->data + line * pass->src->stride, (size_t)pass->src->width);
}

static int resample_tile(struct picture_job *job, const struct resampler *r,
                         const struct pass *pass)
{
	struct resampling *g = &job->resampling;
	int err = g->memory ? 0 : resampling_begin(g, r, pass);

	if (!err)
		resampling_tile(g, pass, job->line);
	return err;
}

/* Returns whether the passes have the same weights, as Cb and Cr have. */
static bool has_same_weights(const struct pass *a, const struct pass *b)
{
	return !a->lines && !b->lines && a->transpose == b->transpose &&
	       filter_is_same(&a->x, &b->x) && filter_is_same(&a->y, &b->y);
}

static void finish_pass(struct picture_job *job)
{
	const struct pass *pass = &job->pass[job->pass_at++];

	job->line = 0;
	if (job->pass_at < job->pass_count && has_same_weights(pass, pass + 1))
		return;
	resampling_end(&job->resampling);
	if (job->pass_at == job->pass_count)
		picture_pad(job->result);
}

/* Makes one tile of the current pass. Returns 0 or -ENOMEM. */
static int make_tile(struct picture_job *job, const struct resampler *r)
{
	const struct pass *pass = &job->pass[job->pass_at];
	int left = line_count(pass) - job->line, n = left < KERNEL_TILE ? left : KERNEL_TILE,
	    err = 0;

	if (pass->lines)
		pass->lines(job, pass, job->line, n);
	else
		err = resample_tile(job, r, pass);
	job->line += n;
	if (!err && n == left)
		finish_pass(job);
	return err;
}

int picture_job_advance(struct picture_job *job, const struct resampler *r, unsigned tiles)
{
	int err = 0;

	for (; tiles > 0 && job->pass_at < job->pass_count && !err; tiles--)
		err = make_tile(job, r);
	return err ? err : job->pass_at < job->pass_count;
}

uint64_t picture_job_samples_left(const struct picture_job *job)
{
	uint64_t left = 0;

	for (unsigned i = job->pass_at; i < job->pass_count; i++) {
		const struct pass *pass = &job->pass[i];
		uint64_t lines = (uint64_t)line_count(pass),
			 done = i == job->pass_at ? (uint64_t)job->line : 0;

		left += (uint64_t)pass->src->width * (uint64_t)pass->src->height * (lines - done) /
		        lines;
	}
	return left;
}

struct picture *picture_job_take(struct picture_job *job)
{
	struct picture *p = job->result;

	assert(p && job->pass_at == job->pass_count);
	job->result = NULL;
	return p;
}

struct picture_job *picture_job_new(void)
{
	struct picture_job *job = pool_get(sizeof(*job));

	if (job)
		memset(job, 0, sizeof(*job));
	return job;
}

struct picture_job *picture_job_like(const struct picture *src, enum chroma chroma)
{
	struct picture_job *job = picture_job_new();

	if (!job)
		return NULL;
	job->result = picture_like(src, chroma);
	if (job->result)
		return job;
	picture_job_free(job);
	return NULL;
}

void picture_job_add(struct picture_job *job, const struct plane *src, struct plane *dst,
                     void (*lines)(const struct picture_job *, const struct pass *, int, int))
{
	assert(job->pass_count < PASS_MAX);
	job->pass[job->pass_count++] = (struct pass){ .lines = lines, .src = src, .dst = dst };
}

void picture_job_free(struct picture_job *job)
{
	if (!job)
		return;
	resampling_end(&job->resampling);
	for (unsigned i = 0; i < PLANE_MAX; i++)
		picture_unref(job->between[i]);
	picture_unref(job->result);
	pool_put(job);
}
