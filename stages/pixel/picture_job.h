/*
 * picture_job.h - a picture out of another, pass by pass, in steps, each of which may be the last
 *for a while.
 *
 *	picture_scale_begin(), picture_blur_begin(), picture_sharpen_begin()
 *	picture_job_advance()  makes some lines; again while it says that there is more
 *	picture_job_take()     the picture is the caller's
 *	picture_job_free()     at any time
 *
 * A job belongs to one thread at a time, and between two steps it may go to another.
 */
#ifndef DARKROOM_PIXEL_PICTURE_JOB_H
#define DARKROOM_PIXEL_PICTURE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "picture.h"
#include "resample.h"

#define PASS_MAX \
	8 /* four planes, their conversion, and two of chroma; or a cut, and three planes twice */
#define SHARPEN_AMOUNT_MAX 10

enum pass_kind {
	PASS_RESAMPLE = 1,
	PASS_COPY,    /* to a plane of the same size */
	PASS_CONVERT, /* between[0], of a rare colour space, to dst and the two planes of between[1]
	               */
	PASS_GAMUT,   /* all planes of source, cut off where viewers do it, to those of
	                 between[PLANE_MAX - 1] */
	PASS_SHARPEN  /* dst, in which src has been blurred, becomes src with what that took away
	                 added */
};

/* One plane out of another; a later one may read what an earlier one has made. */
struct pass {
	enum pass_kind kind;
	const struct plane *src;
	struct plane *dst;
	struct filter x, y;
	bool transpose;
};

struct picture_job {
	const struct picture *source; /* of PASS_GAMUT */
	struct picture *result;
	struct picture *between[PLANE_MAX]; /* what passes make for later ones */
	struct pass pass[PASS_MAX];
	unsigned pass_count;
	int amount; /* of PASS_SHARPEN, in 1/256 */
	/* how far it is */
	unsigned pass_at;
	int line;                     /* of the pass at hand */
	struct resampling resampling; /* of the pass at hand; without memory until it has begun, or
	                                 for it already */
};

/* What is to be made of a picture. */
struct scaling {
	unsigned exif;                    /* its orientation: it is turned upright */
	int width, height;                /* of the result */
	double shown_width, shown_height; /* the part of it that the result shows, 0..1 as seen;
	                                     from its middle */
	enum chroma chroma;               /* of the result, as far as src has any */
};

/*
 * The picture turned upright, cut, scaled, grey or YCbCr whatever it was, padded for the encoder;
 * the same picture if there is nothing to do. src is borrowed until the job is freed. NULL: no
 * memory.
 */
struct picture_job *picture_scale_begin(struct picture *src, const struct scaling *to);

/* A new picture: src (ready for the encoder) blurred by a Gaussian of sigma pixels, edges
 * continued, padded; of luma only if chroma is CHROMA_NONE, else chroma is that of src. As above.
 */
struct picture_job *picture_blur_begin(const struct picture *src, enum chroma chroma, double sigma);

/* The same sharpened: to luma, amount (up to SHARPEN_AMOUNT_MAX) times what such a blur takes away
 * is added. */
struct picture_job *picture_sharpen_begin(const struct picture *src, enum chroma chroma,
                                          double sigma, double amount);

/* Makes up to so many tiles of 32 lines; r is the calling thread's. 1: there is more to do; 0: it
 * is through; -ENOMEM. */
int picture_job_advance(struct picture_job *job, const struct resampler *r, unsigned tiles);

/* Samples of planes that are still to be read. */
uint64_t picture_job_samples_left(const struct picture_job *job);

/* After 0: one reference, the caller's. */
struct picture *picture_job_take(struct picture_job *job);

/* NULL is ignored. */
void picture_job_free(struct picture_job *job);

/* All steps at once, then frees the job. One reference; NULL: no memory, or there was none for the
 * job. */
struct picture *picture_job_finish(struct picture_job *job, const struct resampler *r);

/* Each at one go: all of the picture, to grey or 4:2:0. */
struct picture *picture_scale(const struct resampler *r, struct picture *src, int width, int height,
                              unsigned exif);
struct picture *picture_blur(const struct resampler *r, const struct picture *src, double sigma);

/* ---- bounds on the pool memory that those take, results included ---- */

/* color_space and shape are those of src. */
uint64_t picture_scale_bytes(const struct plane_shape *shape, unsigned plane_count, int color_space,
                             const struct scaling *to);

/* Of blurring and of sharpening. */
uint64_t picture_blur_bytes(enum chroma chroma, int width, int height, double sigma);

/* ---- for picture_scale.c and picture_blur.c ---- */

/* Without result and passes. NULL: no memory. */
struct picture_job *picture_job_new(void);

#endif
