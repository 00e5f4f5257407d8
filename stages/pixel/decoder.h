/*
 * decoder.h - a JPEG to planes, in steps, each of which may be the last for a while.
 *
 *	decoder_open()     reads the header
 *	decoder_choose()   says how large the planes must be
 *	decoder_start()    makes them
 *	decoder_advance()  decodes some rows; again until it says DECODER_DONE
 *	decoder_take()     the picture is the caller's
 *	decoder_close()    from any state; the decoder can be opened again
 *
 * One libjpeg object, reused: nothing of a file is left for the next. A decoder belongs to one
 *thread at a time, and between two steps it may go to another: then through something that orders
 *memory, as a queue does. What goes wrong with a file is in fault.
 */
#ifndef DARKROOM_PIXEL_DECODER_H
#define DARKROOM_PIXEL_DECODER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "libjpeg_pool.h"
#include "picture.h"

enum decoder_fault {
	DECODER_DAMAGED = 1, /* pixel data are lost, or libjpeg gave up */
	DECODER_UNSUPPORTED, /* a kind of JPEG that is not for us */
	DECODER_TOO_LARGE,   /* a side longer than PICTURE_SIDE_MAX */
	DECODER_TOO_MANY_SCANS,
	DECODER_NO_MEMORY
};

enum decoder_result { DECODER_FAILED = -1, DECODER_DONE = 0, DECODER_MORE = 1 };

struct decoder {
	struct jpeg_memory memory; /* first: see there */
	struct jpeg_decompress_struct in;
	struct decoder_errors {
		struct jpeg_error_mgr mgr;
		jmp_buf failed;
	} errors;
	void (*realize)(j_common_ptr); /* that of libjpeg_coef_pool.c */

	/* read by the caller: the fault after a failure; after DECODER_DONE whether pixels were
	 * lost, and how first */
	enum decoder_fault fault;
	char fault_text[JMSG_LENGTH_MAX];
	bool has_lost;
	char lost_text[JMSG_LENGTH_MAX];

	/* private below this line */
	enum {
		DECODER_CLOSED = 0,
		DECODER_HEADER,
		DECODER_INPUT,
		DECODER_OUTPUT,
		DECODER_FINISHED
	} state;
	int dct_size[PLANE_MAX];
	struct picture *picture;
	unsigned rows_done; /* of MCUs */
	unsigned scans_max;
	bool is_buffered;
	bool stop_on_loss;
	bool has_ended_early; /* no EOI: harmless if nothing else is missing */
};

/* 0 or -ENOMEM. */
int decoder_init(struct decoder *d);
void decoder_fini(struct decoder *d);

/* The same in memory of its own. Some that are not needed are kept by the thread that frees them,
 * for its next file. NULL: no memory. */
struct decoder *decoder_new(void);
void decoder_free(struct decoder *d);

/* At the end of a thread: it keeps none any more. */
void decoder_thread_fini(void);

/* Reads the header of jpeg[size], which must stay until decoder_close(), and rejects what is
 * unsupported. */
enum decoder_result decoder_open(struct decoder *d, const uint8_t *jpeg, size_t size);

/* The whole image is buffered as coefficients before the first row comes out. After decoder_open().
 */
bool decoder_is_buffered(const struct decoder *d);

/* Chooses the smallest planes that serve: with at least so many samples, of Cb and Cr of a YCbCr
 * file at least those of chroma, as far as the file has them. In the stored orientation. */
void decoder_choose(struct decoder *d, int width, int height, int chroma_width, int chroma_height);

/* What the picture will be like. After decoder_choose(). Returns the number of planes. */
unsigned decoder_shapes(const struct decoder *d, struct plane_shape shape[PLANE_MAX]);

/* A bound on the memory that libjpeg takes for this file, without the picture. After
 * decoder_choose(). */
uint64_t decoder_working_bytes(const struct decoder *d);

/* scans_max: the file's scans. stop_on_loss: fail with DECODER_DAMAGED as soon as pixels are lost.
 */
enum decoder_result decoder_start(struct decoder *d, unsigned scans_max, bool stop_on_loss);

/* Decodes up to so many rows of MCUs. */
enum decoder_result decoder_advance(struct decoder *d, unsigned rows);

/* Bytes of the file that are still to be read, which is how much work is left: what follows the
 * last of them, the pass from coefficients to samples, takes a tenth of the time at most. After
 * decoder_open(). */
uint64_t decoder_bytes_left(const struct decoder *d);

/* After DECODER_DONE. Padded; one reference, the caller's. */
struct picture *decoder_take(struct decoder *d);

void decoder_close(struct decoder *d);

#endif
