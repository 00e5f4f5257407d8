/* picture_compare.h - compares pictures. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PICTURE_COMPARE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PICTURE_COMPARE_H

#include <stdbool.h>

struct picture;

/* Returns whether both are NULL or have the same planes and samples, padding included. */
bool is_same_picture(const struct picture *a, const struct picture *b);

#endif
