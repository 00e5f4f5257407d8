/*
 * huffman_table.h - optimal Huffman tables for the symbols of one file. Pure functions. Any thread.
 */
#ifndef DARKROOM_PIXEL_HUFFMAN_TABLE_H
#define DARKROOM_PIXEL_HUFFMAN_TABLE_H

#include <stdint.h>

#define HUFFMAN_SYMBOLS 256
#define HUFFMAN_LENGTH_MAX 16 /* bits of a code */

/* As in a file (ITU-T T.81, annex C). */
struct huffman_table {
	uint8_t bits[HUFFMAN_LENGTH_MAX + 1]; /* codes of each length; [0] is not used */
	uint8_t symbol[HUFFMAN_SYMBOLS];      /* by length */
};

/*
 * Makes the table *t for count[HUFFMAN_SYMBOLS], of which at least one must be above 0. The counts
 * must be below 2^24. For each counted symbol, code[symbol] becomes its code shifted left by the
 * number of bits that follow it in the file, symbol & 15. The lower 5 bits of code[symbol] hold the
 * length of both.
 */
void huffman_table_make(const uint32_t *count, struct huffman_table *t, uint32_t *code);

#endif
