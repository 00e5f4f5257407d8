/*
 * decoder.h - decodes a file to planes, in interruptible steps: JPEG here, others in a process of
 * their own (decoder_jailed.h).
 *
 *	decoder_open()     reads the header
 *	decoder_choose()   chooses the size of the planes
 *	decoder_start()    allocates them
 *	decoder_advance()  decodes some rows; call it while it returns DECODER_MORE
 *	decoder_take()     transfers the picture to the caller
 *	decoder_close()    from any state; the decoder can be opened again
 *
 * A decoder reuses one libjpeg object. No data of a file remain for the next one. A decoder belongs
 * to one thread at a time. It may move to another thread between two steps through a queue or
 * anything else that orders memory. After a failure `fault` holds the reason.
 */
#ifndef DARKROOM_PIXEL_DECODER_H
#define DARKROOM_PIXEL_DECODER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "jail/file_header.h"
#include "jail/jail.h"
#include "libjpeg_pool.h"
#include "picture.h"

enum decoder_fault {
	DECODER_DAMAGED = 1, /* pixel data are lost, or libjpeg gave up */
	DECODER_UNSUPPORTED, /* a kind of JPEG that is not supported */
	DECODER_TOO_LARGE,   /* a side longer than PICTURE_SIDE_MAX */
	DECODER_TOO_MANY_SCANS,
	DECODER_TOO_MUCH_WORK, /* scans that visit blocks more often than their data justify */
	DECODER_NO_MEMORY
};

enum decoder_result { DECODER_FAILED = -1, DECODER_DONE = 0, DECODER_MORE = 1 };

struct decoder {
	struct jpeg_memory memory; /* first: client_data points to it */
	struct jpeg_decompress_struct in;
	struct decoder_errors {
		struct jpeg_error_mgr mgr;
		jmp_buf failed;
	} errors;
	void (*realize)(j_common_ptr); /* method of libjpeg_pool.c */

	/* public: the reason of a failure */
	enum decoder_fault fault;
	char fault_text[JMSG_LENGTH_MAX];
	unsigned retry_s; /* seconds until the file may be decoded; 0: not known */
	/* public: whether pixels are lost; after DECODER_DONE */
	bool has_lost;
	/* public: whether the whole image is buffered as coefficients before the first row is
	 * decoded; after decoder_open() */
	bool is_buffered;

	/* public, of files that are not JPEGs. Set before decoder_open(): the colour 0xRRGGBB
	 * behind transparent pixels, and the most CPU time of the process. */
	uint32_t background;
	uint64_t cpu_ms;
	struct jail_job job; /* cpu_ns: public, since decoder_start() */
	/* After DECODER_DONE, until decoder_close(): the colour profile; NULL: none, or
	 * metadata_read() has found it. */
	uint8_t *icc;
	size_t icc_size;

	/* private below this line */
	struct file_header header; /* of a file that is not a JPEG */
	bool is_jailed;
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
	const uint8_t *source; /* the file */
	size_t source_size;
	uint64_t bytes_before_scans; /* of the file, that were unread when the header was */
	uint64_t visits;             /* of blocks, by all scans so far */
	boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *); /* libjpeg's own */
	int dc_max[D_MAX_BLOCKS_IN_MCU];
	bool has_entropy;      /* entropy.h decodes the file */
	struct mcu_rows *mcus; /* then; makes the planes of a file that is not buffered */
	bool stop_on_loss;
	bool has_ended_early; /* EOI is missing, which is harmless if all pixels are there */
};

/* Returns 0 or -ENOMEM. */
int decoder_init(struct decoder *d);
void decoder_fini(struct decoder *d);

/* Allocates a decoder, or reuses an idle one of the calling thread. Returns NULL without memory.
 * decoder_free() caches up to two idle decoders in the calling thread; it ignores NULL. */
struct decoder *decoder_new(void);
void decoder_free(struct decoder *d);

/* Destroys the idle decoders of the calling thread. Call it before the thread ends. */
void decoder_thread_fini(void);

/* Reads the header of file[size], which must stay until decoder_close(). Rejects unsupported files.
 * Returns DECODER_MORE or DECODER_FAILED. */
enum decoder_result decoder_open(struct decoder *d, const uint8_t *file, size_t size);

/* Returns whether the file has fewer bits than blocks, so that pixels must be missing: every block
 * has a DC code of at least one bit. After decoder_open(). */
bool decoder_is_cut(const struct decoder *d);

/* Leaves this file to libjpeg. After decoder_open(). */
void decoder_use_libjpeg(struct decoder *d);

/* Chooses the smallest planes with at least width x height samples, as far as the file has them. Cb
 * and Cr of a YCbCr file need only the chroma size. Sizes are in the stored orientation. */
void decoder_choose(struct decoder *d, int width, int height, int chroma_width, int chroma_height);

/* Sets the shapes of the planes and returns their number. After decoder_choose(). */
unsigned decoder_shapes(const struct decoder *d, struct plane_shape shape[PLANE_MAX]);

/* Returns an upper bound on the memory of the decoder for this file, without the picture. After
 * decoder_choose(). */
uint64_t decoder_working_bytes(const struct decoder *d);

/* Starts decoding. More than scans_max scans fail with DECODER_TOO_MANY_SCANS. With stop_on_loss
 * the first lost pixel fails with DECODER_DAMAGED. Returns DECODER_MORE or DECODER_FAILED. */
enum decoder_result decoder_start(struct decoder *d, unsigned scans_max, bool stop_on_loss);

/* Decodes up to `rows` rows of MCUs. */
enum decoder_result decoder_advance(struct decoder *d, unsigned rows);

/* Returns whether the file waits for a process to decode it, which other files have. */
bool decoder_waits(const struct decoder *d);

/* Returns the bytes of the file that are still to be read, a measure of the remaining work. The
 * pass from coefficients to samples, which follows the last byte, takes at most a tenth of the
 * time. Damage may make it grow once: the file is then decoded again. After decoder_open(). */
uint64_t decoder_bytes_left(const struct decoder *d);

/* Returns the padded picture and transfers its reference to the caller. After DECODER_DONE. */
struct picture *decoder_take(struct decoder *d);

void decoder_close(struct decoder *d);

#endif
