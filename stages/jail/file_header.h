/*
 * file_header.h - what a file of pixels says about itself before it is decoded.
 *
 * The format, the size, and what tells how much memory and time decoding takes. Pure functions over
 * untrusted bytes, without allocation. Any thread.
 */
#ifndef DARKROOM_JAIL_FILE_HEADER_H
#define DARKROOM_JAIL_FILE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_format.h"

/* A part of the file; size 0: the file has none. */
struct file_part {
	const uint8_t *data;
	size_t size;
};

struct file_header {
	enum file_format format;
	uint32_t width, height; /* 0: the header is damaged; always 0 for a JPEG */
	const char *refused;    /* what is not supported, such as "animations"; NULL: nothing */
	bool is_grey, has_alpha;
	bool is_whole;         /* decoding holds the whole picture: an interlaced PNG, a lossless
	                          WebP, an AVIF */
	unsigned orientation;  /* as of EXIF; 0: only Exif knows */
	uint64_t held_bytes;   /* of an AVIF: of its samples while it is decoded */
	struct file_part exif; /* TIFF */
	struct file_part icc;  /* of a PNG: as it is compressed, with its name */
};

#define FILE_FORMAT_BYTES 136 /* of a file, which show its format */

/* Returns the format that the first bytes show. */
enum file_format file_format_of(const uint8_t *data, size_t size);

/* Reads the header. Its parts are valid as long as data[size]. (W3C PNG, 3rd edition, 5 and 11;
 * RFC 9649, 2.5 to 2.7 and 3.4; RFC 6386, 9.1; avif_file.h.) */
void file_header_read(struct file_header *h, const uint8_t *data, size_t size);

/* An upper bound on the memory that decoding to planes of this width and height takes, without the
 * file and the planes. */
uint64_t file_header_memory(const struct file_header *h, uint32_t plane_width,
                            uint32_t plane_height);

/* An upper bound on the bytes of a PNG's colour profile; a larger one is dropped. WebP: 0. */
size_t file_header_icc_max(const struct file_header *h);

#endif
