/*
 * jpeg_structures.h - one small JPEG of every structure that libjpeg can decode.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_JPEG_STRUCTURES_H
#define DARKROOM_TESTS_UNIT_SUPPORT_JPEG_STRUCTURES_H

#include "jpeg_fixture.h"

#define STRUCTURE_WIDTH 117
#define STRUCTURE_HEIGHT 83
#define STRUCTURE_COUNT 34

/* The first one is "4:2:0". */
extern const struct fixture structures[STRUCTURE_COUNT];

/* Returns the structure of this name. The test fails if there is none. */
const struct fixture *structure(const char *name);

#endif
