/*
 * entropy.h - the Huffman decoder of baseline JPEGs, in place of libjpeg's, in half of its time.
 *
 *	entropy_suits()   after jpeg_read_header(); whether the file can be decoded
 *	entropy_start()   after jpeg_start_decompress(); libjpeg gets its blocks from it now
 *	entropy_check()   after each row of MCUs
 *
 * Its blocks are those of libjpeg, bit by bit, as long as the data are sound. Otherwise it stops,
 * and the file must be decoded again without it. The thread of the libjpeg object only.
 *
 * Progressive files stay with libjpeg. callgrind counted 22 of them (2.4 MB, with all variants of
 * conf/drain.ini): 36 % of all instructions are refinement of AC coefficients, which reads single
 * bits between codes, so that a table of two symbols does not help. First scans of AC coefficients
 * are 7 %, of DC coefficients 1.5 %. Halving those would save 4 % of such a file. These are 9 % of
 * the dataset's files.
 */
#ifndef DARKROOM_PIXEL_ENTROPY_H
#define DARKROOM_PIXEL_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#include "libjpeg_private.h"

/* Why it has stopped. */
enum entropy_end {
	ENTROPY_GOOD = 0,
	ENTROPY_BAD_CODE,     /* a code that does not exist, or more than 64 coefficients */
	ENTROPY_CUT,          /* the file ends too early */
	ENTROPY_SHORT,        /* a marker comes too early */
	ENTROPY_OUT_OF_ORDER, /* not the restart marker that is due */
	ENTROPY_LEFT_OVER     /* bytes before a restart marker, which some encoders write */
};

#if LIBJPEG_HAS_PRIVATE
/* Returns whether the file has one sequential scan of Huffman codes with 8 bits, and is large
 * enough. Never without the private structures of libjpeg (libjpeg_private.h). */
bool entropy_suits(j_decompress_ptr in);

/* Returns the memory that entropy_start() takes from libjpeg's per-file memory. */
size_t entropy_bytes(const struct jpeg_decompress_struct *in);

/* Replaces the entropy decoder of a file that suits. Its memory is the file's: it ends with
 * jpeg_abort_decompress(). Errors go to error_exit. */
void entropy_start(j_decompress_ptr in);

/* Returns why it has stopped, or ENTROPY_GOOD. After entropy_start(). After the last row is_over
 * sets the source to the first byte that was not used. */
enum entropy_end entropy_check(j_decompress_ptr in, bool is_over);
#else
#define entropy_suits(in) false /* the others are not called */
#define entropy_bytes(in) 0U
#define entropy_start(in) ((void)(in))
#define entropy_check(in, is_over) ENTROPY_GOOD
#endif

#endif
