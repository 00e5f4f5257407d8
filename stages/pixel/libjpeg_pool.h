/*
 * libjpeg_pool.h - per-file memory of a libjpeg object, and its output, in pool memory.
 *
 * libjpeg would malloc each table and free all of them after every file. Here objects live on from
 * file to file, and their per-file memory is contiguous, in buffers that the core has just used.
 * The memory manager of jpeglib.h is a table of replaceable methods (libjpeg.txt, "Memory
 * management").
 *
 * Progressive files are buffered as coefficients, two bytes per sample. libjpeg would malloc and
 * free them for every file, and the kernel would clear and fault in every page again. That caused
 * half of all page faults when one picture in ten was progressive. The thread of the libjpeg object
 * only.
 */
#ifndef DARKROOM_PIXEL_LIBJPEG_POOL_H
#define DARKROOM_PIXEL_LIBJPEG_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

/* Minimum size of a buffer. Nearly all files need a single one. */
#define JPEG_MEMORY_BYTES (32 << 10)

/* Returns the bytes of an array of wide x high blocks. */
uint64_t coefficients_bytes(uint64_t wide, uint64_t high);

/* State of one libjpeg object. Its client_data must point to this struct or to a struct that begins
 * with it. The thread of the object only. */
struct jpeg_memory {
	uint64_t coefficient_bytes_max; /* of all arrays of a file; beyond it JERR_OUT_OF_MEMORY */
	/* private below this line */
	struct jvirt_barray_control *arrays; /* of coefficients */
	void *coefficients;
	void (*free_pool)(j_common_ptr c, int pool_id); /* libjpeg's */
	struct jpeg_buffer *buffers;                    /* the current one comes first */
	uint8_t *at;                                    /* free part of the current buffer */
	size_t size_left;                               /* bytes at `at` */
};

/*
 * Replaces the memory manager of c. All memory is valid until jpeg_abort_*() or jpeg_finish_*(),
 * also that which libjpeg would keep for later files. Clear pointers to it after each file. Call it
 * after jpeg_create_*() and after all allocations that must outlive files.
 */
void jpeg_memory_init(struct jpeg_memory *m, j_common_ptr c);

/* ---- output to a buffer that grows on demand ---- */

struct jpeg_output {
	struct jpeg_destination_mgr mgr; /* first: libjpeg points to it */
	size_t size_first;               /* of the first buffer; set before jpeg_start_compress() */
	uint8_t *data;                   /* pool memory of the caller, also after a failure */
	size_t size;                     /* of the file, after jpeg_finish_compress() */
};

/* Makes *o the destination of c. After jpeg_create_compress(). */
void jpeg_output_init(struct jpeg_output *o, j_compress_ptr c);

#endif
