/*
 * encoder_jailed.h - the part of encoder.h for other formats than JPEG, whose libraries are in a
 * process of jail/jail.h.
 *
 * The planes stay as they are: AVIF has the full range and the matrix of JPEG (BT.601), and WebP
 * takes a table to its narrower range. What encloses the process's stream is written here, of what
 * is known here: a process that was taken over can change pixels, but no size, type or profile.
 */
#ifndef DARKROOM_PIXEL_ENCODER_JAILED_H
#define DARKROOM_PIXEL_ENCODER_JAILED_H

#include "encoder.h"

/* As encoder_new() and so on, without is_jailed. */
bool encoder_jailed_begin(struct encoder *e, const struct encoding *how);
int encoder_jailed_advance(struct encoder *e);
void encoder_jailed_free(struct encoder *e);
uint64_t encoder_jailed_bytes(const struct encoding *how, enum chroma chroma, int width, int height,
                              size_t icc_size);

#endif
