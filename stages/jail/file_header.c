/* file_header.c - chunks of PNG and of RIFF, and what the boxes of an AVIF tell. */
#include "file_header.h"

#include <string.h>

#include "avif_file.h"
#include "base/round.h"

#define ICC_MAX (4U << 20)
#define ICC_SHRINKS 16 /* profiles of matrices and of tables shrink less */
#define PNG_SIGNATURE "\x89PNG\r\n\x1a\n"
#define PNG_SIDE_MAX 0x7fffffffU
/* Of dav1d: what it holds beside the samples, and their sides in memory. */
#define AVIF_BYTES ((uint64_t)4 << 20)
#define AVIF_SIDE 128

static const char animations[] = "animations";

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t le24(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

static bool is_chunk(const uint8_t *type, const char *name)
{
	return memcmp(type, name, 4) == 0;
}

/* Returns whether a file of boxes has a brand of AVIFs: its own, or one that it is compatible with.
 * Others, such as mif1, are also those of HEICs. */
static bool has_avif_brand(const uint8_t *data, size_t size)
{
	if (size < 12 || !is_chunk(data + 4, "ftyp"))
		return false;
	if (is_chunk(data + 8, "avis"))
		return true;
	if (be32(data) < size)
		size = be32(data);
	for (size_t at = 8; at + 4 <= size && at < FILE_FORMAT_BYTES; at += 4)
		if (is_chunk(data + at, "avif"))
			return true;
	return false;
}

enum file_format file_format_of(const uint8_t *data, size_t size)
{
	if (size >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
		return FILE_JPEG;
	if (size >= 8 && memcmp(data, PNG_SIGNATURE, 8) == 0)
		return FILE_PNG;
	if (size >= 12 && is_chunk(data, "RIFF") && is_chunk(data + 8, "WEBP"))
		return FILE_WEBP;
	if (has_avif_brand(data, size))
		return FILE_AVIF;
	return FILE_UNKNOWN;
}

/* ---- PNG ---- */

/* A chunk of a PNG before its first pixels, or behind them: Exif may be at both places. */
static void png_chunk(struct file_header *h, const uint8_t *type, struct file_part part,
                      bool is_before)
{
	if (is_chunk(type, "eXIf"))
		h->exif = part;
	else if (is_before && is_chunk(type, "tRNS"))
		h->has_alpha = true;
	else if (is_before && is_chunk(type, "acTL"))
		h->refused = animations;
	else if (is_before && is_chunk(type, "iCCP"))
		h->icc = part;
}

/* data: behind the signature. */
static void read_png(struct file_header *h, const uint8_t *p, size_t n)
{
	bool is_before = true;

	if (n < 25 || be32(p) != 13 || !is_chunk(p + 4, "IHDR") || be32(p + 8) > PNG_SIDE_MAX ||
	    be32(p + 12) > PNG_SIDE_MAX)
		return;
	h->width = be32(p + 8);
	h->height = be32(p + 12);
	h->is_grey = !(p[17] & 2); /* bits of the colour type: palette, colour, alpha */
	h->has_alpha = p[17] & 4;
	h->is_whole = p[20] != 0;
	for (p += 25, n -= 25; n >= 12;) {
		uint32_t size = be32(p);

		if (size > n - 12)
			break;
		is_before = is_before && !is_chunk(p + 4, "IDAT");
		png_chunk(h, p + 4, (struct file_part){ p + 8, size }, is_before);
		p += 12 + (size_t)size;
		n -= 12 + (size_t)size;
	}
}

/* ---- WebP ---- */

static void webp_lossless(struct file_header *h, const uint8_t *p, size_t n, bool is_alone)
{
	h->is_whole = true;
	if (n < 5 || p[0] != 0x2f || !is_alone)
		return;
	uint32_t bits = le24(p + 1) | (uint32_t)p[4] << 24;

	h->width = (bits & 0x3fff) + 1;
	h->height = (bits >> 14 & 0x3fff) + 1;
	h->has_alpha = bits >> 28 & 1;
}

static void webp_lossy(struct file_header *h, const uint8_t *p, size_t n, bool is_alone)
{
	if (n < 10 || p[0] & 1 || memcmp(p + 3, "\x9d\x01\x2a", 3) != 0 || !is_alone)
		return;
	h->width = le24(p + 6) & 0x3fff;
	h->height = (p[8] | (uint32_t)p[9] << 8) & 0x3fff;
}

static void webp_chunk(struct file_header *h, const uint8_t *type, struct file_part part,
                       bool is_first)
{
	const uint8_t *p = part.data;

	if (is_first && is_chunk(type, "VP8X") && part.size >= 10) {
		h->has_alpha = p[0] >> 4 & 1;
		h->refused = p[0] >> 1 & 1 ? animations : NULL;
		h->width = le24(p + 4) + 1;
		h->height = le24(p + 7) + 1;
	} else if (is_chunk(type, "VP8L"))
		webp_lossless(h, p, part.size, is_first);
	else if (is_chunk(type, "VP8 "))
		webp_lossy(h, p, part.size, is_first);
	else if (is_chunk(type, "ICCP"))
		h->icc = part;
	else if (is_chunk(type, "EXIF"))
		h->exif = part;
}

/* p: behind "WEBP". */
static void read_webp(struct file_header *h, const uint8_t *p, size_t n)
{
	for (bool is_first = true; n >= 8; is_first = false) {
		size_t size = le24(p + 4) | (size_t)p[7] << 24, rest = n - 8,
		       whole = size + (size & 1);

		/* The picture itself may be cut; its decoder will tell. */
		webp_chunk(h, p, (struct file_part){ p + 8, size < rest ? size : rest }, is_first);
		if (whole >= rest)
			break;
		p += 8 + whole;
		n -= 8 + whole;
	}
}

/* ---- AVIF ---- */

/* Bytes of the samples of one row of cells. */
static uint64_t held_bytes(const struct avif_item *item)
{
	uint64_t pixels = item->columns * round_up(item->cell_width, AVIF_SIDE) *
	                  round_up(item->cell_height, AVIF_SIDE);

	return pixels * (item->is_grey ? 1 : 3) * (item->is_deep ? 2 : 1);
}

static void read_avif(struct file_header *h, const uint8_t *data, size_t size)
{
	struct file_part piece;
	struct avif_file f;

	h->is_whole = true;
	if (is_chunk(data + 8, "avis"))
		h->refused = animations;
	if (!avif_read(&f, data, size))
		return;
	if (f.transfer == AVIF_TRANSFER_PQ || f.transfer == AVIF_TRANSFER_HLG)
		h->refused = "HDR pictures (PQ and HLG)";
	else if (f.is_unsupported)
		h->refused = "some of its essential properties";
	else if (f.is_wasteful)
		h->refused = "pictures that are mostly hidden";
	h->width = f.width;
	h->height = f.height;
	h->is_grey = f.color.is_grey;
	h->has_alpha = f.alpha.id;
	h->orientation = f.orientation;
	h->icc = f.icc;
	h->held_bytes = held_bytes(&f.color) + (f.alpha.id ? held_bytes(&f.alpha) : 0);
	/* A stream in pieces is joined. All cells are taken to be as the first one. */
	if (avif_piece(&f, avif_cell(&f, &f.color, 0), 0, &piece) > 1 ||
	    avif_piece(&f, avif_cell(&f, &f.alpha, 0), 0, &piece) > 1)
		h->held_bytes += size;
}

/* ---- all ---- */

void file_header_read(struct file_header *h, const uint8_t *data, size_t size)
{
	*h = (struct file_header){ .format = file_format_of(data, size) };
	if (h->format == FILE_PNG)
		read_png(h, data + 8, size - 8);
	else if (h->format == FILE_WEBP)
		read_webp(h, data + 12, size - 12);
	else if (h->format == FILE_AVIF)
		read_avif(h, data, size);
	if (h->width == 0 || h->height == 0)
		h->width = h->height = 0;
}

/* Blocks have heads, and gaps between them. */
static uint64_t blocks(uint64_t bytes)
{
	return bytes + bytes / 4;
}

uint64_t file_header_memory(const struct file_header *h, uint32_t plane_width,
                            uint32_t plane_height)
{
	uint64_t area = (uint64_t)h->width * h->height,
		 plane = (uint64_t)plane_width * plane_height,
		 rows = ((uint64_t)h->width + plane_width) * 64, fixed = 1U << 20,
		 channels = (h->is_grey ? 1U : 3U) + (h->has_alpha ? 1U : 0U);

	if (h->format == FILE_PNG)
		return fixed + blocks(rows + (h->is_whole ? area * channels : 0)) +
		       2 * blocks(file_header_icc_max(h));
	if (h->format == FILE_AVIF) /* the samples, without and with their grain; tables */
		return fixed + AVIF_BYTES + blocks(rows + 2 * h->held_bytes);
	/* The pixels of a lossless file, or alpha and its own lossless file; output of the library,
	 * which is not reduced with alpha. */
	return fixed + blocks(2 * rows + plane * channels +
	                      area * (h->is_whole    ? 4U
	                              : h->has_alpha ? 5U
	                                             : 0U) +
	                      area * (h->has_alpha ? 4U : 0U));
}

size_t file_header_icc_max(const struct file_header *h)
{
	size_t max = h->format == FILE_PNG ? h->icc.size * ICC_SHRINKS : 0;

	return max < ICC_MAX ? max : ICC_MAX;
}
