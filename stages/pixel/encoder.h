/*
 * encoder.h - encodes a picture as a file, in interruptible steps: JPEG here, others in a process
 * of their own (encoder_jailed.h).
 *
 *	encoder_new()      for one picture
 *	encoder_advance()  encodes some rows; call it while it returns 1
 *	encoder_take()     transfers the file to the caller
 *	encoder_free()     at any time
 *
 * By default files are baseline with the standard Huffman tables. Optimised ones are made without
 * libjpeg, in a second pass over notes (baseline.h). Progressive files are buffered as coefficients
 * and coded in several passes. An encoder belongs to one thread at a time. It may move to another
 * thread between two steps.
 */
#ifndef DARKROOM_PIXEL_ENCODER_H
#define DARKROOM_PIXEL_ENCODER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "jail/jail.h"
#include "libjpeg_pool.h"
#include "picture.h"

struct encoder {
	struct jpeg_memory memory; /* first: client_data points to it */
	struct jpeg_compress_struct out;
	struct encoder_errors {
		struct jpeg_error_mgr mgr;
		jmp_buf failed;
	} errors;
	struct jpeg_output file;
	struct baseline *own;          /* makes an optimised file, without libjpeg; or NULL */
	const struct picture *picture; /* borrowed, as is the profile */
	const uint8_t *icc;
	size_t icc_size;
	bool is_started;
	unsigned pass, pass_count; /* over the picture */
	unsigned row;              /* of MCUs, next one of the current pass */
	enum chroma chroma;        /* of the file */

	/* public, of files that are not JPEGs: the most CPU time of the process, set before it
	 * begins; and cpu_ns of the job */
	uint64_t cpu_ms;
	struct jail_job job;
	/* private */
	bool is_jailed;
	enum file_format format;
	uint8_t *planes; /* as the process gets them */
};

/* Returns whether baseline.c makes the file. Then planes may have steps. */
bool encoder_takes_knots(const struct encoding *how);

/*
 * Returns an encoder for p (grey, 4:2:0 or 4:4:4, padded, only read), or NULL without memory. The
 * file carries the ICC profile if icc_size is not 0. Picture and profile must stay until
 * encoder_free().
 */
struct encoder *encoder_new(const struct encoding *how, const struct picture *p, const uint8_t *icc,
                            size_t icc_size);

/* Frees it, and the file unless that was taken. NULL is ignored. */
void encoder_free(struct encoder *e);

/* Encodes up to `rows` rows of MCUs, or waits for the process for up to 2 ms. Returns 1 if work is
 * left, 0 when the file is complete, -ENOMEM, or -EINVAL if libjpeg fails. Files that are not
 * JPEGs: -ENOSYS without their library, -EFBIG if the format has no such size, -EBUSY if no process
 * became ready, -EPROTO if the process has failed. After an error only encoder_free() may be
 * called. */
int encoder_advance(struct encoder *e, unsigned rows);

/* Returns the number of lines that are still to be encoded, over all passes. */
unsigned encoder_lines_left(const struct encoder *e);

/* Transfers *data of *size bytes, pool memory, to the caller. After encoder_advance() gave 0. */
void encoder_take(struct encoder *e, uint8_t **data, size_t *size);

/* Returns an upper bound on the memory for encoding such a picture, file and coefficients included.
 * Random noise at quality 100 fits. */
uint64_t encoder_bytes(const struct encoding *how, enum chroma chroma, int width, int height,
                       size_t icc_size);

#endif
