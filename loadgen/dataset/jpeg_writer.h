/*
 * jpeg_writer.h - encodes a scene as a JPEG, whole or as a sample of its rows.
 *
 * Each thread has a writer of its own, which keeps its buffers from picture to picture.
 */
#ifndef DARKROOM_LOADGEN_DATASET_JPEG_WRITER_H
#define DARKROOM_LOADGEN_DATASET_JPEG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jpeg_writer;
struct scene;

enum jpeg_sampling { JPEG_420 = 1, JPEG_422, JPEG_444, JPEG_GREY };

struct jpeg_form {
	int32_t width, height; /* as stored */
	int quality;
	enum jpeg_sampling sampling;
	bool is_progressive;
	bool is_optimised; /* Huffman tables made for the picture */
	bool has_jfif;
	bool has_restarts; /* after every row of MCUs */
};

struct jpeg_stream {
	const uint8_t *data; /* the writer's, until its next use */
	size_t size;
};

/* Returns NULL if there is no memory. */
struct jpeg_writer *jpeg_writer_new(void);
void jpeg_writer_free(struct jpeg_writer *w);

/*
 * Encodes s, which has the form's size. `detail` scales its fine texture and noise;
 * SCENE_DETAIL_ONE is the scene's own. With sample n only every n-th row of MCUs is painted, and
 * *sampled gets the number of pixel rows. Returns 0, -ENOMEM, or -EIO if libjpeg fails.
 */
int jpeg_writer_encode(struct jpeg_writer *w, const struct scene *s, const struct jpeg_form *form,
                       int32_t detail, int32_t sample, struct jpeg_stream *stream,
                       int32_t *sampled);

/* Returns the height of a row of MCUs in pixels. */
int32_t jpeg_mcu_height(enum jpeg_sampling sampling);

#endif
