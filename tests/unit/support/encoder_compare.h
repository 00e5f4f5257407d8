/* encoder_compare.h - compares files of the own encoder with those of libjpeg. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_ENCODER_COMPARE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_ENCODER_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/picture.h"

/* Returns whether libjpeg writes the same file for p, byte by byte, with the Huffman tables of the
 * file. The picture has a quality, a chroma and an ICC profile, if its size is not 0. */
bool is_file_of_libjpeg(const uint8_t *data, size_t size, unsigned quality, enum chroma chroma,
                        const struct picture *p, const uint8_t *icc, size_t icc_size);

#endif
