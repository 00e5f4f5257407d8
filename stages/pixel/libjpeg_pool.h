/*
 * libjpeg_pool.h - per-file memory of a libjpeg object, in pool memory.
 *
 * libjpeg would malloc each table and free all of them after every file. Here objects live on from
 * file to file, and their per-file memory is contiguous, in buffers that the core has just used.
 * It replaces methods of libjpeg's memory manager, as libjpeg_coef_pool.h does.
 */
#ifndef DARKROOM_PIXEL_LIBJPEG_POOL_H
#define DARKROOM_PIXEL_LIBJPEG_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "libjpeg_coef_pool.h"

/* Minimum size of a buffer. Nearly all files need a single one. */
#define JPEG_MEMORY_BYTES (32 << 10)

/* State of one libjpeg object. Its client_data must point to this struct or to a struct that begins
 * with it. The thread of the object only. */
struct jpeg_memory {
	struct coefficients coefficients; /* first: client_data points to it */
	/* private below this line */
	struct jpeg_memory_mgr own; /* libjpeg's methods */
	bool forgets;
	struct jpeg_buffer *buffers; /* the current one comes first */
	uint8_t *at;                 /* free part of the current buffer */
	size_t size_left;            /* bytes at `at` */
};

/*
 * Replaces the memory manager of c. Memory of a file is valid until jpeg_abort_*() or
 * jpeg_finish_*(). With `forgets` this includes memory that libjpeg would keep for later files; the
 * caller must clear pointers to it after each file. Call it after jpeg_create_*() and after all
 * allocations that must outlive files.
 */
void jpeg_memory_init(struct jpeg_memory *m, j_common_ptr c, bool forgets);

#endif
