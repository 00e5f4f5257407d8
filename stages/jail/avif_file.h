/*
 * avif_file.h - the boxes of an AVIF: where its picture is, and how it is shown.
 *
 * Pure functions over untrusted bytes, without allocation: what is found lies within the file, and
 * the work grows with its size only. Both the daemon and darkroom-decode call them. Any thread.
 */
#ifndef DARKROOM_JAIL_AVIF_FILE_H
#define DARKROOM_JAIL_AVIF_FILE_H

#include "file_header.h"

/* Codes of H.273. */
#define AVIF_TRANSFER_PQ 16
#define AVIF_TRANSFER_HLG 18
#define AVIF_MATRIX_UNSPECIFIED 2

/* A picture of samples: one stream of AV1, or a grid of cells that each have one. */
struct avif_item {
	uint32_t id; /* 0: there is none */
	uint32_t width, height;
	uint32_t columns, rows;
	uint32_t cell_width, cell_height; /* the last ones of a grid may reach beyond it */
	bool is_grid, is_grey, is_deep;   /* is_deep: 10 or 12 bits */
};

struct avif_file {
	struct avif_item color, alpha;
	uint32_t left, top, width, height; /* the part that is shown, before it is turned */
	unsigned orientation;              /* as of EXIF, 1..8 */
	bool is_premultiplied;             /* samples of colour already are multiplied by alpha */
	bool has_codes;                    /* the next three are in a box, not in the stream only */
	unsigned transfer, matrix;
	bool is_full_range;
	struct file_part icc;
	bool is_unsupported; /* it has what it must not be shown without, and that is not known */
	bool is_wasteful;    /* most of what would be decoded is not shown */

	/* private below this line */
	struct file_part file, boxes[6];
};

/* Reads the boxes. Returns whether there is a picture. (ISO/IEC 14496-12, 8.11; 23008-12, 6 and 9;
 * 23000-22; AV1 image file format 1.1.) */
bool avif_read(struct avif_file *f, const uint8_t *data, size_t size);

/* Returns the id of the item that has the stream of a cell, counted by rows; 0: there is none. */
uint32_t avif_cell(const struct avif_file *f, const struct avif_item *item, uint32_t cell);

/* Returns the number of pieces of an item's data, and sets the one at the index. 0: it has none, or
 * the piece is empty or not within the file. */
unsigned avif_piece(const struct avif_file *f, uint32_t id, unsigned index,
                    struct file_part *piece);

#endif
