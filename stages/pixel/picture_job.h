/*
 * picture_job.h - scaling, blurring and sharpening of a picture, in interruptible steps.
 *
 *	picture_scale_begin(), picture_blur_begin() or picture_sharpen_begin()
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

/* Conversion: four planes, the conversion itself, two chroma planes. Blur: clipping, three planes
 * twice. */
#define PASS_MAX 8
#define SHARPEN_AMOUNT_MAX 10

enum pass_kind {
	PASS_RESAMPLE = 1,
	PASS_COPY,    /* src to dst, of the same size */
	PASS_CONVERT, /* between[0], of a rare colour space, to dst (luma) and between[1] (chroma)
	               */
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

/* Parameters of a scale job. */
struct scaling {
	unsigned exif;                    /* orientation of src; the result is upright */
	int width, height;                /* of the result */
	double shown_width, shown_height; /* part of src around its centre that the result shows,
	                                     0..1 in displayed axes */
	enum chroma chroma;               /* of the result; grey stays grey */
};

/*
 * Returns a job that turns src upright, crops it, scales it, and converts it to grey or YCbCr. The
 * result is padded for the encoder. It is src itself if nothing changes. src is borrowed until the
 * job is freed. Returns NULL without memory.
 */
struct picture_job *picture_scale_begin(struct picture *src, const struct scaling *to);

/* Returns a job that blurs src with a Gaussian of sigma pixels; edges are replicated. src must be
 * ready for the encoder. CHROMA_NONE makes only luma; any other value keeps the chroma of src. */
struct picture_job *picture_blur_begin(const struct picture *src, enum chroma chroma, double sigma);

/* Returns a job that sharpens luma: it adds amount (at most SHARPEN_AMOUNT_MAX) times the
 * difference between src and src blurred. Otherwise as picture_blur_begin(). */
struct picture_job *picture_sharpen_begin(const struct picture *src, enum chroma chroma,
                                          double sigma, double amount);

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

/* Scale the whole picture to grey or 4:2:0, or blur it, in one call. */
struct picture *picture_scale(const struct resampler *r, struct picture *src, int width, int height,
                              unsigned exif);
struct picture *picture_blur(const struct resampler *r, const struct picture *src, double sigma);

/* ---- upper bounds on the pool memory of a job, result included ---- */

/* shape and color_space describe src. */
uint64_t picture_scale_bytes(const struct plane_shape *shape, unsigned plane_count, int color_space,
                             const struct scaling *to);

/* Covers blurring and sharpening. */
uint64_t picture_blur_bytes(enum chroma chroma, int width, int height, double sigma);

/* ---- private: for picture_scale.c and picture_blur.c ---- */

/* Returns a job without result and passes, or NULL without memory. */
struct picture_job *picture_job_new(void);

#endif
