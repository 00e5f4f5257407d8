/*
 * encoding.h - how a variant's file is to be encoded.
 */
#ifndef DARKROOM_PIXEL_ENCODING_H
#define DARKROOM_PIXEL_ENCODING_H

#include <stdbool.h>

struct encoding {
	unsigned quality;    /* 1..100 */
	bool is_progressive; /* keeps all coefficients in memory; always with tables of its own */
	bool is_optimized;   /* Huffman tables of its own */
	bool is_grey;        /* luma alone, whatever else the picture has */
};

#endif
