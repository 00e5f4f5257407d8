/*
 * picture_job.h - makes a picture from another one, in interruptible steps.
 *
 *	picture_scale_begin(), picture_blur_begin() or picture_sharpen_begin(),
 *	or picture_job_like() and picture_job_add()
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
#include "weights.h"

/* Converting scale: 4 planes, conversion, 2 chroma planes. Blur: clipping, 3 planes twice. */
#define PASS_MAX 8

struct kernel;
struct picture_job;
struct pass;

/* What a worker needs to resample. */
struct resampler {
	const struct kernel *kernel;
	struct curves curves;
};

/* Selects the fastest kernel of this processor. */
void resampler_init(struct resampler *r);

/* Returns the bytes of pool memory that the resampling of a plane holds. */
uint64_t resample_bytes(const struct filter *x, const struct filter *y);

/* A plane while it is resampled. A tile of 32 rows gets a vertical pass and then a horizontal pass.
 * The tile is stored transposed; copying it out without transposing it back transposes the picture.
 */
struct resampling {
	const struct kernel *kernel;
	uint8_t *memory; /* holds the following arrays; NULL before it begins and after its end */
	struct weights x, y;
	int16_t *rows, *tile;
	uint8_t *columns;
};

/* Makes one plane from another. A pass may read the output of earlier passes. */
struct pass {
	/* Makes some lines; NULL: src is resampled by x and y */
	void (*lines)(const struct picture_job *job, const struct pass *pass, int first, int count);
	const struct plane *src;
	struct plane *dst;
	struct filter x, y;
	bool transpose;
};

struct picture_job {
	const struct picture *source; /* of a pass that clips all planes; borrowed */
	struct picture *result;
	struct picture *between[PLANE_MAX]; /* output of passes that later passes read */
	struct pass pass[PASS_MAX];
	unsigned pass_count;
	int amount; /* of a pass that sharpens, in 1/256 */
	/* progress */
	unsigned pass_at;             /* index of the current pass */
	int line;                     /* next line of the current pass */
	struct resampling resampling; /* of the current pass */
};

/* ---- scale: turns, crops and scales a picture, and converts it to grey or YCbCr ---- */

/* Parameters of a scale job. */
struct scaling {
	unsigned exif;                    /* orientation of src; the result is upright */
	int width, height;                /* of the result */
	double shown_width, shown_height; /* part of src that the result shows, 0..1 in displayed
	                                     axes */
	enum chroma chroma;               /* of the result; grey stays grey */
	double place_x, place_y; /* of that part in displayed axes: -1 left or top, 0 in the middle,
	                            1 right or bottom */
};

/*
 * Returns a job that turns src upright, crops it, scales it, and converts it to grey or YCbCr. The
 * result is padded for the encoder. It is src itself if nothing changes. src is borrowed until the
 * job is freed. Returns NULL without memory.
 */
struct picture_job *picture_scale_begin(struct picture *src, const struct scaling *to);

/* Returns an upper bound on the pool memory of a job, result included. shape and color_space
 * describe src. */
uint64_t picture_scale_bytes(const struct plane_shape *shape, unsigned plane_count, int color_space,
                             const struct scaling *to);

/* ---- blur and sharpen: of a picture that is ready for the encoder ---- */

#define SHARPEN_AMOUNT_MAX 10

/* Returns a job that blurs src with a Gaussian of sigma pixels; edges are replicated. CHROMA_NONE
 * makes only luma; any other value keeps the chroma of src. src is borrowed until the job is freed.
 * is_for_encoder: the result may have planes with steps, for an encoder_takes_knots(). Returns NULL
 * without memory. */
struct picture_job *picture_blur_begin(const struct picture *src, enum chroma chroma, double sigma,
                                       bool is_for_encoder);

/* Returns a job that sharpens luma: it adds amount (at most SHARPEN_AMOUNT_MAX) times the
 * difference between src and src blurred. Otherwise as picture_blur_begin(). */
struct picture_job *picture_sharpen_begin(const struct picture *src, enum chroma chroma,
                                          double sigma, double amount);

/* Returns an upper bound on the pool memory of a job of either kind, result included. */
uint64_t picture_blur_bytes(enum chroma chroma, int width, int height, double sigma);

/* ---- any job ---- */

/* Makes up to `tiles` tiles of KERNEL_TILE lines. r belongs to the calling thread. Returns 1 if
 * work is left, 0 when done, or -ENOMEM. */
int picture_job_advance(struct picture_job *job, const struct resampler *r, unsigned tiles);

/* Returns the number of samples that are still to be read. */
uint64_t picture_job_samples_left(const struct picture_job *job);

/* Returns the picture and transfers its reference. After picture_job_advance() returned 0. */
struct picture *picture_job_take(struct picture_job *job);

/* NULL is ignored. */
void picture_job_free(struct picture_job *job);

/* ---- for those that plan a job ---- */

/* Returns a job without result and passes, or NULL without memory. */
struct picture_job *picture_job_new(void);

/* Returns a job without passes, with a result of the size and the colours of src, or without
 * colours: CHROMA_NONE. NULL without memory. */
struct picture_job *picture_job_like(const struct picture *src, enum chroma chroma);

/* Adds a pass by lines from src to dst, which have the same size. */
void picture_job_add(struct picture_job *job, const struct plane *src, struct plane *dst,
                     void (*lines)(const struct picture_job *, const struct pass *, int, int));

/* Copies lines: for picture_job_add(). */
void picture_job_copy(const struct picture_job *job, const struct pass *pass, int first, int count);

#endif
