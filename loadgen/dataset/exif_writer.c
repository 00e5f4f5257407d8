/*
 * exif_writer.c - writes EXIF 2.2 like cameras: two directories, a maker's note, a thumbnail.
 *
 * Little-endian TIFF after "Exif\0\0". Of the picture it knows only the size. Any thread.
 */
#include "exif_writer.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/random.h"

#define TIFF_AT 10 /* marker, length, "Exif\0\0" */

enum exif_type {
	EXIF_ASCII = 2,
	EXIF_SHORT = 3,
	EXIF_LONG = 4,
	EXIF_RATIONAL = 5,
	EXIF_UNDEFINED = 7
};

/* Needs no checks for room: EXIF_SEGMENT_MAX allows for the longest note and thumbnail. */
struct writer {
	uint8_t *tiff;
	size_t entry; /* where the next directory entry goes */
	size_t end;   /* where the next value of more than four bytes goes */
};

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v);
	put16(p + 2, v >> 16);
}

/* Starts a directory of `count` entries after the last value. Its next-directory pointer is 0. */
static void directory(struct writer *w, unsigned count)
{
	size_t size = 2 + 12 * (size_t)count + 4;

	memset(w->tiff + w->end, 0, size);
	put16(w->tiff + w->end, count);
	w->entry = w->end + 2;
	w->end += size;
}

/* Writes an entry. A value of more than four bytes goes behind the directory. If data is NULL,
 * number is the value. */
static void entry(struct writer *w, unsigned tag, enum exif_type type, size_t count, size_t size,
                  const void *data, uint32_t number)
{
	uint8_t *e = w->tiff + w->entry;

	put16(e, tag);
	put16(e + 2, type);
	put32(e + 4, (uint32_t)count);
	w->entry += 12;
	if (!data) {
		put32(e + 8, number);
	} else if (size <= 4) {
		memcpy(e + 8, data, size);
	} else {
		put32(e + 8, (uint32_t)w->end);
		memcpy(w->tiff + w->end, data, size);
		w->end += size;
		if (w->end & 1) /* TIFF aligns values to even offsets */
			w->tiff[w->end++] = 0;
	}
}

static void entry_text(struct writer *w, unsigned tag, const char *text)
{
	entry(w, tag, EXIF_ASCII, strlen(text) + 1, strlen(text) + 1, text, 0);
}

static void entry_short(struct writer *w, unsigned tag, uint32_t value)
{
	entry(w, tag, EXIF_SHORT, 1, 2, NULL, value);
}

static void entry_ratio(struct writer *w, unsigned tag, uint32_t above, uint32_t below)
{
	uint8_t value[8];

	put32(value, above);
	put32(value + 4, below);
	entry(w, tag, EXIF_RATIONAL, 1, sizeof value, value, 0);
}

/* Makers' notes are undocumented and look like numbers. */
static void entry_note(struct writer *w, size_t size, struct random *r)
{
	uint8_t note[EXIF_NOTE_MAX];
	size_t i;

	memcpy(note, "DARKROOM\0\1\0", 12);
	for (i = 12; i < size; i++)
		note[i] = i & 1 ? 0 : (uint8_t)random_range(r, 0, 255);
	entry(w, 0x927c, EXIF_UNDEFINED, size, size, note, 0);
}

static void main_directory(struct writer *w, const struct exif *x, struct random *r,
                           const char *date)
{
	static const char *const cameras[][2] = {
		{ "LICHTWERK", "Reporter 500" }, { "LICHTWERK", "Pocket S3" },
		{ "Nordfoto", "NF-20 Digital" }, { "Nordfoto", "NF-7 Zoom" },
		{ "Kolibri", "phone 4" },        { "Kolibri", "phone 5c" }
	};
	const char *const *camera = cameras[random_range(r, 0, (int32_t)COUNT_OF(cameras) - 1)];
	size_t pointer;

	directory(w, 10);
	entry_text(w, 0x010f, camera[0]);
	entry_text(w, 0x0110, camera[1]);
	entry_short(w, 0x0112, x->orientation);
	entry_ratio(w, 0x011a, 72, 1);
	entry_ratio(w, 0x011b, 72, 1);
	entry_short(w, 0x0128, 2);
	entry_text(w, 0x0131, "Ver.1.04");
	entry_text(w, 0x0132, date);
	entry_short(w, 0x0213, 2);
	pointer = w->entry + 8;
	entry(w, 0x8769, EXIF_LONG, 1, 4, NULL, 0);
	put32(w->tiff + pointer, (uint32_t)w->end);
}

static void camera_directory(struct writer *w, const struct exif *x, struct random *r,
                             const char *date)
{
	static const uint16_t speeds[] = { 80, 100, 100, 200, 400, 800 };

	directory(w, 13);
	entry_ratio(w, 0x829a, 1, (uint32_t)random_range(r, 8, 1000));
	entry_ratio(w, 0x829d, (uint32_t)random_range(r, 20, 110), 10);
	entry_short(w, 0x8827, speeds[random_range(r, 0, (int32_t)COUNT_OF(speeds) - 1)]);
	entry(w, 0x9000, EXIF_UNDEFINED, 4, 4, "0220", 0);
	entry_text(w, 0x9003, date);
	entry_text(w, 0x9004, date);
	entry(w, 0x9101, EXIF_UNDEFINED, 4, 4, "\1\2\3", 0);
	entry_ratio(w, 0x920a, (uint32_t)random_range(r, 40, 1050), 10);
	entry_note(w, x->note_size, r);
	entry(w, 0xa000, EXIF_UNDEFINED, 4, 4, "0100", 0);
	entry_short(w, 0xa001, 1);
	entry(w, 0xa002, EXIF_LONG, 1, 4, NULL, (uint32_t)x->width);
	entry(w, 0xa003, EXIF_LONG, 1, 4, NULL, (uint32_t)x->height);
}

static void thumbnail_directory(struct writer *w, const struct exif *x)
{
	size_t pointer;

	directory(w, 6);
	entry_short(w, 0x0103, 6);
	entry_ratio(w, 0x011a, 72, 1);
	entry_ratio(w, 0x011b, 72, 1);
	entry_short(w, 0x0128, 2);
	pointer = w->entry + 8;
	entry(w, 0x0201, EXIF_LONG, 1, 4, NULL, 0);
	entry(w, 0x0202, EXIF_LONG, 1, 4, NULL, (uint32_t)x->thumbnail_size);
	put32(w->tiff + pointer, (uint32_t)w->end);
	memcpy(w->tiff + w->end, x->thumbnail, x->thumbnail_size);
	w->end += x->thumbnail_size;
}

size_t exif_write(const struct exif *x, uint8_t out[EXIF_SEGMENT_MAX])
{
	struct writer w = { .tiff = out + TIFF_AT, .end = 8 };
	struct random r = random_stream(x->id, 11);
	char date[20];
	size_t size;
	int day = random_range(&r, 1, 28), month = random_range(&r, 1, 12);
	int hour = random_range(&r, 6, 22), minute = random_range(&r, 0, 59);

	assert(x->note_size >= EXIF_NOTE_MIN && x->note_size <= EXIF_NOTE_MAX);
	assert(x->thumbnail_size <= EXIF_THUMBNAIL_MAX);
	snprintf(date, sizeof date, "2009:%02d:%02d %02d:%02d:%02d", month, day, hour, minute,
	         random_range(&r, 0, 59));
	memcpy(w.tiff, "II*\0\10\0\0\0", 8);
	main_directory(&w, x, &r, date);
	camera_directory(&w, x, &r, date);
	if (x->thumbnail_size > 0) {
		/* the main directory points to it */
		put32(w.tiff + 8 + 2 + 10 * 12, (uint32_t)w.end);
		thumbnail_directory(&w, x);
	}
	size = TIFF_AT + w.end;
	memcpy(out, "\xff\xe1", 2);
	out[2] = (uint8_t)((size - 2) >> 8);
	out[3] = (uint8_t)(size - 2);
	memcpy(out + 4, "Exif\0", 6);
	return size;
}
