/*
 * decoder_errors.h - turns errors and warnings of libjpeg into faults of a decoder.
 *
 * Private to decoder.c. Functions that fail return by longjmp() to errors.failed of the decoder.
 */
#ifndef DARKROOM_PIXEL_DECODER_ERRORS_H
#define DARKROOM_PIXEL_DECODER_ERRORS_H

#include "decoder.h"

#define DECODER_PREMATURE_END "Premature end of JPEG file"

/* Sets the error handlers of the libjpeg object. Before jpeg_create_decompress(). */
void decoder_errors_init(struct decoder *d);

/* Sets the fault and returns by longjmp(). */
_Noreturn void decoder_fail(struct decoder *d, enum decoder_fault fault, const char *text);

/* Notes that pixels are lost; the first text stays. Fails if the decoder stops on loss. */
void decoder_note_loss(struct decoder *d, const char *text);

/* Rewords the fault of a header for readers who do not know libjpeg. */
void decoder_fault_explain(struct decoder *d);

#endif
