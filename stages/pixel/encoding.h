/*
 * encoding.h - parameters of the JPEG file of a variant.
 */
#ifndef DARKROOM_PIXEL_ENCODING_H
#define DARKROOM_PIXEL_ENCODING_H

#include <stdbool.h>

struct encoding {
	unsigned quality;    /* 1..100 */
	bool is_progressive; /* buffers all coefficients; always has Huffman tables of its own */
	bool is_optimized;   /* Huffman tables are made for the file */
	bool is_grey;        /* only luma is encoded */
};

#endif
