/*
 * dataset_jpeg.h - a scene becomes a JPEG stream, whole or as a sample of its rows.
 *
 * One encoder per thread; its buffers and libjpeg's state are kept from picture to picture.
 */
#ifndef DARKROOM_DATASET_JPEG_H
#define DARKROOM_DATASET_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct encoder;
struct scene;

enum jpeg_sampling {
	JPEG_420 = 1,
	JPEG_422,
	JPEG_444,
	JPEG_GREY
};

struct jpeg_form {
	int32_t width, height; /* as stored */
	int quality;
	enum jpeg_sampling sampling;
	bool is_progressive;
	bool is_optimised;     /* Huffman tables made for the picture */
	bool has_jfif;
	bool has_restarts;     /* after every row of MCUs */
};

struct jpeg_stream {
	const uint8_t *data; /* the encoder's, until its next use */
	size_t size;
};

/* NULL for no memory. */
struct encoder *encoder_new(void);
void encoder_free(struct encoder *e);

/*
 * Encodes s, which has the form's size, with so much detail (SCENE_DETAIL_ONE is as meant). With a sample of n only every
 * n-th row of MCUs is painted; *sampled gets the number of pixel rows. Returns 0, -ENOMEM, or -EIO if libjpeg refuses.
 */
int encoder_encode(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail, int32_t sample,
                   struct jpeg_stream *stream, int32_t *sampled);

/* The height of a row of MCUs in pixels. */
int32_t jpeg_mcu_height(enum jpeg_sampling sampling);

#endif
