/* container.c - writes boxes and chunks. */
#include "container.h"

#include <string.h>

#include "base/check.h"

#define HEAD_BYTES 512       /* more than all boxes take without a profile */
#define SEQUENCE_HEADER 0x0a /* an OBU with a size */
#define CHUNK_BYTES 8
#define VP8X_BYTES 10
#define VP8X_HAS_ICC 0x20

#define PUT_TEXT(o, text) put(o, text, sizeof(text) - 1)

struct out {
	uint8_t *data;
	size_t length;
};

static void put(struct out *o, const void *data, size_t size)
{
	memcpy(o->data + o->length, data, size);
	o->length += size;
}

static void put_big(struct out *o, uint32_t value)
{
	for (unsigned bits = 32; bits > 0; bits -= 8)
		o->data[o->length++] = (uint8_t)(value >> (bits - 8));
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

	put_big(o, 0);
	put(o, type, 4);
	return at;
}

static void end_box(struct out *o, size_t at)
{
	struct out size = { o->data + at, 0 };

	put_big(&size, (uint32_t)(o->length - at));
}

static unsigned profile_of(const struct container *c)
{
	return c->chroma == CHROMA_444;
}

/* Puts the properties of the picture. */
static void put_properties(struct out *o, const struct container *c, const uint8_t *stream)
{
	bool is_grey = c->chroma == CHROMA_NONE;
	unsigned profile = profile_of(c),
		 samples = is_grey   ? 0x1c
	                   : profile ? 0
	                             : 0x0c,
		 level = (stream[2] & 7U) << 2 | stream[3] >> 6;
	const uint8_t codec[] = { 0x81, (uint8_t)(profile << 5 | level), (uint8_t)samples, 0 };

	PUT_TEXT(o, "\0\0\0\x14ispe\0\0\0\0");
	put_big(o, c->width);
	put_big(o, c->height);
	if (is_grey)
		PUT_TEXT(o, "\0\0\0\x0epixi\0\0\0\0\1\x08");
	else
		PUT_TEXT(o, "\0\0\0\x10pixi\0\0\0\0\3\x08\x08\x08");
	PUT_TEXT(o, "\0\0\0\x0c"
	            "av1C");
	put(o, codec, sizeof codec);
	/* As a JPEG has its colours (H.273): BT.709, sRGB, the matrix of BT.601, full range. */
	PUT_TEXT(o, "\0\0\0\x13"
	            "colrnclx\0\1\0\x0d\0\6\x80");
	if (!c->icc_size)
		return;
	size_t box = begin_box(o, "colr");

	put(o, "prof", 4);
	put(o, c->icc, c->icc_size);
	end_box(o, box);
}

/* The picture is item 1. Its codec, the third property, is essential. */
static size_t avif_head(const struct container *c, uint8_t *head, const uint8_t *stream,
                        size_t size)
{
	struct out o = { head, 0 }, offset = { head, 0 };

	PUT_TEXT(&o, "\0\0\0\x20"
	             "ftypavif\0\0\0\0avifmif1miaf");
	put(&o, profile_of(c) ? "MA1A" : "MA1B", 4);
	size_t meta = begin_box(&o, "meta");

	PUT_TEXT(&o, "\0\0\0\0"
	             "\0\0\0\x21hdlr\0\0\0\0\0\0\0\0pict\0\0\0\0\0\0\0\0\0\0\0\0\0"
	             "\0\0\0\x0epitm\0\0\0\0\0\1"
	             "\0\0\0\x1eiloc\0\0\0\0\x44\0\0\1\0\1\0\0\0\1");
	offset.length = o.length;
	put_big(&o, 0); /* known when the boxes end */
	put_big(&o, (uint32_t)size);
	PUT_TEXT(&o, "\0\0\0\x23iinf\0\0\0\0\0\1\0\0\0\x15infe\2\0\0\0\0\1\0\0av01\0");
	size_t properties = begin_box(&o, "iprp"), container = begin_box(&o, "ipco");

	put_properties(&o, c, stream);
	end_box(&o, container);
	if (c->icc_size)
		PUT_TEXT(&o, "\0\0\0\x18ipma\0\0\0\0\0\0\0\1\0\1\5\1\2\x83\4\5");
	else
		PUT_TEXT(&o, "\0\0\0\x17ipma\0\0\0\0\0\0\0\1\0\1\4\1\2\x83\4");
	end_box(&o, properties);
	end_box(&o, meta);
	put_big(&o, (uint32_t)(CHUNK_BYTES + size));
	PUT_TEXT(&o, "mdat");
	put_big(&offset, (uint32_t)o.length);
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
