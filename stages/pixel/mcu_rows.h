/*
 * mcu_rows.h - decodes rows of MCUs to planes, with the inverse DCT of mcu.h in place of libjpeg's.
 *
 * libjpeg transforms each block when it is decoded. Here a few MCUs are decoded first, and
 * neighbouring blocks are transformed in pairs. The samples are those of libjpeg, bit by bit. Needs
 * the private structures of libjpeg (libjpeg_private.h). The thread of the libjpeg object only.
 */
#ifndef DARKROOM_PIXEL_MCU_ROWS_H
#define DARKROOM_PIXEL_MCU_ROWS_H

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#include "libjpeg_private.h"
#include "picture.h"

struct mcu_rows;

#if LIBJPEG_HAS_PRIVATE
/* Returns the memory that mcu_rows_start() takes from libjpeg's per-file memory. */
size_t mcu_rows_bytes(void);

/* After jpeg_start_decompress() of a file with one scan. The planes of p have dct_size[c] samples
 * for each block. Errors go to error_exit. */
struct mcu_rows *mcu_rows_start(j_decompress_ptr in, const struct picture *p, const int *dct_size);

/* Decodes the next row of MCUs, `row`, by in->entropy, in place of jpeg_read_raw_data(). */
void mcu_rows_make(struct mcu_rows *m, j_decompress_ptr in, unsigned row);
#else
#define mcu_rows_bytes() 0U
#define mcu_rows_start(in, p, dct_size) ((void)(in), NULL)
#define mcu_rows_make(m, in, row) ((void)(m))
#endif

#endif
