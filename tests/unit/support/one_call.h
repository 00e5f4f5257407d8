/* one_call.h - the steps of a picture and of a file in one call, as no stage makes them. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_ONE_CALL_H
#define DARKROOM_TESTS_UNIT_SUPPORT_ONE_CALL_H

#include <errno.h>
#include <limits.h>

#include "pixel/encoder.h"
#include "pixel/picture_job.h"

/* Runs all steps and frees the job. Returns the picture with one reference, or NULL without memory
 * or if job is NULL. Not inline: compilers would warn of the NULL that tests assert against. */
static __attribute__((unused, noinline)) struct picture *picture_job_finish(
	struct picture_job *job, const struct resampler *r)
{
	struct picture *p = NULL;

	if (job && picture_job_advance(job, r, UINT_MAX) == 0)
		p = picture_job_take(job);
	picture_job_free(job);
	return p;
}

/* Scales the whole picture to grey or 4:2:0. */
static inline struct picture *picture_scale(const struct resampler *r, struct picture *src,
                                            int width, int height, unsigned exif)
{
	const struct scaling to = { exif, width, height, 1, 1, CHROMA_420, 0, 0 };

	return picture_job_finish(picture_scale_begin(src, &to), r);
}

/* Blurs all planes. */
static inline struct picture *picture_blur(const struct resampler *r, const struct picture *src,
                                           double sigma)
{
	return picture_job_finish(picture_blur_begin(src, picture_chroma(src), sigma, false), r);
}

/* Encodes p. Returns 0 and the file, -ENOMEM or -EINVAL. */
static inline int encoder_encode(const struct encoding *how, const struct picture *p,
                                 const uint8_t *icc, size_t icc_size, uint8_t **data, size_t *size)
{
	struct encoder *e = encoder_new(how, p, icc, icc_size);
	int err = e ? encoder_advance(e, UINT_MAX) : -ENOMEM;

	if (!err)
		encoder_take(e, data, size);
	encoder_free(e);
	return err;
}

#endif
