/*
 * libjpeg_coef_pool.h - libjpeg's arrays of coefficients, in memory of the pool.
 *
 * Files that are progressive, or have tables of their own, are held as coefficients: two bytes for
 * each sample. libjpeg would ask malloc for them and give them back for every file, and the kernel
 * would clear and fault in every page of them anew: half of all page faults where a tenth of the
 * pictures are progressive. The memory manager of jpeglib.h is a table of methods, made to be
 * replaced (libjpeg.txt, "Memory management"); these are the three that concern arrays of blocks.
 */
#ifndef DARKROOM_PIXEL_LIBJPEG_COEF_POOL_H
#define DARKROOM_PIXEL_LIBJPEG_COEF_POOL_H

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

/* Of one libjpeg object, whose client_data points to it, or to what begins with it. The object's
 * thread only. */
struct coefficients {
	uint64_t bytes_max; /* what the arrays may take together: else JERR_OUT_OF_MEMORY */
	/* private below this line */
	struct jvirt_barray_control *arrays;
	void *buffer;
	void (*realize)(j_common_ptr); /* libjpeg's own, for arrays of samples */
};

/* What an array of so many blocks takes. */
uint64_t coefficients_bytes(uint64_t wide, uint64_t high);

/* The object makes its arrays of blocks here from now on. After jpeg_create_*(), and bytes_max is
 * set. */
void coefficients_init(struct coefficients *k, j_common_ptr c);

/* Gives back those of the file at hand, which libjpeg has forgotten. */
void coefficients_free(struct coefficients *k);

#endif
