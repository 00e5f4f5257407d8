/*
 * encoder_pass.h - the passes of an encoder after the first one, row by row.
 *
 * jpeg_finish_compress() runs them in a single call, which takes seconds for a large progressive
 * picture. These functions run the same passes in steps and leave it the end of the last pass. They
 * need the private structures of libjpeg (libjpeg_private.h). Without them no pass is left after
 * the first one, and jpeg_finish_compress() runs the others. Private to encoder.c.
 */
#ifndef DARKROOM_PIXEL_ENCODER_PASS_H
#define DARKROOM_PIXEL_ENCODER_PASS_H

#include <stdbool.h>

#include "libjpeg_private.h"

struct encoder;

#if LIBJPEG_HAS_PRIVATE
/* Returns whether a pass follows the current one. */
bool encoder_pass_is_left(const struct encoder *e);

/* Starts the next pass. After the last row of the current one. */
void encoder_pass_begin(struct encoder *e);

/* Codes one row of MCUs. In passes after the first one. */
void encoder_pass_row(struct encoder *e);
#else
static inline bool encoder_pass_is_left(const struct encoder *e)
{
	(void)e;
	return false;
}

static inline void encoder_pass_begin(struct encoder *e)
{
	(void)e;
}

static inline void encoder_pass_row(struct encoder *e)
{
	(void)e;
}
#endif

#endif
