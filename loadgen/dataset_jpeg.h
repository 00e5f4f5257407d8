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

struct scene;
struct encoder;

enum jpeg_sampling {
	JPEG_420 = 1,
	JPEG_422,
	JPEG_444,
	JPEG_GREY
};

struct jpeg_form {
	int32_t width, height; /* as the viewer sees it */
	int quality;
	enum jpeg_sampling sampling;
	bool progressive;
	bool optimised;        /* Huffman tables made for the picture */
	bool has_jfif;
	unsigned restart_rows; /* MCU rows between restart markers; 0: none */
	unsigned orientation;  /* EXIF's: the stream is stored so that this turns it upright */
};

struct jpeg_stream {
	const uint8_t *data; /* the encoder's, until its next use */
	size_t size;
};

/* NULL for no memory. */
struct encoder *encoder_new(void);
void encoder_free(struct encoder *e);

/* A scene composed in this encoder's memory may be used with it until the next one. */
struct scene *encoder_scene(struct encoder *e);

/*
 * Encodes s, with so much detail (SCENE_DETAIL_ONE is as meant). sample is 1, or n to encode only every n-th MCU row,
 * upright, to learn about how large 1/n of the whole would be; *share gets the share of rows in 1/65536.
 * Returns 0, -ENOMEM, or -EIO if libjpeg refuses, which only a fault of ours makes it do.
 */
int encoder_encode(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail, int32_t sample,
                   struct jpeg_stream *stream, uint32_t *share);

/* The height of an MCU row in pixels. */
int32_t jpeg_mcu_height(enum jpeg_sampling sampling);

#endif
