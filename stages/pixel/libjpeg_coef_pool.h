/*
 * libjpeg_coef_pool.h - libjpeg's coefficient arrays in pool memory.
 *
 * Progressive files are buffered as coefficients, two bytes per sample. libjpeg would malloc and
 * free them for every file, and the kernel would clear and fault in every page again. That caused
 * half of all page faults when one picture in ten was progressive. The memory manager of jpeglib.h
 * is a table of replaceable methods (libjpeg.txt, "Memory management"). These are its three methods
 * for arrays of blocks.
 */
#ifndef DARKROOM_PIXEL_LIBJPEG_COEF_POOL_H
#define DARKROOM_PIXEL_LIBJPEG_COEF_POOL_H

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

/* State of one libjpeg object. Its client_data must point to this struct or to a struct that begins
 * with it. The thread of the object only. */
struct coefficients {
	uint64_t bytes_max; /* of all arrays of a file; beyond it JERR_OUT_OF_MEMORY */
	/* private below this line */
	struct jvirt_barray_control *arrays;
	void *buffer;
	void (*realize)(j_common_ptr); /* libjpeg's own, for arrays of samples */
};

/* Returns the bytes of an array of wide x high blocks. */
uint64_t coefficients_bytes(uint64_t wide, uint64_t high);

/* Replaces the methods of c. After jpeg_create_*(). bytes_max must be set before a file starts. */
void coefficients_init(struct coefficients *k, j_common_ptr c);

/* Returns the arrays of the current file to the pool. libjpeg must have forgotten them. */
void coefficients_free(struct coefficients *k);

#endif
