/*
 * huffman.c - notes the symbols of each block, counts them, and codes them with tables of their
 * own.
 *
 * A note has 32 bits. The lower 10 bits are the symbol and its table. The upper 16 bits are the
 * bits that follow the symbol in the file.
 */
#include "huffman.h"

#if LIBJPEG_HAS_PRIVATE

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <jerror.h>

#include "base/check.h"
#include "base/round.h"

#define SYMBOLS 256
#define LENGTH_MAX 16 /* bits of a code */
#define DEPTH_MAX 64  /* of a tree before it is limited; it has fewer than 2^24 leaves */
#define TABLES 4      /* [luma, chroma][DC, AC] */
#define CHUNK_NOTES 16320
#define CHUNKS_MIN 4      /* enough for all notes of a small picture */
#define CHUNKS_MAX 257    /* 16 MB */
#define CODED_AT_ONCE 256 /* notes, of at most 27 bits each */

/* ---- optimal tables from symbol counts (ITU-T T.81, annex K.2) ---- */

/* Shell's sort. Most tables have a few dozen keys, and qsort() would allocate memory. */
static void sort(uint64_t *key, int n)
{
	static const int gaps[] = { 57, 23, 10, 4, 1 };

	for (size_t g = 0; g < COUNT_OF(gaps); g++)
		for (int i = gaps[g]; i < n; i++) {
			uint64_t k = key[i];
			int at = i;

			for (; at >= gaps[g] && key[at - gaps[g]] > k; at -= gaps[g])
				key[at] = key[at - gaps[g]];
			key[at] = k;
		}
}

/* Counts the leaves of the tree at each depth. The n >= 2 keys are sorted, rarest symbol first. */
static void tree_depths(const uint64_t *key, int n, unsigned at_depth[DEPTH_MAX])
{
	uint64_t sum[SYMBOLS + 1];
	int parent[2 * (SYMBOLS + 1)], leaf = 0, inner = 0, root = 2 * n - 2;
	uint8_t depth[2 * (SYMBOLS + 1)];

	assert(n >= 2); /* so that each node below the root has a parent */
	/* Joined nodes are made in ascending order. The rarest node is the first leaf or the first
	 * joined node that has no parent. */
	for (int made = 0; made < n - 1; made++) {
		sum[made] = 0;
		for (int i = 0; i < 2; i++) {
			bool is_leaf = inner == made || (leaf < n && key[leaf] / 512 <= sum[inner]);

			sum[made] += is_leaf ? key[leaf] / 512 : sum[inner];
			parent[is_leaf ? leaf++ : n + inner++] = n + made;
		}
	}
	memset(at_depth, 0, DEPTH_MAX * sizeof(*at_depth));
	depth[root] = 0;
	for (int node = root - 1; node >= 0; node--) {
		depth[node] = (uint8_t)(depth[parent[node]] + 1);
		assert(depth[node] < DEPTH_MAX);
		if (node < n)
			at_depth[depth[node]]++;
	}
}

/* Limits the depth to 16. Of a pair of deepest leaves, one replaces their parent. The other one and
 * a leaf higher up become children of a node in place of that leaf. */
static void limit_depth(unsigned at_depth[DEPTH_MAX])
{
	for (int i = DEPTH_MAX - 1; i > LENGTH_MAX; i--)
		while (at_depth[i] > 0) {
			int j = i - 2;

			while (at_depth[j] == 0)
				j--;
			at_depth[i] -= 2;
			at_depth[i - 1]++;
			at_depth[j + 1] += 2;
			at_depth[j]--;
		}
}

static void make_codes(const JHUFF_TBL *t, uint32_t *code)
{
	const uint8_t *symbol = t->huffval;
	uint32_t next = 0;

	for (unsigned length = 1; length <= LENGTH_MAX; length++, next <<= 1)
		for (unsigned i = 0; i < t->bits[length]; i++, symbol++) {
			unsigned follow = *symbol & 15;

			code[*symbol] = next++ << follow << 5 | (length + follow);
		}
}

/*
 * Makes the table *t for count[SYMBOLS], of which at least one must be above 0. The counts
 * must be below 2^24. For each counted symbol, code[symbol] becomes its code shifted left by the
 * number of bits that follow it in the file, symbol & 15. The lower 5 bits of code[symbol] hold the
 * length of both.
 */
static void huffman_table_make(const uint32_t *count, JHUFF_TBL *t, uint32_t *code)
{
	uint64_t key[SYMBOLS + 1];
	unsigned at_depth[DEPTH_MAX], longest = LENGTH_MAX;
	int n = 0;

	/* A symbol that never occurs is the rarest. It gets the reserved code of all ones. */
	key[n++] = SYMBOLS;
	for (unsigned s = 0; s < SYMBOLS; s++)
		if (count[s])
			key[n++] = (uint64_t)count[s] * 512 + s;
	assert(n > 1);
	sort(key, n);
	tree_depths(key, n, at_depth);
	limit_depth(at_depth);
	while (at_depth[longest] == 0)
		longest--;
	at_depth[longest]--;
	memset(t, 0, sizeof(*t));
	for (unsigned i = 1; i <= LENGTH_MAX; i++)
		t->bits[i] = (UINT8)at_depth[i];
	for (int i = 1; i < n; i++)
		t->huffval[i - 1] = (UINT8)(key[n - i] % 512);
	make_codes(t, code);
}

/* ---- notes ---- */

struct chunk {
	unsigned count, coded;
	uint32_t note[CHUNK_NOTES];
};

struct huffman {
	struct jpeg_entropy_encoder methods; /* first: libjpeg points to it */
	struct chunk *chunk[CHUNKS_MAX];     /* NULL until needed */
	unsigned chunks_max;                 /* of this file */
	unsigned noting, coding;             /* indices */
	uint64_t notes_left;                 /* not coded yet */
	bool has_tables;
	int last_dc[MAX_COMPS_IN_SCAN];
	uint64_t bits;      /* its last bit_count bits are coded but not written */
	unsigned bit_count; /* below 8 */
	uint32_t count[TABLES * SYMBOLS];
	uint32_t code[TABLES * SYMBOLS]; /* see huffman_table_make() */
};

/* Maps which of four coefficients are not zero to their bits in zigzag order. */
#define BIT(place) (UINT64_C(1) << (place))
#define PAIR(a, b) 0, BIT(a), BIT(b), BIT(a) | BIT(b)
#define WITH(c, a, b) BIT(c), BIT(c) | BIT(a), BIT(c) | BIT(b), BIT(c) | BIT(a) | BIT(b)
#define FOUR(a, b, c, d)                                                    \
	{                                                                   \
		PAIR(a, b), WITH(c, a, b), WITH(d, a, b), BIT(c) | BIT(d),  \
			BIT(c) | BIT(d) | BIT(a), BIT(c) | BIT(d) | BIT(b), \
			BIT(c) | BIT(d) | BIT(a) | BIT(b)                   \
	}

static const uint64_t zigzag_bits[DCTSIZE2 / 4][16] = {
	FOUR(0, 1, 5, 6),     FOUR(14, 15, 27, 28), FOUR(2, 4, 7, 13),    FOUR(16, 26, 29, 42),
	FOUR(3, 8, 12, 17),   FOUR(25, 30, 41, 43), FOUR(9, 11, 18, 24),  FOUR(31, 40, 44, 53),
	FOUR(10, 19, 23, 32), FOUR(39, 45, 52, 54), FOUR(20, 22, 33, 38), FOUR(46, 51, 55, 60),
	FOUR(21, 34, 37, 47), FOUR(50, 56, 59, 61), FOUR(35, 36, 48, 49), FOUR(57, 58, 62, 63),
};

/* ---- writing ---- */

static void put_bytes(j_compress_ptr c, const uint8_t *from, size_t size)
{
	struct jpeg_destination_mgr *to = c->dest;

	while (size > 0) {
		size_t n = size < to->free_in_buffer ? size : to->free_in_buffer;

		memcpy(to->next_output_byte, from, n);
		to->next_output_byte += n;
		to->free_in_buffer -= n;
		from += n;
		size -= n;
		if (to->free_in_buffer == 0 && !to->empty_output_buffer(c))
			ERREXIT(c, JERR_CANT_SUSPEND);
	}
}

/* Writes the bytes, with a zero after each byte of ones, so that it is not a marker. */
static void put_stuffed(j_compress_ptr c, const uint8_t *from, size_t size)
{
	while (size > 0) {
		const uint8_t *ones = memchr(from, 0xff, size);
		size_t n = ones ? (size_t)(ones - from) + 1 : size;

		put_bytes(c, from, n);
		if (ones)
			put_bytes(c, (const uint8_t[]){ 0 }, 1);
		from += n;
		size -= n;
	}
}

/* Codes notes to whole bytes and returns the end. The remaining bits stay for the next notes. There
 * are no branches on the data: they would be mispredicted. */
static uint8_t *code_notes(struct huffman *h, const uint32_t *note, unsigned count, uint8_t *to)
{
	uint64_t bits = h->bits, all;
	unsigned n = h->bit_count;

	for (unsigned i = 0; i < count; i++) {
		uint32_t code = h->code[note[i] % (TABLES * SYMBOLS)];

		bits = bits << (code & 31) | code >> 5 | note[i] >> 16;
		n += code & 31;
		all = htobe64(bits << (64 - n));
		/* One store. _FORTIFY_SOURCE=3 would make memcpy() a call: 10 % more
		 * instructions for an image. */
		__builtin_memcpy(to, &all, sizeof(all));
		to += n / 8;
		n %= 8;
	}
	h->bits = bits;
	h->bit_count = n;
	return to;
}

static void code_part(struct huffman *h, j_compress_ptr c, struct chunk *k, unsigned count)
{
	uint8_t coded[CODED_AT_ONCE * 4 + 8];

	while (count > 0) {
		unsigned n = count < CODED_AT_ONCE ? count : CODED_AT_ONCE;
		uint8_t *end = code_notes(h, k->note + k->coded, n, coded);

		k->coded += n;
		h->notes_left -= n;
		count -= n;
		put_stuffed(c, coded, (size_t)(end - coded));
	}
}

/* ---- tables ---- */

static struct huffman *huffman_of(j_compress_ptr c)
{
	return (struct huffman *)(void *)c->entropy;
}

void huffman_tables(j_compress_ptr c)
{
	struct huffman *h = huffman_of(c);

	if (h->has_tables)
		return;
	h->has_tables = true;
	for (int i = 0; i < (c->num_components > 1 ? 2 : 1); i++) {
		huffman_table_make(h->count + 2 * i * SYMBOLS, c->dc_huff_tbl_ptrs[i],
		                   h->code + 2 * i * SYMBOLS);
		huffman_table_make(h->count + (2 * i + 1) * SYMBOLS, c->ac_huff_tbl_ptrs[i],
		                   h->code + (2 * i + 1) * SYMBOLS);
	}
	c->master->pass_startup(c); /* writes the headers, which huffman_start() has delayed */
}

/* ---- noting ---- */

/* Counts every symbol that 8-bit samples can have: a table made early must code all of them. */
static void count_all_possible(struct huffman *h)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t *dc = h->count + 2 * i * SYMBOLS, *ac = dc + SYMBOLS;

		for (unsigned size = 0; size <= 11; size++)
			dc[size]++;
		ac[0]++;
		ac[0xf0]++;
		for (unsigned run = 0; run < 16; run++)
			for (unsigned size = 1; size <= 10; size++)
				ac[run << 4 | size]++;
	}
}

/* Returns a chunk with room for `notes` notes. Codes all chunks at their limit. */
static struct chunk *room(struct huffman *h, j_compress_ptr c, unsigned notes)
{
	struct chunk *k = h->chunk[h->noting];

	if (k && k->count + notes <= CHUNK_NOTES)
		return k;
	if (k && ++h->noting == h->chunks_max) {
		if (!h->has_tables)
			count_all_possible(h);
		huffman_tables(c);
		huffman_code(c, 1);
		h->noting = h->coding = 0;
	}
	if (!h->chunk[h->noting])
		h->chunk[h->noting] = c->mem->alloc_large((j_common_ptr)c, JPOOL_IMAGE, sizeof(*k));
	k = h->chunk[h->noting];
	k->count = k->coded = 0;
	return k;
}

/* Returns which of 16 coefficients are not zero. */
static inline unsigned nonzero_16(const JCOEF *b)
{
#if defined(__SSE2__)
	__m128i left = _mm_loadu_si128((const void *)b),
		right = _mm_loadu_si128((const void *)(b + 8));

	return ~(unsigned)_mm_movemask_epi8(
		       _mm_cmpeq_epi8(_mm_packs_epi16(left, right), _mm_setzero_si128())) &
	       0xffff;
#else
	unsigned bits = 0;

	for (int i = 0; i < 16; i++)
		bits |= (unsigned)(b[i] != 0) << i;
	return bits;
#endif
}

/* Returns which coefficients of a block are not zero, in zigzag order. Most rows are all zero. */
static inline uint64_t nonzero_zigzag(const JCOEF *b)
{
	uint64_t zigzag = 0;

	for (int i = 0; i < DCTSIZE2 / 4; i += 4) {
		unsigned bits = nonzero_16(b + 4 * i);

		if (bits)
			zigzag |= zigzag_bits[i][bits & 15] | zigzag_bits[i + 1][bits >> 4 & 15] |
			          zigzag_bits[i + 2][bits >> 8 & 15] |
			          zigzag_bits[i + 3][bits >> 12];
	}
	return zigzag;
}

/* Returns the bits that follow the symbol of v, in the upper half of a note. *size is their number.
 * Negative numbers are stored as v - 1. */
static inline uint32_t note_bits(int v, unsigned *size)
{
	unsigned zeros = (unsigned)__builtin_clz(2 * (unsigned)(v < 0 ? -v : v) | 1);

	*size = 31 - zeros;
	return ((uint32_t)(v + (v >> 31)) & (UINT32_C(0x7fffffff) >> zeros)) << 16;
}

/* Notes one block, in at most 64 notes, and returns their end. `table` is the offset of the DC
 * table; the AC table follows it. */
static uint32_t *note_block(struct huffman *h, const JCOEF *b, unsigned table, int *last_dc,
                            uint32_t *note)
{
	unsigned size, at = 0;
	uint32_t bits = note_bits(b[0] - *last_dc, &size), symbol = table + size;
	uint64_t left = nonzero_zigzag(b) & ~UINT64_C(1);

	h->count[symbol]++;
	*note++ = symbol | bits;
	*last_dc = b[0];
	for (; left; left &= left - 1) {
		unsigned to = (unsigned)__builtin_ctzll(left), run = to - at - 1;
		int v = b[jpeg_natural_order[to]];

		for (; run > 15; run -= 16) {
			h->count[table + SYMBOLS + 0xf0]++;
			*note++ = table + SYMBOLS + 0xf0;
		}
		bits = note_bits(v, &size);
		symbol = table + SYMBOLS + (run << 4 | size);
		h->count[symbol]++;
		*note++ = symbol | bits;
		at = to;
	}
	if (at < DCTSIZE2 - 1) {
		h->count[table + SYMBOLS]++;
		*note++ = table + SYMBOLS;
	}
	return note;
}

static boolean on_mcu(j_compress_ptr c, JBLOCKROW *blocks)
{
	struct huffman *h = huffman_of(c);
	struct chunk *k = room(h, c, (unsigned)c->blocks_in_MCU * DCTSIZE2);
	uint32_t *begin = k->note + k->count, *end = begin;

	for (int i = 0; i < c->blocks_in_MCU; i++) {
		int component = c->MCU_membership[i];
		unsigned table = 2 * SYMBOLS * (unsigned)c->cur_comp_info[component]->dc_tbl_no;

		end = note_block(h, blocks[i][0], table, &h->last_dc[component], end);
	}
	k->count += (unsigned)(end - begin);
	h->notes_left += (uint64_t)(end - begin);
	return TRUE;
}

void huffman_code(j_compress_ptr c, unsigned parts)
{
	struct huffman *h = huffman_of(c);
	uint64_t n = div_up(h->notes_left, parts);

	while (n > 0) {
		struct chunk *k = h->chunk[h->coding];
		unsigned left = k->count - k->coded, part = n < left ? (unsigned)n : left;

		code_part(h, c, k, part);
		n -= part;
		if (k->coded == k->count)
			h->coding++;
	}
}

/* Codes the remaining notes and fills the last byte up with ones. */
static void on_finish(j_compress_ptr c)
{
	struct huffman *h = huffman_of(c);
	uint8_t coded;

	huffman_tables(c);
	huffman_code(c, 1);
	if (h->bit_count == 0)
		return;
	coded = (uint8_t)((h->bits << 8 | 0xff) >> h->bit_count);
	put_stuffed(c, &coded, 1);
}

/* ---- life ---- */

static unsigned chunks_of(uint64_t bytes)
{
	uint64_t n = div_up(bytes, sizeof(struct chunk));

	return n < CHUNKS_MIN ? CHUNKS_MIN : n > CHUNKS_MAX ? CHUNKS_MAX : (unsigned)n;
}

uint64_t huffman_bytes(uint64_t bytes_max)
{
	return sizeof(struct huffman) +
	       chunks_of(bytes_max) * (sizeof(struct chunk) + 2 * (uint64_t)CACHE_LINE);
}

void huffman_start(j_compress_ptr c, uint64_t bytes_max)
{
	struct huffman *h = c->mem->alloc_large((j_common_ptr)c, JPOOL_IMAGE, sizeof(*h));

	assert(!c->optimize_coding && !c->scan_info && !c->restart_interval);
	memset(h, 0, sizeof(*h));
	h->chunks_max = chunks_of(bytes_max);
	h->methods = *c->entropy;
	h->methods.encode_mcu = on_mcu;
	h->methods.finish_pass = on_finish;
	c->entropy = &h->methods;
	c->master->call_pass_startup = FALSE; /* it would write headers with the standard tables */
}

#else

typedef int huffman_is_empty; /* ISO C requires a declaration in every file */

#endif
