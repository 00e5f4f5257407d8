/*
 * huffman.h - the entropy coder of an optimised baseline file: one pass over the picture.
 *
 *	huffman_new()
 *	huffman_start()   after jpeg_start_compress(); from now on libjpeg's symbols are noted
 *	huffman_tables()  after the last line; makes the tables and writes all headers
 *	huffman_code()    codes the notes, in steps; jpeg_finish_compress() codes the rest
 *	huffman_free()    at any time
 *
 * libjpeg itself would keep all coefficients and go through them twice, which takes 2.5 times as
 * long as coding with given tables. Errors go to error_exit of the libjpeg object. These functions
 * need the private structures of libjpeg (libjpeg_private.h). Without them huffman_new() must not
 * be called. The thread of the libjpeg object only.
 */
#ifndef DARKROOM_PIXEL_HUFFMAN_H
#define DARKROOM_PIXEL_HUFFMAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "libjpeg_private.h"

struct huffman;

#if LIBJPEG_HAS_PRIVATE
/* bytes_max limits the memory of the notes. If they exceed it, the tables are made from the notes
 * until then, and all later symbols are coded at once. Returns NULL without memory. */
struct huffman *huffman_new(uint64_t bytes_max);

/* NULL is ignored. */
void huffman_free(struct huffman *h);

/* Returns an upper bound on the memory of huffman_new(bytes_max) and its notes. */
uint64_t huffman_bytes(uint64_t bytes_max);

/* Replaces the entropy coder of c. The file must be baseline without restart markers. h must stay
 * until the file is finished or aborted. */
void huffman_start(struct huffman *h, j_compress_ptr c);

void huffman_tables(struct huffman *h, j_compress_ptr c);

/* Codes 1/parts of the notes that are left. */
void huffman_code(struct huffman *h, j_compress_ptr c, unsigned parts);
#else
#define huffman_new(bytes_max) NULL
#define huffman_free(h) ((void)(h))
#define huffman_bytes(bytes_max) UINT64_C(0)
#define huffman_start(h, c) ((void)(h))
#endif

#endif
