/*
 * encoder.h - planes to JPEG files.
 *
 * Baseline with the standard Huffman tables, 4:2:0 or grey. One libjpeg object for each quality and each of colour and
 * grey, set up once: reconfiguring one costs time, and switching its table options off again corrupts files. An encoder
 * belongs to one thread.
 */
#ifndef DARKROOM_ENCODER_H
#define DARKROOM_ENCODER_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct picture;

#define ENCODER_QUALITY_MAX 16

struct encoder {
	struct encoder_errors {
		struct jpeg_error_mgr mgr;
		jmp_buf failed;
	} errors;
	struct encoder_file {
		struct jpeg_destination_mgr mgr;
		uint8_t *data; /* pool memory */
		size_t size, size_first;
	} file;
	unsigned quality_count;
	struct jpeg_compress_struct out[ENCODER_QUALITY_MAX][2]; /* [1]: colour */
};

/* One entry per quality (1..100). 0 or -ENOMEM. */
int encoder_init(struct encoder *e, const unsigned *quality, unsigned quality_count);
void encoder_fini(struct encoder *e);

/*
 * Encodes the picture (grey or 4:2:0, padded, only read) with the quality of this index, and with the ICC profile if
 * there is one. 0, and *data of *size bytes is the caller's, pool memory; or -ENOMEM, or -EINVAL if libjpeg refuses.
 */
int encoder_encode(struct encoder *e, unsigned index, const struct picture *p, const uint8_t *icc, size_t icc_size,
                   uint8_t **data, size_t *size);

/* What a file of this picture is expected to take at most while it is made. Random noise at quality 100 fits. */
uint64_t encoder_bytes(unsigned quality, unsigned plane_count, int width, int height, size_t icc_size);

#endif
