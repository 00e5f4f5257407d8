/*
 * decoder_scans.h - reads the scans of a buffered file into coefficients, with a bound on the work,
 * and finds bytes that no scan has used.
 *
 * Private to decoder.c and decoder_errors.c. Functions that fail return by longjmp() to
 * errors.failed of the decoder. The decoder's thread.
 */
#ifndef DARKROOM_PIXEL_DECODER_SCANS_H
#define DARKROOM_PIXEL_DECODER_SCANS_H

#include <stdbool.h>
#include <stddef.h>

#include "decoder.h"

/* Starts to count the work. After the header is read. */
void decoder_scans_begin(struct decoder *d);

/* Reads one row of MCUs, or the markers between two scans. After the last scan the state becomes
 * DECODER_OUTPUT. Fails with DECODER_TOO_MANY_SCANS or DECODER_TOO_MUCH_WORK. */
void decoder_scans_row(struct decoder *d);

/* Notes a loss if too many of the `count` bytes before the current position, which libjpeg has
 * skipped, belong to a scan. From the error manager. */
void decoder_scans_skipped(struct decoder *d, size_t count);

/* The same for a file that is not buffered, after its last row. */
void decoder_scans_finished(struct decoder *d);

#endif
