/*
 * libjpeg_output.h - output of libjpeg to a buffer of pool memory that grows on demand.
 *
 * The thread of the libjpeg object only.
 */
#ifndef DARKROOM_PIXEL_LIBJPEG_OUTPUT_H
#define DARKROOM_PIXEL_LIBJPEG_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct jpeg_output {
	struct jpeg_destination_mgr mgr; /* first: libjpeg points to it */
	size_t size_first;               /* of the first buffer; set before jpeg_start_compress() */
	uint8_t *data;                   /* pool memory of the caller, also after a failure */
	size_t size;                     /* of the file, after jpeg_finish_compress() */
};

/* Makes *o the destination of c. After jpeg_create_compress(). */
void jpeg_output_init(struct jpeg_output *o, j_compress_ptr c);

#endif
