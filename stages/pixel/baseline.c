/*
 * baseline.c - keeps the notes of a file, counts them, and codes them behind the headers.
 */
#include "baseline.h"

#include <endian.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "huffman_table.h"
#include "mcu.h"

#define CHUNK_NOTES 16320
#define CHUNK_BYTES (4 * CHUNK_NOTES + 8) /* in the bound of the notes */
#define CHUNKS_MIN 4                      /* enough for all notes of a small picture */
#define CHUNKS_MAX 257                    /* 16 MB */
#define CODED_AT_ONCE 256                 /* notes, of at most 27 bits each */
/* Of a column of knots, in all rows of blocks of an MCU. */
#define COLUMN_BYTES (4 * MCU_BLOCK * sizeof(int16_t))
#define HEADER_BYTES 2048 /* more than all headers without a profile */
#define ICC_BYTES 65519   /* of a profile in one marker, as in libjpeg */

enum marker { SOI = 0xd8, EOI = 0xd9, APP0 = 0xe0, APP2 = 0xe2 };
enum { DQT = 0xdb, SOF0 = 0xc0, DHT = 0xc4, SOS = 0xda };

struct chunk {
	unsigned count, coded;
	uint32_t note[CHUNK_NOTES + MCU_NOTE_SLACK];
};

struct baseline {
	const struct picture *picture;
	const uint8_t *icc;
	size_t icc_size;
	const struct mcu_kernel *kernel;
	unsigned plane_count;
	uint8_t quantum[2][MCU_COEFFICIENTS]; /* luma, chroma */
	struct mcu_divisors divisors[2];
	struct mcu_row mcus;
	int16_t *columns; /* of all rows of blocks of an MCU; NULL without splines */
	/* notes */
	struct chunk *chunk[CHUNKS_MAX]; /* NULL until needed */
	unsigned chunks_max;             /* of this file */
	unsigned noting, coding;         /* indices */
	uint64_t notes_left;             /* not coded yet */
	bool has_tables;
	uint32_t count[2][MCU_NOTES]; /* their sum counts: two notes in turn rarely wait for each
	                                 other */
	uint32_t code[MCU_NOTES];     /* see huffman_table_make() */
	struct huffman_table table[MCU_TABLES];
	/* the file */
	uint8_t *data; /* NULL until the tables are made */
	size_t size, room;
	uint64_t bits;      /* its last bit_count bits are coded but not written */
	unsigned bit_count; /* below 8 */
};

/* ---- quantisation (ITU-T T.81, annex K.1, and libjpeg's scale of quality) ---- */

static const uint8_t standard[2][MCU_COEFFICIENTS] = {
	{ 16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
	  14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
	  18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
	  49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99 },
	{ 17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
	  99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
	  99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99 },
};

static void set_quality(struct baseline *b, unsigned quality)
{
	unsigned percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;

	for (int t = 0; t < 2; t++) {
		for (int i = 0; i < MCU_COEFFICIENTS; i++) {
			unsigned q = (standard[t][i] * percent + 50) / 100;

			b->quantum[t][i] = (uint8_t)(q < 1 ? 1 : q > 255 ? 255 : q);
		}
		mcu_divisors_make(&b->divisors[t], b->quantum[t]);
	}
}

/* ---- the file ---- */

/* Makes room for `bytes` more bytes. Returns false without memory. */
static bool reserve(struct baseline *b, size_t bytes)
{
	size_t want = b->size + bytes, room;

	if (want <= b->room)
		return true;
	if (b->data && want < 2 * b->room)
		want = 2 * b->room;
	uint8_t *data = pool_get_sized(want, &room);

	if (!data)
		return false;
	if (b->data)
		memcpy(data, b->data, b->size);
	pool_put(b->data);
	b->data = data;
	b->room = room;
	return true;
}

static void put_byte(struct baseline *b, unsigned byte)
{
	assert(b->size < b->room);
	b->data[b->size++] = (uint8_t)byte;
}

static void put_bytes(struct baseline *b, const void *from, size_t size)
{
	assert(size <= b->room - b->size);
	memcpy(b->data + b->size, from, size);
	b->size += size;
}

/* Begins a segment with `bytes` bytes after its length. */
static void put_segment(struct baseline *b, unsigned marker, size_t bytes)
{
	const uint8_t begin[] = { 0xff, (uint8_t)marker, (uint8_t)((bytes + 2) >> 8),
		                  (uint8_t)(bytes + 2) };

	put_bytes(b, begin, sizeof(begin));
}

/* Writes the bytes, with a zero after each byte of ones, so that it is not a marker. */
static void put_stuffed(struct baseline *b, const uint8_t *from, size_t size)
{
	while (size > 0) {
		const uint8_t *last = memchr(from, 0xff, size);
		size_t n = last ? (size_t)(last - from) + 1 : size;

		put_bytes(b, from, n);
		if (last)
			put_byte(b, 0);
		from += n;
		size -= n;
	}
}

static void put_profile(struct baseline *b)
{
	size_t count = div_up(b->icc_size, ICC_BYTES), left = b->icc_size;

	for (size_t i = 0; i < count; i++) {
		size_t n = left < ICC_BYTES ? left : ICC_BYTES;

		put_segment(b, APP2, sizeof("ICC_PROFILE") + 2 + n);
		put_bytes(b, "ICC_PROFILE", sizeof("ICC_PROFILE"));
		put_byte(b, (unsigned)i + 1);
		put_byte(b, (unsigned)count);
		put_bytes(b, b->icc + b->icc_size - left, n);
		left -= n;
	}
}

static void put_quantisation(struct baseline *b, unsigned t)
{
	put_segment(b, DQT, 1 + MCU_COEFFICIENTS);
	put_byte(b, t);
	for (int i = 0; i < MCU_COEFFICIENTS; i++)
		put_byte(b, b->quantum[t][mcu_zigzag[i]]);
}

static void put_frame(struct baseline *b)
{
	unsigned width = (unsigned)b->picture->width, height = (unsigned)b->picture->height;

	put_segment(b, SOF0, 6 + 3 * b->plane_count);
	put_byte(b, 8); /* bits of a sample */
	put_byte(b, height >> 8);
	put_byte(b, height);
	put_byte(b, width >> 8);
	put_byte(b, width);
	put_byte(b, b->plane_count);
	for (unsigned c = 0; c < b->plane_count; c++) {
		put_byte(b, c + 1);
		put_byte(b, c == 0 && b->mcus.chroma == CHROMA_420 ? 0x22 : 0x11);
		put_byte(b, c > 0);
	}
}

static void put_table(struct baseline *b, unsigned t)
{
	const struct huffman_table *table = &b->table[t];
	size_t count = 0;

	for (int i = 1; i <= HUFFMAN_LENGTH_MAX; i++)
		count += table->bits[i];
	put_segment(b, DHT, 1 + HUFFMAN_LENGTH_MAX + count);
	put_byte(b, t % 2 << 4 | t / 2); /* AC or DC, luma or chroma */
	put_bytes(b, table->bits + 1, HUFFMAN_LENGTH_MAX);
	put_bytes(b, table->symbol, count);
}

/* The order is that of libjpeg. */
static void put_headers(struct baseline *b)
{
	unsigned kinds = b->plane_count > 1 ? 2 : 1;

	put_bytes(b, (const uint8_t[]){ 0xff, SOI }, 2);
	put_segment(b, APP0, 14);
	put_bytes(b, "JFIF\0\1\1\0\0\1\0\1\0\0", 14); /* version 1.1, square pixels */
	put_profile(b);
	for (unsigned t = 0; t < kinds; t++)
		put_quantisation(b, t);
	put_frame(b);
	for (unsigned t = 0; t < 2 * kinds; t++)
		put_table(b, t);
	put_segment(b, SOS, 4 + 2 * b->plane_count);
	put_byte(b, b->plane_count);
	for (unsigned c = 0; c < b->plane_count; c++) {
		put_byte(b, c + 1);
		put_byte(b, c > 0 ? 0x11 : 0);
	}
	put_bytes(b, (const uint8_t[]){ 0, MCU_COEFFICIENTS - 1, 0 }, 3);
}

/* ---- coding ---- */

/* Codes notes to whole bytes and returns the end. The remaining bits stay for the next notes. There
 * are no branches on the data: they would be mispredicted. Two notes and the bits before them fit
 * one store. */
static uint8_t *code_notes(struct baseline *b, const uint32_t *note, unsigned count, uint8_t *to)
{
	uint64_t bits = b->bits, all;
	unsigned n = b->bit_count;

	for (unsigned i = 0; i < count; i += 2) {
		uint32_t code = b->code[note[i] % MCU_NOTES], next = 0;
		uint64_t coded = code >> 5 | note[i] >> 16;
		unsigned length = code & 31;

		if (i + 1 < count) {
			next = b->code[note[i + 1] % MCU_NOTES];
			coded = coded << (next & 31) | next >> 5 | note[i + 1] >> 16;
			length += next & 31;
		}
		bits = bits << length | coded;
		n += length;
		all = htobe64(bits << (64 - n));
		/* One store. _FORTIFY_SOURCE=3 would make memcpy() a call: 10 % more
		 * instructions for an image. */
		__builtin_memcpy(to, &all, sizeof(all));
		to += n / 8;
		n %= 8;
	}
	b->bits = bits;
	b->bit_count = n;
	return to;
}

static bool code_part(struct baseline *b, struct chunk *k, unsigned count)
{
	uint8_t coded[CODED_AT_ONCE * 4 + 8];

	while (count > 0) {
		unsigned n = count < CODED_AT_ONCE ? count : CODED_AT_ONCE;
		uint8_t *end = code_notes(b, k->note + k->coded, n, coded);

		if (!reserve(b, 2 * (size_t)(end - coded)))
			return false;
		put_stuffed(b, coded, (size_t)(end - coded));
		k->coded += n;
		b->notes_left -= n;
		count -= n;
	}
	return true;
}

static bool code_share(struct baseline *b, unsigned parts)
{
	uint64_t n = div_up(b->notes_left, parts);

	while (n > 0) {
		struct chunk *k = b->chunk[b->coding];
		unsigned left = k->count - k->coded, part = n < left ? (unsigned)n : left;

		if (!code_part(b, k, part))
			return false;
		n -= part;
		if (k->coded == k->count)
			b->coding++;
	}
	return true;
}

bool baseline_code(struct baseline *b, unsigned parts)
{
	if (!code_share(b, parts))
		return false;
	if (parts > 1)
		return true;
	if (!reserve(b, 4))
		return false;
	if (b->bit_count > 0) { /* the last byte is filled up with ones */
		uint8_t last = (uint8_t)((b->bits << 8 | 0xff) >> b->bit_count);

		put_stuffed(b, &last, 1);
	}
	put_bytes(b, (const uint8_t[]){ 0xff, EOI }, 2);
	return true;
}

/* ---- tables ---- */

bool baseline_tables(struct baseline *b)
{
	unsigned count = b->plane_count > 1 ? MCU_TABLES : 2;
	uint64_t bits = 0;

	if (b->has_tables)
		return true;
	b->has_tables = true;
	for (unsigned i = 0; i < count * HUFFMAN_SYMBOLS; i++)
		b->count[0][i] += b->count[1][i];
	for (unsigned t = 0; t < count; t++)
		huffman_table_make(b->count[0] + t * HUFFMAN_SYMBOLS, &b->table[t],
		                   b->code + t * HUFFMAN_SYMBOLS);
	for (unsigned i = 0; i < count * HUFFMAN_SYMBOLS; i++)
		bits += (uint64_t)b->count[0][i] * (b->code[i] & 31);
	/* One byte in 256 is stuffed, a few more in files of noise. */
	if (!reserve(b, HEADER_BYTES + b->icc_size + b->icc_size / 1024 + bits / 8 + bits / 512))
		return false;
	put_headers(b);
	return true;
}

/* ---- noting ---- */

/* Counts every symbol that 8-bit samples can have: a table made early must code all of them. */
static void count_all_possible(struct baseline *b)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t *dc = b->count[0] + i * MCU_CHROMA, *ac = dc + HUFFMAN_SYMBOLS;

		for (unsigned size = 0; size <= 11; size++)
			dc[size]++;
		ac[0]++;
		ac[0xf0]++;
		for (unsigned run = 0; run < 16; run++)
			for (unsigned size = 1; size <= 10; size++)
				ac[run << 4 | size]++;
	}
}

/* Returns a chunk with room for `notes` notes. Codes all chunks at their limit. NULL without
 * memory. */
static struct chunk *room(struct baseline *b, unsigned notes)
{
	struct chunk *k = b->chunk[b->noting];

	if (k && k->count + notes <= CHUNK_NOTES)
		return k;
	if (k && ++b->noting == b->chunks_max) {
		if (!b->has_tables)
			count_all_possible(b);
		if (!baseline_tables(b) || !code_share(b, 1))
			return NULL;
		b->noting = b->coding = 0;
	}
	if (!b->chunk[b->noting])
		b->chunk[b->noting] = pool_get(sizeof(*k));
	k = b->chunk[b->noting];
	if (k)
		k->count = k->coded = 0;
	return k;
}

static void count_notes(struct baseline *b, const uint32_t *note, const uint32_t *end)
{
	for (; note + 1 < end; note += 2) {
		b->count[0][note[0] % MCU_NOTES]++;
		b->count[1][note[1] % MCU_NOTES]++;
	}
	if (note < end)
		b->count[0][*note % MCU_NOTES]++;
}

/* Sets a row of blocks. Below the plane its last line is repeated. */
static void set_blocks(const struct baseline *b, const struct plane *p, int row,
                       struct mcu_blocks *to)
{
	if (to->spline) {
		b->kernel->transform(to, p->data + row * to->spline->per_block * p->stride,
		                     p->stride, p->width);
		return;
	}
	for (int i = 0; i < MCU_BLOCK; i++) {
		int y = row * MCU_BLOCK + i;

		to->line[i] = p->data + (y < p->height ? y : p->height - 1) * p->stride;
	}
}

static void set_row(struct baseline *b, int row)
{
	const struct plane *p = b->picture->plane;
	struct mcu_row *m = &b->mcus;
	int high = m->chroma == CHROMA_420 ? 2 : 1;

	m->is_cut = (row * high + 1) * MCU_BLOCK >= b->picture->height;
	for (int i = 0; i < (m->is_cut ? 1 : high); i++)
		set_blocks(b, &p[0], row * high + i, &m->luma[i]);
	if (m->chroma == CHROMA_NONE)
		return;
	set_blocks(b, &p[1], row, &m->cb);
	set_blocks(b, &p[2], row, &m->cr);
}

bool baseline_note(struct baseline *b, unsigned row)
{
	static const unsigned blocks_of[] = {
		[CHROMA_NONE] = 1, [CHROMA_420] = 6, [CHROMA_444] = 3
	};
	unsigned notes = MCU_COEFFICIENTS * blocks_of[b->mcus.chroma];
	int wide = b->mcus.chroma == CHROMA_420 ? (b->mcus.wide + 1) / 2 : b->mcus.wide, next;

	set_row(b, (int)row);
	for (int x = 0; x < wide; x = next) {
		struct chunk *k = room(b, notes);

		if (!k)
			return false;
		int fit = (int)((CHUNK_NOTES - k->count) / notes);

		next = wide - x < fit ? wide : x + fit;
		uint32_t *begin = k->note + k->count;
		uint32_t *end = b->kernel->note(&b->mcus, x, next, begin);

		count_notes(b, begin, end);
		k->count += (unsigned)(end - begin);
		b->notes_left += (uint64_t)(end - begin);
	}
	return true;
}

/* ---- life ---- */

static unsigned chunks_of(uint64_t bytes)
{
	uint64_t n = div_up(bytes, CHUNK_BYTES);

	return n < CHUNKS_MIN ? CHUNKS_MIN : n > CHUNKS_MAX ? CHUNKS_MAX : (unsigned)n;
}

/* Returns the columns of a row of blocks of splines with the smallest step. */
static size_t columns_of(int width)
{
	return (size_t)width / 2 + MCU_BLOCK + MCU_COLUMNS;
}

uint64_t baseline_bytes(int width, uint64_t notes_bytes_max)
{
	return sizeof(struct baseline) + COLUMN_BYTES * columns_of(width) +
	       chunks_of(notes_bytes_max) * (sizeof(struct chunk) + 2 * (uint64_t)CACHE_LINE);
}

/* Returns whether there is memory. */
static bool set_splines(struct baseline *b)
{
	const struct plane *p = b->picture->plane;
	struct mcu_blocks *row[] = { &b->mcus.luma[0], &b->mcus.luma[1], &b->mcus.cb, &b->mcus.cr };

	if (!p[0].step)
		return true;
	b->columns = pool_get(COLUMN_BYTES * columns_of(b->picture->width));
	for (unsigned i = 0; i < COUNT_OF(row) && b->columns; i++) {
		unsigned c = b->plane_count > 1 && i > 1;

		row[i]->spline = mcu_spline_of(p[c].step);
		/* Then no other coefficient is larger than one step of its quantiser. */
		row[i]->is_low = row[i]->spline->high <= b->quantum[c][4 * MCU_BLOCK];
		row[i]->columns = b->columns + i * MCU_BLOCK * columns_of(b->picture->width);
	}
	return b->columns;
}

struct baseline *baseline_new(unsigned quality, enum chroma chroma, const struct picture *p,
                              const uint8_t *icc, size_t icc_size, uint64_t notes_bytes_max)
{
	struct baseline *b = pool_get(sizeof(*b));

	if (!b)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->picture = p;
	b->icc = icc;
	b->icc_size = icc_size;
	b->kernel = mcu_kernel_at(0);
	b->plane_count = chroma_planes(chroma);
	b->chunks_max = chunks_of(notes_bytes_max);
	set_quality(b, quality);
	b->mcus = (struct mcu_row){
		.chroma = chroma,
		.luma_divisors = &b->divisors[0],
		.chroma_divisors = &b->divisors[1],
		.wide = (p->width + MCU_BLOCK - 1) / MCU_BLOCK,
	};
	if (set_splines(b))
		return b;
	pool_put(b);
	return NULL;
}

unsigned baseline_rows(const struct baseline *b)
{
	int high = b->mcus.chroma == CHROMA_420 ? 2 * MCU_BLOCK : MCU_BLOCK;

	return (unsigned)((b->picture->height + high - 1) / high);
}

void baseline_take(struct baseline *b, uint8_t **data, size_t *size)
{
	assert(b->data);
	*data = b->data;
	*size = b->size;
	b->data = NULL;
}

void baseline_free(struct baseline *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < b->chunks_max && b->chunk[i]; i++)
		pool_put(b->chunk[i]);
	pool_put(b->columns);
	pool_put(b->data);
	pool_put(b);
}
