/*
 * picture_blur.h - Gaussian blur and unsharp mask of a picture that is ready for the encoder.
 *
 * A job belongs to one thread at a time (picture_job.h).
 */
#ifndef DARKROOM_PIXEL_PICTURE_BLUR_H
#define DARKROOM_PIXEL_PICTURE_BLUR_H

#include <stdint.h>

#include "picture.h"

#define SHARPEN_AMOUNT_MAX 10

struct picture_job;

/* Returns a job that blurs src with a Gaussian of sigma pixels; edges are replicated. CHROMA_NONE
 * makes only luma; any other value keeps the chroma of src. src is borrowed until the job is freed.
 * Returns NULL without memory. */
struct picture_job *picture_blur_begin(const struct picture *src, enum chroma chroma, double sigma);

/* Returns a job that sharpens luma: it adds amount (at most SHARPEN_AMOUNT_MAX) times the
 * difference between src and src blurred. Otherwise as picture_blur_begin(). */
struct picture_job *picture_sharpen_begin(const struct picture *src, enum chroma chroma,
                                          double sigma, double amount);

/* Returns an upper bound on the pool memory of a job of either kind, result included. */
uint64_t picture_blur_bytes(enum chroma chroma, int width, int height, double sigma);

#endif
