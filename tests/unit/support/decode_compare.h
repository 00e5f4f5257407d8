/* decode_compare.h - decodes files with the own decoder and with libjpeg's. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_DECODE_COMPARE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_DECODE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decode_comparison {
	/* NULL: the planes are the same, and libjpeg sees no loss alone. They may differ where
	 * coefficients are larger than those of any picture: each inverse DCT overflows in its own
	 * way. */
	const char *difference;
	bool is_own;            /* the own decoder has made the picture */
	bool is_done, has_lost; /* of the own decoder */
};

/* Decodes with dct_size samples for 8 of each component: 1, 2, 4 or 8. */
struct decode_comparison decode_compare(const uint8_t *jpeg, size_t size, int dct_size);

#endif
