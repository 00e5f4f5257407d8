/*
 * huffman.h - the last step of libjpeg's baseline encoder, with Huffman tables made for the file.
 *
 *	huffman_new()     then huffman_start(), after jpeg_start_compress(): what libjpeg has to
 *code is only noted from now on huffman_tables()  after the last line: makes the tables, and writes
 *them with all other headers huffman_code()    writes what was noted, in steps;
 *jpeg_finish_compress() whatever is left to do huffman_free()    at any time
 *
 * libjpeg itself would keep all coefficients and go through them twice, which takes two and a half
 *times as long as with tables made before. Errors go to the object's error_exit. Uses what
 *jpegint.h tells of libjpeg-turbo 2. The object's thread only.
 */
#ifndef DARKROOM_PIXEL_HUFFMAN_H
#define DARKROOM_PIXEL_HUFFMAN_H

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct huffman;

/* bytes_max: of memory for notes. Where that does not do, tables are those for the part that was
 * noted, and what comes after is coded at once. NULL: no memory. */
struct huffman *huffman_new(uint64_t bytes_max);
void huffman_free(struct huffman *h);

/* What one takes in all, at most. */
uint64_t huffman_bytes(uint64_t bytes_max);

/* For a baseline file without restart markers; h must stay until it is finished or aborted. */
void huffman_start(struct huffman *h, j_compress_ptr c);

void huffman_tables(struct huffman *h, j_compress_ptr c);

/* A part of what is left: all of it after that many such calls. */
void huffman_code(struct huffman *h, j_compress_ptr c, unsigned parts);

#endif
