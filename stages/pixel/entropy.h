/*
 * entropy.h - the Huffman decoder of JPEGs, in place of libjpeg's, in half of its time.
 *
 *	entropy_suits()   after jpeg_read_header(); whether the file can be decoded
 *	entropy_start()   after jpeg_start_decompress(); in->entropy decodes with it now
 *	entropy_check()   after each row of MCUs, of every scan
 *
 * Its blocks are those of libjpeg, bit by bit, as long as the data are sound. Otherwise it stops,
 * and the file must be decoded again without it. The thread of the libjpeg object only.
 *
 * libjpeg keeps the coefficients of a progressive file and reads the markers between its scans.
 * Sequential files with several scans stay with it.
 */
#ifndef DARKROOM_PIXEL_ENTROPY_H
#define DARKROOM_PIXEL_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
/* Returns whether the file is progressive or has one sequential scan, with Huffman codes and 8
 * bits, and is large enough. Never without the private structures of libjpeg (libjpeg_private.h).
 */
bool entropy_suits(j_decompress_ptr in);

/* Returns the memory that entropy_start() takes from libjpeg's per-file memory. */
size_t entropy_bytes(const struct jpeg_decompress_struct *in);

/* Replaces the entropy decoder of a file that suits. Its memory is the file's: it ends with
 * jpeg_abort_decompress(). Errors go to error_exit. */
void entropy_start(j_decompress_ptr in);

/* Returns why it has stopped, or ENTROPY_GOOD. After entropy_start(). After the last row of a
 * sequential file is_over sets the source to the first byte that was not used. */
enum entropy_end entropy_check(j_decompress_ptr in, bool is_over);
#else
#define entropy_suits(in) false /* the others are not called */
#define entropy_bytes(in) 0U
#define entropy_start(in) ((void)(in))
#define entropy_check(in, is_over) ENTROPY_GOOD
#endif

/* ---- private: the tables, for the entropy*.c files ---- */

/*
 * They find up to two Huffman symbols and their values in one look-up. The next bits of a scan are
 * the index (baseline, ITU-T T.81, F.2.2).
 */

/* Bits of an index. With 10 bits decoding takes 3 % longer, 12 bits do not fit the first cache. */
#define ENTROPY_AC_BITS 11
#define ENTROPY_DC_BITS 9

/*
 * An entry has one or two coefficients. Places count from the next free place of the block, in
 * zigzag order. An entry with one coefficient writes 0 to the free place behind it.
 *
 *	bits 0-7    length: bits of both symbols and values
 *	bits 8-15   place of the first coefficient
 *	bits 16-23  place of the second coefficient
 *	bits 24-31  places that are used, or ENTROPY_END, or ENTROPY_LONG
 *	bits 32-47  value of the first coefficient
 *	bits 48-63  value of the second coefficient
 *
 * With ENTROPY_LONG the code and its value do not fit the index: length is that of the code, the
 * two places are the run and the size of its symbol. Length 0: the code itself does not fit.
 */
#define ENTROPY_LONG 0x40
#define ENTROPY_END                                                                  \
	0x80 /* the block ends; the places of a coefficient before the end are added \
	      */

/* The codes of a table, for those that are too long for the index. */
struct entropy_codes {
	uint32_t end[17];   /* of the codes up to this length, shifted to 16 bits */
	uint32_t first[17]; /* index into symbol[] of the first code, less that code */
	uint8_t symbol[256];
	uint16_t brief[256]; /* by 8 bits, what entropy_code_find() returns; 0: none that short */
};

/* The tables of a component. */
struct entropy_table {
	uint64_t ac[1 << ENTROPY_AC_BITS];
	uint64_t dc[1 << ENTROPY_DC_BITS]; /* the second coefficient is an AC coefficient */
	struct entropy_codes ac_codes, dc_codes;
};

void entropy_codes_make(struct entropy_codes *c, const JHUFF_TBL *t);

/* Makes the tables for codes that libjpeg has checked. */
void entropy_table_make(struct entropy_table *t, const JHUFF_TBL *dc, const JHUFF_TBL *ac);

/* Returns the tables for these codes if they are a pair of T.81, annex K.3, which most files have.
 * Otherwise returns NULL. */
const struct entropy_table *entropy_table_standard(const JHUFF_TBL *dc, const JHUFF_TBL *ac);

/* Returns length << 8 | symbol of the code at the begin of these 16 bits, or 0 if there is none. */
unsigned entropy_code_find(const struct entropy_codes *c, unsigned bits);

#endif
