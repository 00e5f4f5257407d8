/* container.c - writes boxes and chunks. */
#include "container.h"

#include <string.h>

#include "base/check.h"

#define HEAD_BYTES 512 /* more than all boxes take without a profile */
#define ITEM 1
#define SEQUENCE_HEADER 0x0a /* an OBU with a size */
/* H.273: as a JPEG has its colours. */
#define PRIMARIES_BT709 1
#define TRANSFER_SRGB 13
#define MATRIX_BT601 6
#define FULL_RANGE 0x80
#define CHUNK_BYTES 8
#define VP8X_BYTES 10
#define VP8X_HAS_ICC 0x20

struct out {
	uint8_t *data;
	size_t length;
};

static void put(struct out *o, const void *data, size_t size)
{
	memcpy(o->data + o->length, data, size);
	o->length += size;
}

static void put_big(struct out *o, uint64_t value, unsigned bytes)
{
	while (bytes-- > 0)
		o->data[o->length++] = (uint8_t)(bytes < sizeof value ? value >> 8 * bytes : 0);
}

static void put_little(struct out *o, uint64_t value, unsigned bytes)
{
	for (; bytes > 0; bytes--, value >>= 8)
		o->data[o->length++] = (uint8_t)value;
}

/* ---- AVIF ---- */

/* Begins a box. Returns its place for end_box(). */
static size_t begin_box(struct out *o, const char *type)
{
	size_t at = o->length;

	put_big(o, 0, 4);
	put(o, type, 4);
	return at;
}

/* The same with a version and flags of zero. */
static size_t begin_full_box(struct out *o, const char *type, unsigned version)
{
	size_t at = begin_box(o, type);

	put_big(o, version, 1);
	put_big(o, 0, 3);
	return at;
}

static void end_box(struct out *o, size_t at)
{
	struct out size = { o->data + at, 0 };

	put_big(&size, o->length - at, 4);
}

static bool is_mono(const struct container *c)
{
	return c->chroma == CHROMA_NONE;
}

static unsigned profile_of(const struct container *c)
{
	return c->chroma == CHROMA_444;
}

static void put_file_type(struct out *o, const struct container *c)
{
	size_t box = begin_box(o, "ftyp");

	put(o, "avif\0\0\0\0avifmif1miaf", 20);
	put(o, profile_of(c) ? "MA1A" : "MA1B", 4);
	end_box(o, box);
}

static void put_handler(struct out *o)
{
	size_t box = begin_full_box(o, "hdlr", 0);

	put_big(o, 0, 4);
	put(o, "pict", 4);
	put_big(o, 0, 13); /* reserved, and an empty name */
	end_box(o, box);
	box = begin_full_box(o, "pitm", 0);
	put_big(o, ITEM, 2);
	end_box(o, box);
}

/* Returns the place of the offset of the stream, which is known only when the boxes end. */
static size_t put_location(struct out *o, size_t size)
{
	size_t box = begin_full_box(o, "iloc", 0);

	put_big(o, 0x4400, 2); /* bytes of an offset and of a length */
	put_big(o, 1, 2);
	put_big(o, ITEM, 2);
	put_big(o, 0, 2); /* in this file */
	put_big(o, 1, 2);
	size_t at = o->length;

	put_big(o, 0, 4);
	put_big(o, size, 4);
	end_box(o, box);
	return at;
}

static void put_item(struct out *o)
{
	size_t box = begin_full_box(o, "iinf", 0), item;

	put_big(o, 1, 2);
	item = begin_full_box(o, "infe", 2);
	put_big(o, ITEM, 2);
	put_big(o, 0, 2);
	put(o, "av01", 5);
	end_box(o, item);
	end_box(o, box);
}

static void put_size(struct out *o, const struct container *c)
{
	size_t box = begin_full_box(o, "ispe", 0);

	put_big(o, c->width, 4);
	put_big(o, c->height, 4);
	end_box(o, box);
	box = begin_full_box(o, "pixi", 0);
	put_big(o, is_mono(c) ? 1 : 3, 1);
	put(o, "\x08\x08\x08", is_mono(c) ? 1 : 3);
	end_box(o, box);
}

/* The level is the stream's: five bits behind those of the profile and of the still picture. */
static void put_codec(struct out *o, const struct container *c, const uint8_t *stream)
{
	size_t box = begin_box(o, "av1C");
	unsigned level = (stream[2] & 7U) << 2 | stream[3] >> 6;

	put_big(o, 0x81, 1);
	put_big(o, profile_of(c) << 5 | level, 1);
	put_big(o, is_mono(c) ? 0x1c : profile_of(c) ? 0 : 0x0c, 1);
	put_big(o, 0, 1);
	end_box(o, box);
}

static void put_color(struct out *o, const struct container *c)
{
	size_t box = begin_box(o, "colr");

	put(o, "nclx", 4);
	put_big(o, PRIMARIES_BT709, 2);
	put_big(o, TRANSFER_SRGB, 2);
	put_big(o, MATRIX_BT601, 2);
	put_big(o, FULL_RANGE, 1);
	end_box(o, box);
	if (!c->icc_size)
		return;
	box = begin_box(o, "colr");
	put(o, "prof", 4);
	put(o, c->icc, c->icc_size);
	end_box(o, box);
}

static void put_properties(struct out *o, const struct container *c, const uint8_t *stream)
{
	const unsigned count = c->icc_size ? 5 : 4, essential = 0x80;
	size_t box = begin_box(o, "iprp"), properties = begin_box(o, "ipco"), item;

	put_size(o, c);
	put_codec(o, c, stream);
	put_color(o, c);
	end_box(o, properties);
	item = begin_full_box(o, "ipma", 0);
	put_big(o, 1, 4);
	put_big(o, ITEM, 2);
	put_big(o, count, 1);
	for (unsigned i = 1; i <= count; i++)
		put_big(o, i == 3 ? essential | i : i, 1); /* av1C */
	end_box(o, item);
	end_box(o, box);
}

static size_t avif_head(const struct container *c, uint8_t *head, const uint8_t *stream,
                        size_t size)
{
	struct out o = { head, 0 }, offset = { head, 0 };

	put_file_type(&o, c);
	size_t meta = begin_full_box(&o, "meta", 0);

	put_handler(&o);
	offset.length = put_location(&o, size);
	put_item(&o);
	put_properties(&o, c, stream);
	end_box(&o, meta);
	put_big(&o, CHUNK_BYTES + size, 4);
	put(&o, "mdat", 4);
	put_big(&offset, o.length, 4);
	return o.length;
}

/* Reads `count` bits at *at. */
static uint32_t bits(const uint8_t *data, unsigned *at, unsigned count)
{
	uint32_t value = 0;

	for (; count > 0; count--, ++*at)
		value = value << 1 | (data[*at / 8] >> (7 - *at % 8) & 1);
	return value;
}

static bool avif_fits(const struct container *c, const uint8_t *stream, size_t size)
{
	unsigned at = 16;

	if (size < 16 || stream[0] != SEQUENCE_HEADER || stream[1] < 6 ||
	    bits(stream, &at, 3) != profile_of(c) || bits(stream, &at, 2) != 3)
		return false; /* it must be a still picture with a short header */
	at += 5;
	unsigned wide = bits(stream, &at, 4) + 1, high = bits(stream, &at, 4) + 1;

	return bits(stream, &at, wide) + 1 == c->width && bits(stream, &at, high) + 1 == c->height;
}

/* ---- WebP ---- */

size_t container_pad(const struct container *c, size_t size)
{
	return c->format == FILE_WEBP ? size & 1 : 0;
}

static void put_chunk(struct out *o, const char *type, size_t size)
{
	put(o, type, 4);
	put_little(o, size, 4);
}

static size_t webp_head(const struct container *c, uint8_t *head, size_t size)
{
	struct out o = { head, 0 };
	size_t icc = c->icc_size,
	       of_icc = icc ? CHUNK_BYTES + VP8X_BYTES + CHUNK_BYTES + icc + (icc & 1) : 0;

	put_chunk(&o, "RIFF", 4 + of_icc + CHUNK_BYTES + size + container_pad(c, size));
	put(&o, "WEBP", 4);
	if (icc) {
		put_chunk(&o, "VP8X", VP8X_BYTES);
		put_little(&o, VP8X_HAS_ICC, 4);
		put_little(&o, c->width - 1, 3);
		put_little(&o, c->height - 1, 3);
		put_chunk(&o, "ICCP", icc);
		put(&o, c->icc, icc);
		put_little(&o, 0, icc & 1);
	}
	put_chunk(&o, "VP8 ", size);
	return o.length;
}

/* A key frame, its start code, and the size without a scale. */
static bool webp_fits(const struct container *c, const uint8_t *stream, size_t size)
{
	return size >= 10 && !(stream[0] & 1) && memcmp(stream + 3, "\x9d\x01\x2a", 3) == 0 &&
	       (stream[6] | (uint32_t)stream[7] << 8) == c->width &&
	       (stream[8] | (uint32_t)stream[9] << 8) == c->height;
}

/* ---- both ---- */

size_t container_bytes(size_t icc_size)
{
	return HEAD_BYTES + icc_size;
}

bool container_fits(const struct container *c, const uint8_t *stream, size_t size)
{
	return c->format == FILE_AVIF ? avif_fits(c, stream, size) : webp_fits(c, stream, size);
}

size_t container_head(const struct container *c, uint8_t *head, const uint8_t *stream, size_t size)
{
	size_t length = c->format == FILE_AVIF ? avif_head(c, head, stream, size)
	                                       : webp_head(c, head, size);

	assert(length <= container_bytes(c->icc_size));
	return length;
}
