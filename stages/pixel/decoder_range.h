/*
 * decoder_range.h - finds DC coefficients that no picture has.
 *
 * Private to decoder.c.
 */
#ifndef DARKROOM_PIXEL_DECODER_RANGE_H
#define DARKROOM_PIXEL_DECODER_RANGE_H

#include "decoder.h"

/* Checks the sequential scan that starts. Does nothing for other files, and without libjpeg's
 * private structures. After jpeg_start_decompress(). */
void decoder_range_begin(struct decoder *d);

#endif
