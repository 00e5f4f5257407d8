/*
 * picture_job.c - runs the passes of a job, one tile at a time.
 *
 * It does not know the purpose of a pass: picture_scale.c and picture_blur.c plan them.
 */
#include "picture_job.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "color.h"
#include "gamut.h"
#include "kernel.h"

#define SHARPEN_BLOCK 32

static int line_count(const struct pass *pass)
{
	return pass->kind == PASS_RESAMPLE ? pass->y.out : pass->src->height;
}

static void copy_lines(const struct pass *pass, int first, int count)
{
	for (int line = first; line < first + count; line++)
		memcpy(pass->dst->data + line * pass->dst->stride,
		       pass->src->data + line * pass->src->stride, (size_t)pass->src->width);
}

static inline uint8_t clamp(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Works on whole blocks, which compilers vectorise. Rows have room for them. */
static void sharpen_line(const uint8_t *restrict src, uint8_t *restrict dst, int width, int amount)
{
	for (int x = 0; x < width; x += SHARPEN_BLOCK, src += SHARPEN_BLOCK, dst += SHARPEN_BLOCK)
		for (int i = 0; i < SHARPEN_BLOCK; i++)
			dst[i] = clamp(src[i] + ((amount * (src[i] - dst[i]) + 128) >> 8));
}

static void sharpen_lines(const struct pass *pass, int amount, int first, int count)
{
	for (int line = first; line < first + count; line++)
		sharpen_line(pass->src->data + line * pass->src->stride,
		             pass->dst->data + line * pass->dst->stride, pass->src->width, amount);
}

static int resample_tile(struct picture_job *job, const struct resampler *r,
                         const struct pass *pass)
{
	struct resampling *g = &job->resampling;
	int err = g->memory ? 0
	                    : resampling_begin(g, r, pass->src, &pass->x, &pass->y, pass->transpose,
	                                       pass->dst);

	if (!err)
		resampling_tile(g, job->line);
	return err;
}

/* Returns whether the passes have the same weights, as Cb and Cr have. */
static bool has_same_weights(const struct pass *a, const struct pass *b)
{
	return a->kind == PASS_RESAMPLE && b->kind == PASS_RESAMPLE &&
	       a->transpose == b->transpose && filter_is_same(&a->x, &b->x) &&
	       filter_is_same(&a->y, &b->y);
}

static void finish_pass(struct picture_job *job)
{
	const struct pass *pass = &job->pass[job->pass_at++];

	job->line = 0;
	if (job->pass_at < job->pass_count && has_same_weights(pass, pass + 1)) {
		resampling_next_plane(&job->resampling, pass[1].src, pass[1].dst);
		return;
	}
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

	if (pass->kind == PASS_RESAMPLE)
		err = resample_tile(job, r, pass);
	else if (pass->kind == PASS_COPY)
		copy_lines(pass, job->line, n);
	else if (pass->kind == PASS_GAMUT)
		gamut_clip(job->source, job->line, n, job->between[PLANE_MAX - 1]);
	else if (pass->kind == PASS_SHARPEN)
		sharpen_lines(pass, job->amount, job->line, n);
	else
		color_to_ycc(job->between[0], job->line, n, pass->dst, &job->between[1]->plane[0],
		             &job->between[1]->plane[1]);
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

struct picture *picture_job_finish(struct picture_job *job, const struct resampler *r)
{
	struct picture *p = NULL;

	if (job && picture_job_advance(job, r, UINT_MAX) == 0)
		p = picture_job_take(job);
	picture_job_free(job);
	return p;
}
