/*
 * entropy_compare.h - every coefficient of a file, decoded by entropy.c and by libjpeg.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_ENTROPY_COMPARE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_ENTROPY_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/entropy.h"

struct entropy_comparison {
	bool is_decoded; /* the file has one sequential scan of Huffman codes with valid headers */
	enum entropy_end end;
	size_t bytes_left; /* of the file, with ENTROPY_GOOD */
	unsigned blocks;
};

/*
 * Decodes the file until entropy.c stops. Aborts if a block before that is different, or if all are
 * decoded although libjpeg warns that data are missing or codes are bad. Files of more than
 * blocks_max blocks are not decoded. Any thread; needs the private structures of libjpeg.
 */
struct entropy_comparison entropy_compare(const uint8_t *jpeg, size_t size, unsigned blocks_max);

#endif
