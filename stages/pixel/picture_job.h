/*
 * picture_job.h - makes a picture from another one, in interruptible steps.
 *
 *	picture_scale_begin() (picture_scale.h), picture_blur_begin() or
 *	picture_sharpen_begin() (picture_blur.h)
 *	picture_job_advance()  makes some lines; call it while it returns 1
 *	picture_job_take()     transfers the picture to the caller
 *	picture_job_free()     at any time
 *
 * A job belongs to one thread at a time. It may move to another thread between two steps.
 */
#ifndef DARKROOM_PIXEL_PICTURE_JOB_H
#define DARKROOM_PIXEL_PICTURE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "picture.h"
#include "resample.h"

/* Converting scale: 4 planes, conversion, 2 chroma planes. Blur: clipping, 3 planes twice. */
#define PASS_MAX 8

enum pass_kind {
	PASS_RESAMPLE = 1,
	PASS_COPY,    /* src to dst, of the same size */
	PASS_CONVERT, /* between[0], a rare colour space, to dst (luma) and between[1] (chroma) */
	PASS_GAMUT,   /* all planes of source, clipped as viewers do, to between[PLANE_MAX - 1] */
	PASS_SHARPEN  /* dst holds src blurred and becomes src + amount * (src - dst) */
};

/* Makes one plane from another. A pass may read the output of earlier passes. */
struct pass {
	enum pass_kind kind;
	const struct plane *src;
	struct plane *dst;
	struct filter x, y;
	bool transpose;
};

struct picture_job {
	const struct picture *source; /* of PASS_GAMUT; borrowed */
	struct picture *result;
	struct picture *between[PLANE_MAX]; /* output of passes that later passes read */
	struct pass pass[PASS_MAX];
	unsigned pass_count;
	int amount; /* of PASS_SHARPEN, in 1/256 */
	/* progress */
	unsigned pass_at;             /* index of the current pass */
	int line;                     /* next line of the current pass */
	struct resampling resampling; /* of the current pass; its memory is NULL until it starts */
};

/* Makes up to `tiles` tiles of KERNEL_TILE lines. r belongs to the calling thread. Returns 1 if
 * work is left, 0 when done, or -ENOMEM. */
int picture_job_advance(struct picture_job *job, const struct resampler *r, unsigned tiles);

/* Returns the number of samples that are still to be read. */
uint64_t picture_job_samples_left(const struct picture_job *job);

/* Returns the picture and transfers its reference. After picture_job_advance() returned 0. */
struct picture *picture_job_take(struct picture_job *job);

/* NULL is ignored. */
void picture_job_free(struct picture_job *job);

/* Runs all steps and frees the job. Returns the picture with one reference, or NULL without memory
 * or if job is NULL. */
struct picture *picture_job_finish(struct picture_job *job, const struct resampler *r);

/* ---- private: for picture_scale.c and picture_blur.c ---- */

/* Returns a job without result and passes, or NULL without memory. */
struct picture_job *picture_job_new(void);

#endif
