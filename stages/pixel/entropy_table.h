/*
 * entropy_table.h - tables that find up to two Huffman symbols and their values in one look-up.
 *
 * The next bits of a scan are the index (baseline, ITU-T T.81, F.2.2). Any thread.
 */
#ifndef DARKROOM_PIXEL_ENTROPY_TABLE_H
#define DARKROOM_PIXEL_ENTROPY_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

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
};

/* The tables of a component. */
struct entropy_table {
	uint64_t ac[1 << ENTROPY_AC_BITS];
	uint64_t dc[1 << ENTROPY_DC_BITS]; /* the second coefficient is an AC coefficient */
	struct entropy_codes ac_codes, dc_codes;
};

/* Makes the tables for codes that libjpeg has checked. */
void entropy_table_make(struct entropy_table *t, const JHUFF_TBL *dc, const JHUFF_TBL *ac);

/* Returns the tables for these codes if they are a pair of T.81, annex K.3, which most files have.
 * Otherwise returns NULL. */
const struct entropy_table *entropy_table_standard(const JHUFF_TBL *dc, const JHUFF_TBL *ac);

/* Returns length << 8 | symbol of the code at the begin of these 16 bits, or 0 if there is none. */
unsigned entropy_code_find(const struct entropy_codes *c, unsigned bits);

#endif
