/*
 * encoding.h - how a variant's file is to be encoded.
 */
#ifndef DARKROOM_ENCODING_H
#define DARKROOM_ENCODING_H

#include <stdbool.h>

struct encoding {
	unsigned quality; /* 1..100 */
	/* Either keeps all coefficients in memory, and codes them with tables of their own. */
	bool is_progressive, is_optimized;
	bool is_grey;     /* luma alone, whatever else the picture has */
};

#endif
