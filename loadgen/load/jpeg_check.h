/* jpeg_check.h - is this a whole JPEG of the right size? With the system's libjpeg, not with
 * darkroom's own code. */
#ifndef DARKROOM_LOADGEN_LOAD_JPEG_CHECK_H
#define DARKROOM_LOADGEN_LOAD_JPEG_CHECK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes every line and throws it away. Returns 0 if all is well, else -1 and what is wrong in
 * problem (a decoder's warning is wrong, too). Any thread.
 */
int jpeg_check(const void *data, size_t length, uint64_t width, uint64_t height, char *problem,
               size_t problem_size);

#endif
