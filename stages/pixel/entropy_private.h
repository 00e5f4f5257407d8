/*
 * entropy_private.h - the window and the bits of a scan, for entropy.c and entropy_progressive.c.
 */
#ifndef DARKROOM_PIXEL_ENTROPY_PRIVATE_H
#define DARKROOM_PIXEL_ENTROPY_PRIVATE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "entropy.h"

#if LIBJPEG_HAS_PRIVATE
/* A coefficient has at most 16 bits of code and 15 of value. Reading is up to 16 bytes ahead. */
#define MCU_BYTES (D_MAX_BLOCKS_IN_MCU * DCTSIZE2 * 31 / 8 + 16)
#define WINDOW_BYTES 8192
/* The next bits begin with the highest one. */
struct bits {
	uint64_t buffer;
	uint64_t count; /* of bits in the buffer; only the lowest 6 bits of it are used */
	const uint8_t *next;
};

struct entropy {
	struct jpeg_entropy_decoder methods; /* first: the libjpeg object points to it */
	struct bits bits;
	const uint8_t *low; /* an MCU that begins behind it may reach the end */
	uint8_t *end;       /* of the data in the window */
	bool is_last;       /* a marker or the end of the file follows the window */
	uint8_t marker;     /* then: its code, or 0 */
	enum entropy_end fault;
	unsigned mcus_left; /* before the next restart */
	unsigned restarts;
	unsigned dc[MAX_COMPS_IN_SCAN]; /* the last one of each component */
	const struct entropy_table *table[MAX_COMPS_IN_SCAN];
	uint8_t window[WINDOW_BYTES + MCU_BYTES];
};

/* Begins a scan at the source's position. */
void entropy_scan_begin(j_decompress_ptr in, struct entropy *e);

/* Returns whether the window has all bytes of the next MCU, or zeros behind the last. Otherwise it
 * sets the fault. Goes on behind a restart marker that is due. */
bool entropy_mcu_begin(j_decompress_ptr in, struct entropy *e);

/* entropy_bytes() and entropy_start() of a progressive file. */
size_t entropy_progressive_bytes(const struct jpeg_decompress_struct *in);
void entropy_progressive_start(j_decompress_ptr in);

#define INLINE static inline __attribute__((always_inline))

INLINE void bits_fill(struct bits *b)
{
	uint64_t more;

	memcpy(&more, b->next, sizeof more);
	b->buffer |= be64toh(more) >> (b->count & 63);
	b->next += ~b->count >> 3 & 7;
	b->count |= 56;
}

INLINE void bits_drop(struct bits *b, uint64_t count)
{
	b->buffer <<= count & 63;
	b->count -= count;
}

/* Returns the next bits as a signed value (T.81 F.2.2.1, EXTEND). */
INLINE int bits_value(struct bits *b, unsigned size)
{
	int v = (int)(b->buffer >> 1 >> (63 - size));

	bits_drop(b, size);
	return size > 0 && v < 1 << (size - 1) ? v + 1 - (1 << size) : v;
}
#endif

#endif
