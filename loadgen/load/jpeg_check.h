/* jpeg_check.h - checks that data is a complete JPEG of the right size. */
#ifndef DARKROOM_LOADGEN_LOAD_JPEG_CHECK_H
#define DARKROOM_LOADGEN_LOAD_JPEG_CHECK_H

#include <stddef.h>
#include <stdint.h>

/* Decodes all lines and discards them. Returns 0, or -1 and what is wrong in `problem`; a decoder's
 * warning is wrong as well. Any thread. */
int jpeg_check(const void *data, size_t length, uint64_t width, uint64_t height, char *problem,
               size_t problem_size);

#endif
