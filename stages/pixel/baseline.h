/*
 * baseline.h - writes baseline JPEG files with Huffman tables of their own, without libjpeg.
 *
 *	baseline_new()     for one picture
 *	baseline_note()    once for each row of MCUs, from the first one
 *	baseline_tables()  makes the tables and writes the headers
 *	baseline_code()    codes the notes, in steps
 *	baseline_take()    transfers the file to the caller
 *
 * libjpeg would keep all coefficients and go through them twice. Here the planes become notes
 * (mcu.h), which are coded when their symbols are counted. The files are those that libjpeg writes
 * with these Huffman tables, byte by byte. One thread at a time, any thread.
 */
#ifndef DARKROOM_PIXEL_BASELINE_H
#define DARKROOM_PIXEL_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "picture.h"

struct baseline;

/* Returns an upper bound on the memory of a file with this notes_bytes_max, without the file. */
uint64_t baseline_bytes(int width, uint64_t notes_bytes_max);

/*
 * Returns a file for p, whose planes may have steps, or NULL without memory. Picture and profile
 * are borrowed, as encoder_new() says. notes_bytes_max limits the memory of the notes. If they
 * exceed it, the tables are made from the notes until then, and all notes are coded at once.
 */
struct baseline *baseline_new(unsigned quality, enum chroma chroma, const struct picture *p,
                              const uint8_t *icc, size_t icc_size, uint64_t notes_bytes_max);

/* Returns the number of rows of MCUs. */
unsigned baseline_rows(const struct baseline *b);

/* Notes a row of MCUs. Returns false without memory; then only baseline_free() may be called. The
 * same is true for the two functions below. */
bool baseline_note(struct baseline *b, unsigned row);

/* After the last row. */
bool baseline_tables(struct baseline *b);

/* Codes 1/parts of the notes that are left. With parts = 1 the file is complete. */
bool baseline_code(struct baseline *b, unsigned parts);

/* Transfers *data of *size bytes, pool memory, to the caller. */
void baseline_take(struct baseline *b, uint8_t **data, size_t *size);

/* Frees it with all its memory. NULL is ignored. */
void baseline_free(struct baseline *b);

#endif
