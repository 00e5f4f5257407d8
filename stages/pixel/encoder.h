/*
 * encoder.h - planes to a JPEG file, in steps, each of which may be the last for a while.
 *
 *	encoder_new()      for one picture
 *	encoder_advance()  encodes some rows; again while it says that there is more
 *	encoder_take()     the file is the caller's
 *	encoder_free()     at any time
 *
 * Baseline with the standard Huffman tables, unless told otherwise. What has tables of its own is
 *coded when all has been seen, from notes (huffman.h); what is progressive is collected as
 *coefficients and then coded in several passes over all of it. Encoders are kept for files of the
 *same parameters: to set these takes as long as to code a small file, and switching table options
 *off again corrupts files. An encoder belongs to one thread at a time, and between two steps it may
 *go to another.
 */
#ifndef DARKROOM_PIXEL_ENCODER_H
#define DARKROOM_PIXEL_ENCODER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "encoding.h"
#include "libjpeg_pool.h"
#include "picture.h"

struct encoder {
	struct jpeg_memory memory; /* first: see there */
	struct jpeg_compress_struct out;
	struct encoder_errors {
		struct jpeg_error_mgr mgr;
		jmp_buf failed;
	} errors;
	struct encoder_file {
		struct jpeg_destination_mgr mgr;
		uint8_t *data; /* pool memory */
		size_t size;
	} file;
	struct huffman *huffman;       /* where it codes what libjpeg would have to keep */
	const struct picture *picture; /* borrowed, as is the profile */
	const uint8_t *icc;
	size_t icc_size;
	bool is_started, has_failed;
	unsigned pass, pass_count; /* over the picture */
	unsigned row;              /* of MCUs, done of the pass at hand */
	/* what it is made for */
	struct encoding how;
	enum chroma chroma;
	struct encoder *next; /* of the thread's that rest */
};

/*
 * For a picture (grey, 4:2:0 or 4:4:4, padded, only read), with an ICC profile if icc_size is not
 * 0. Picture and profile must stay until encoder_free(). NULL: no memory.
 */
struct encoder *encoder_new(const struct encoding *how, const struct picture *p, const uint8_t *icc,
                            size_t icc_size);

/* The thread keeps it for its next file of that kind, without memory for pictures; not after a
 * failure. */
void encoder_free(struct encoder *e);

/* At the end of a thread: it keeps none any more. */
void encoder_thread_fini(void);

/* Encodes up to so many rows of MCUs. 1: there is more to do; 0: the file is ready; -ENOMEM, or
 * -EINVAL if libjpeg refuses: then it can only be freed. */
int encoder_advance(struct encoder *e, unsigned rows);

/* Lines of the picture that are still to be encoded, those of further passes included. */
unsigned encoder_lines_left(const struct encoder *e);

/* After 0: *data of *size bytes is the caller's, pool memory. */
void encoder_take(struct encoder *e, uint8_t **data, size_t *size);

/* All of it at one go. 0 and the file, or -ENOMEM or -EINVAL. */
int encoder_encode(const struct encoding *how, const struct picture *p, const uint8_t *icc,
                   size_t icc_size, uint8_t **data, size_t *size);

/* What a file of such a picture is expected to take at most while it is made, coefficients
 * included. Random noise at quality 100 fits. */
uint64_t encoder_bytes(const struct encoding *how, enum chroma chroma, int width, int height,
                       size_t icc_size);

#endif
