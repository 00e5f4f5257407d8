/*
 * metadata.c - parses the markers of a JPEG as libjpeg does, without copying segments; and takes
 * what the header of another file has.
 *
 * jpeg_save_markers() of libjpeg would copy every APP1 and APP2 segment, without a limit.
 */
#include "metadata.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "base/pool.h"
#include "jail/file_header.h"
#include "orient.h"

#define MARKER_TEM 0x01 /* those that jpeglib.h does not have */
#define MARKER_SOI 0xd8
#define MARKER_SOS 0xda
#define EXIF_SIGNATURE "Exif\0" /* includes the terminating zero of the literal */
#define EXIF_TAG_ORIENTATION 0x0112
#define TIFF_TYPE_SHORT 3
#define TIFF_ENTRY_BYTES 12
#define ICC_SIGNATURE "ICC_PROFILE"
#define ICC_HEADER_BYTES 128
#define ICC_OFFSET_SPACE 16
#define ICC_OFFSET_SIGNATURE 36

/* ---- EXIF ---- */

struct tiff {
	const uint8_t *data;
	size_t size;
	bool is_big_endian;
};

static unsigned tiff_16(const struct tiff *t, size_t at)
{
	const uint8_t *p = t->data + at;

	return t->is_big_endian ? (unsigned)p[0] << 8 | p[1] : (unsigned)p[1] << 8 | p[0];
}

static uint32_t tiff_32(const struct tiff *t, size_t at)
{
	uint32_t a = tiff_16(t, at), b = tiff_16(t, at + 2);

	return t->is_big_endian ? a << 16 | b : b << 16 | a;
}

/* Searches the first image file directory (TIFF 6.0, section 2). */
static unsigned tiff_orientation(const struct tiff *t)
{
	size_t at = tiff_32(t, 4);
	unsigned count;

	if (at > t->size || t->size - at < 2)
		return 0;
	count = tiff_16(t, at);
	for (at += 2; count > 0 && t->size - at >= TIFF_ENTRY_BYTES;
	     count--, at += TIFF_ENTRY_BYTES) {
		unsigned value;

		if (tiff_16(t, at) != EXIF_TAG_ORIENTATION)
			continue;
		value = tiff_16(t, at + 8);
		if (tiff_16(t, at + 2) != TIFF_TYPE_SHORT || tiff_32(t, at + 4) != 1 || value < 1 ||
		    value > 8)
			return 0;
		return value;
	}
	return 0;
}

/* Returns the orientation in a TIFF, or 0. */
static unsigned orientation_of(const uint8_t *tiff, size_t size)
{
	struct tiff t = { .data = tiff, .size = size };

	if (size < 8)
		return 0;
	if (memcmp(t.data, "II*\0", 4) == 0)
		t.is_big_endian = false;
	else if (memcmp(t.data, "MM\0*", 4) == 0)
		t.is_big_endian = true;
	else
		return 0;
	return tiff_orientation(&t);
}

unsigned exif_orientation(const uint8_t *app1, size_t size)
{
	const size_t head = sizeof(EXIF_SIGNATURE);

	if (size < head || memcmp(app1, EXIF_SIGNATURE, head) != 0)
		return 0;
	return orientation_of(app1 + head, size - head);
}

/* ---- ICC ---- */

/* Adds the chunk in an APP2 segment. While markers are parsed, icc_chunk_count is the count that
 * the chunks announce; missing chunks are NULL. Returns 0, or -1 if the profile is malformed. */
static int icc_add(struct metadata *m, const uint8_t *app2, size_t size)
{
	const size_t head = sizeof(ICC_SIGNATURE) + 2;
	unsigned number, count;

	if (size < head || memcmp(app2, ICC_SIGNATURE, sizeof(ICC_SIGNATURE)) != 0)
		return 0;
	number = app2[head - 2];
	count = app2[head - 1];
	if (number < 1 || number > count || (m->icc_chunk_count && count != m->icc_chunk_count))
		return -1;
	if (m->icc_chunk[number - 1].data)
		return -1;
	m->icc_chunk_count = count;
	m->icc_chunk[number - 1].data = app2 + head;
	m->icc_chunk[number - 1].size = size - head;
	m->icc_bytes += size - head;
	return m->icc_bytes <= ICC_BYTES_MAX ? 0 : -1;
}

static bool icc_is_complete(const struct metadata *m)
{
	for (unsigned i = 0; i < m->icc_chunk_count; i++)
		if (!m->icc_chunk[i].data)
			return false;
	return m->icc_bytes >= ICC_HEADER_BYTES;
}

static bool icc_matches(const uint8_t *icc, size_t size, enum icc_space space)
{
	uint32_t announced =
		(uint32_t)icc[0] << 24 | (uint32_t)icc[1] << 16 | (uint32_t)icc[2] << 8 | icc[3];

	return announced == size && memcmp(icc + ICC_OFFSET_SIGNATURE, "acsp", 4) == 0 &&
	       memcmp(icc + ICC_OFFSET_SPACE, space == ICC_GRAY ? "GRAY" : "RGB ", 4) == 0;
}

int metadata_copy_icc(const struct metadata *m, enum icc_space space, uint8_t **icc, size_t *size)
{
	uint8_t *copy, *at;

	*icc = NULL;
	*size = 0;
	if (!m->icc_bytes)
		return 0;
	at = copy = pool_get(m->icc_bytes);
	if (!copy)
		return -ENOMEM;
	for (unsigned i = 0; i < m->icc_chunk_count; i++) {
		memcpy(at, m->icc_chunk[i].data, m->icc_chunk[i].size);
		at += m->icc_chunk[i].size;
	}
	if (!icc_matches(copy, m->icc_bytes, space)) {
		pool_put(copy);
		return 0;
	}
	*icc = copy;
	*size = m->icc_bytes;
	return 0;
}

/* ---- markers ---- */

/* Returns the next marker at or after *at, or 0, and moves *at behind it. */
static unsigned marker_next(const uint8_t *jpeg, size_t size, size_t *at)
{
	while (*at < size) {
		const uint8_t *ff = memchr(jpeg + *at, 0xff, size - *at);

		if (!ff)
			break;
		*at = (size_t)(ff - jpeg) + 1;
		while (*at < size && jpeg[*at] == 0xff)
			(*at)++;
		if (*at < size && jpeg[(*at)++] != 0)
			return jpeg[*at - 1];
	}
	return 0;
}

static bool marker_is_bare(unsigned marker)
{
	return marker == MARKER_TEM || (marker >= JPEG_RST0 && marker <= MARKER_SOI);
}

void metadata_set_icc(struct metadata *m, const uint8_t *icc, size_t size)
{
	m->icc_bytes = m->icc_chunk_count = 0;
	if (size < ICC_HEADER_BYTES || size > ICC_BYTES_MAX)
		return;
	m->icc_chunk[0].data = icc;
	m->icc_chunk[0].size = m->icc_bytes = size;
	m->icc_chunk_count = 1;
}

/* Of another file than a JPEG. The profile of a PNG is compressed: its decoder hands it over. */
static void read_header(struct metadata *m, const struct file_header *h)
{
	const struct file_part *exif = &h->exif;
	unsigned orientation = h->orientation;

	if (!orientation)
		orientation = orientation_of(exif->data, exif->size);
	if (!orientation) /* some programs begin it as in a JPEG */
		orientation = exif_orientation(exif->data, exif->size);
	if (orientation)
		m->orientation = orientation;
	if (h->format != FILE_PNG)
		metadata_set_icc(m, h->icc.data, h->icc.size);
}

static void read_markers(struct metadata *m, const uint8_t *jpeg, size_t size)
{
	bool icc_is_bad = false, has_exif = false;
	size_t at = 0;

	for (;;) {
		unsigned marker = marker_next(jpeg, size, &at), orientation;
		size_t length;

		if (marker_is_bare(marker))
			continue;
		if (marker == 0 || marker == MARKER_SOS || marker == JPEG_EOI || size - at < 2)
			break;
		length = (size_t)jpeg[at] << 8 | jpeg[at + 1];
		if (length < 2 || length > size - at)
			break;
		orientation = marker == JPEG_APP0 + 1 && !has_exif
		                      ? exif_orientation(jpeg + at + 2, length - 2)
		                      : 0;
		if (orientation) {
			m->orientation = orientation;
			has_exif = true;
		}
		if (marker == JPEG_APP0 + 2 && icc_add(m, jpeg + at + 2, length - 2))
			icc_is_bad = true;
		at += length;
	}
	if (icc_is_bad || !icc_is_complete(m))
		m->icc_bytes = m->icc_chunk_count = 0;
}

void metadata_read(struct metadata *m, const uint8_t *file, size_t size)
{
	struct file_header h;

	memset(m, 0, sizeof(*m));
	m->orientation = ORIENT_UPRIGHT;
	file_header_read(&h, file, size);
	if (h.format > FILE_JPEG) {
		read_header(m, &h);
		return;
	}
	read_markers(m, file, size);
}
