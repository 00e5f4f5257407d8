/* picture_job.c - runs the passes that make a picture, a tile at a time. Knows not what they are for. */
#include "picture_job.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/check.h"
#include "color.h"
#include "kernel.h"

static int line_count(const struct pass *pass)
{
	return pass->kind == PASS_RESAMPLE ? pass->y.out : pass->src->height;
}

static void copy_lines(const struct pass *pass, int first, int count)
{
	for (int line = first; line < first + count; line++)
		memcpy(pass->dst->data + line * pass->dst->stride, pass->src->data + line * pass->src->stride,
		       (size_t)pass->src->width);
}

static inline uint8_t clamp(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void sharpen_lines(const struct pass *pass, int amount, int first, int count)
{
	for (int line = first; line < first + count; line++) {
		const uint8_t *src = pass->src->data + line * pass->src->stride;
		uint8_t *dst = pass->dst->data + line * pass->dst->stride;

		for (int x = 0; x < pass->src->width; x++)
			dst[x] = clamp(src[x] + ((amount * (src[x] - dst[x]) + 128) >> 8));
	}
}

static int resample_tile(struct picture_job *job, const struct resampler *r, const struct pass *pass)
{
	struct resampling *g = &job->resampling;
	int err = g->memory ? 0 : resampling_begin(g, r, pass->src, &pass->x, &pass->y, pass->transpose, pass->dst);

	if (!err)
		resampling_tile(g, job->line);
	return err;
}

/* One tile of the pass at hand. 0 or -ENOMEM. */
static int make_tile(struct picture_job *job, const struct resampler *r)
{
	const struct pass *pass = &job->pass[job->pass_at];
	int left = line_count(pass) - job->line, n = left < KERNEL_TILE ? left : KERNEL_TILE, err = 0;

	if (pass->kind == PASS_RESAMPLE)
		err = resample_tile(job, r, pass);
	else if (pass->kind == PASS_COPY)
		copy_lines(pass, job->line, n);
	else if (pass->kind == PASS_SHARPEN)
		sharpen_lines(pass, job->amount, job->line, n);
	else
		color_to_ycc(job->between[0], job->line, n, pass->dst, &job->between[1]->plane[0], &job->between[1]->plane[1]);
	job->line += n;
	if (err || n < left)
		return err;
	resampling_end(&job->resampling);
	job->line = 0;
	if (++job->pass_at == job->pass_count)
		picture_pad(job->result);
	return 0;
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
		uint64_t lines = (uint64_t)line_count(pass), done = i == job->pass_at ? (uint64_t)job->line : 0;

		left += (uint64_t)pass->src->width * (uint64_t)pass->src->height * (lines - done) / lines;
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
	return calloc(1, sizeof(struct picture_job));
}

void picture_job_free(struct picture_job *job)
{
	if (!job)
		return;
	resampling_end(&job->resampling);
	for (unsigned i = 0; i < PLANE_MAX; i++)
		picture_unref(job->between[i]);
	picture_unref(job->result);
	free(job);
}

struct picture *picture_job_finish(struct picture_job *job, const struct resampler *r)
{
	struct picture *p = NULL;

	if (job && picture_job_advance(job, r, UINT_MAX) == 0)
		p = picture_job_take(job);
	picture_job_free(job);
	return p;
}
