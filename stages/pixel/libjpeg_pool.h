/*
 * libjpeg_pool.h - what a libjpeg object needs for the file at hand, in memory of the pool.
 *
 * libjpeg would ask malloc for each table and give all of them back with every file. Objects are
 * kept from file to file, and what they need for one lies side by side in buffers that the core has
 * just used. By the table of methods that libjpeg_coef_pool.h tells of.
 */
#ifndef DARKROOM_PIXEL_LIBJPEG_POOL_H
#define DARKROOM_PIXEL_LIBJPEG_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "libjpeg_coef_pool.h"

/* What is taken from the pool at a time, at least: nearly all files need one such buffer. */
#define JPEG_MEMORY_BYTES (32 << 10)

/* Of one libjpeg object, whose client_data points to it, or to what begins with it. The object's
 * thread only. */
struct jpeg_memory {
	struct coefficients coefficients; /* first: see there */
	/* private below this line */
	struct jpeg_memory_mgr own; /* libjpeg's methods */
	bool forgets;
	struct jpeg_buffer *buffers; /* the one in use first */
	uint8_t *at;                 /* in that; size_left bytes are left */
	size_t size_left;
};

/*
 * From now on the object has its memory for a file here, until jpeg_abort_*() or jpeg_finish_*().
 * forgets: also what libjpeg would keep for the object's later files; then pointers to it must be
 * cleared after each. After jpeg_create_*() and whatever else is to outlast files.
 */
void jpeg_memory_init(struct jpeg_memory *m, j_common_ptr c, bool forgets);

#endif
