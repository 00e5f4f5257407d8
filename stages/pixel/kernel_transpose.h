/* kernel_transpose.h - into_tile and out_of_tile of all vector kernels. Private to them. */
#ifndef DARKROOM_PIXEL_KERNEL_TRANSPOSE_H
#define DARKROOM_PIXEL_KERNEL_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

/* tile[x][row] = rows[row][x]; width and row_count are rounded up to 8. */
void kernel_into_tile(const int16_t *rows, ptrdiff_t pitch, int width, int row_count,
                      int16_t *tile);

/* dst[row][x] = columns[x][row]; width is rounded up to 16. */
void kernel_out_of_tile(const uint8_t *columns, int width, int row_count, uint8_t *dst,
                        ptrdiff_t stride);

#endif
