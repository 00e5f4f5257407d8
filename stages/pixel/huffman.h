/*
 * huffman.h - the entropy coder of an optimised baseline file: one pass over the picture.
 *
 *	huffman_start()   after jpeg_start_compress(); from now on libjpeg's symbols are noted
 *	huffman_tables()  after the last line; makes the tables and writes all headers
 *	huffman_code()    codes the notes, in steps; jpeg_finish_compress() codes the rest
 *
 * libjpeg itself would keep all coefficients and go through them twice, which takes 2.5 times as
 * long as coding with given tables. The notes lie in libjpeg's memory for the file. Errors go to
 * error_exit of the libjpeg object. These functions need the private structures of libjpeg
 * (libjpeg_private.h). Without them huffman_start() must not be called. The thread of the libjpeg
 * object only.
 */
#ifndef DARKROOM_PIXEL_HUFFMAN_H
#define DARKROOM_PIXEL_HUFFMAN_H

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "libjpeg_private.h"

#if LIBJPEG_HAS_PRIVATE
/* Returns an upper bound on the memory of a file that is started with this bytes_max. */
uint64_t huffman_bytes(uint64_t bytes_max);

/* Replaces the entropy coder of c. The file must be baseline without restart markers. bytes_max
 * limits the memory of the notes. If they exceed it, the tables are made from the notes until then,
 * and all later symbols are coded at once. */
void huffman_start(j_compress_ptr c, uint64_t bytes_max);

void huffman_tables(j_compress_ptr c);

/* Codes 1/parts of the notes that are left. */
void huffman_code(j_compress_ptr c, unsigned parts);
#else
#define huffman_bytes(bytes_max) UINT64_C(0)
#define huffman_start(c, bytes_max) ((void)(c))
#endif

#endif
