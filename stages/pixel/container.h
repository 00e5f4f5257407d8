/*
 * container.h - the boxes of an AVIF and the chunks of a WebP around the stream of their encoder.
 *
 * Everything in them is known here, or compared with what is known. The stream itself is not
 * believed and not read beyond its first bytes. Pure functions, any thread.
 */
#ifndef DARKROOM_PIXEL_CONTAINER_H
#define DARKROOM_PIXEL_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "picture.h"

struct container {
	enum file_format format; /* AVIF or WebP */
	uint32_t width, height;
	enum chroma chroma;
	const uint8_t *icc;
	size_t icc_size;
};

/* Returns the most bytes that a file has beside its stream. */
size_t container_bytes(size_t icc_size);

/* Returns whether the stream begins as one of this size and chroma. (AV1 bitstream 5.5; RFC 6386,
 * 9.1.) */
bool container_fits(const struct container *c, const uint8_t *stream, size_t size);

/* Writes what precedes the stream, which fits, to `head` of container_bytes(). Returns its size.
 * (ISO/IEC 14496-12 and 23008-12; AV1 image file format 1.1; RFC 9649, 2.) */
size_t container_head(const struct container *c, uint8_t *head, const uint8_t *stream, size_t size);

/* Returns how many zero bytes follow the stream. */
size_t container_pad(const struct container *c, size_t size);

#endif
