/*
 * decoder_jailed.h - the decoder's way for PNG, WebP and AVIF: a process of
 * darkroom-decode (jail/jail.h).
 *
 * decoder.c calls these for a file that is not a JPEG, and nobody else does. The planes are grey or
 * RGB, and reduced by a whole factor to no less than the plan needs. Any thread.
 */
#ifndef DARKROOM_PIXEL_DECODER_JAILED_H
#define DARKROOM_PIXEL_DECODER_JAILED_H

#include "decoder.h"

/* Each as the function of decoder.h with its name. */
enum decoder_result decoder_jailed_open(struct decoder *d);
void decoder_jailed_choose(struct decoder *d, int width, int height);
unsigned decoder_jailed_shapes(const struct decoder *d, struct plane_shape shape[PLANE_MAX]);
uint64_t decoder_jailed_bytes(const struct decoder *d);
enum decoder_result decoder_jailed_start(struct decoder *d);
enum decoder_result decoder_jailed_advance(struct decoder *d);
uint64_t decoder_jailed_bytes_left(const struct decoder *d);
void decoder_jailed_close(struct decoder *d);

#endif
