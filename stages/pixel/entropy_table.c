/*
 * entropy_table.c - makes the tables: each entry is the sum of a first and a second symbol.
 *
 * It has a file of its own, apart from its only user: in one file with entropy.c the compiler
 * arranges the decoding of an MCU in another way, and decoding takes 8 % longer.
 */
#include "entropy.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"

#define LENGTH_MAX 16 /* of a code */
#define REST_BITS (ENTROPY_AC_BITS - 1)
#define BRIEF_BITS 8

/* ---- codes ---- */

void entropy_codes_make(struct entropy_codes *c, const JHUFF_TBL *t)
{
	uint32_t code = 0, index = 0;

	for (unsigned length = 1; length <= LENGTH_MAX; length++, code <<= 1) {
		c->first[length] = index - code;
		index += t->bits[length];
		code += t->bits[length];
		c->end[length] = code << (LENGTH_MAX - length);
	}
	memcpy(c->symbol, t->huffval, sizeof c->symbol);
	memset(c->brief, 0, sizeof c->brief);
	uint16_t *to = c->brief;

	for (unsigned length = 1, n = 0; length <= BRIEF_BITS; length++)
		for (unsigned i = 0; i < t->bits[length]; i++, n++) {
			unsigned count = 1U << (BRIEF_BITS - length);

			assert(to + count <= c->brief + COUNT_OF(c->brief));
			while (count-- > 0)
				*to++ = (uint16_t)(length << 8 | t->huffval[n]);
		}
}

unsigned entropy_code_find(const struct entropy_codes *c, unsigned bits)
{
	unsigned brief = c->brief[bits >> (LENGTH_MAX - BRIEF_BITS)];

	if (brief)
		return brief;
	for (unsigned length = BRIEF_BITS + 1; length <= LENGTH_MAX; length++)
		if (bits < c->end[length]) {
			uint32_t i = (bits >> (LENGTH_MAX - length)) + c->first[length];

			return length << 8 | c->symbol[i & 255];
		}
	return 0;
}

/* ---- entries ---- */

static uint64_t entry(unsigned length, unsigned run, unsigned value)
{
	uint64_t places = run + 1;

	return length | run << 8 | places << 16 | places << 24 | (uint64_t)(value & 0xffff) << 32;
}

/* Returns what a second symbol adds to a first one, as far as both fit. */
static uint64_t as_second(uint64_t e, unsigned bits)
{
	if ((e & 0xff) > bits || e >> 24 & ENTROPY_LONG)
		return 0;
	return (e & 0xff0000ff) | (e & 0xff00) << 8 | (e >> 32 & 0xffff) << 48;
}

/*
 * Writes the entries that begin with a code. `bits` of the index follow the code. rest[2^n] to
 * rest[2^(n+1)-1] is what the next n bits add.
 */
static void put_code(uint64_t *to, unsigned bits, unsigned length, unsigned symbol, bool is_dc,
                     const uint64_t *rest)
{
	unsigned run = symbol >> 4, size = symbol & 15, count = 1U << bits, n = count >> size;
	uint64_t one;

	if (size > bits || (size == 0 && run != 15 && !is_dc)) {
		one = size > 0 ? length | run << 8 | size << 16 | (uint64_t)ENTROPY_LONG << 24
		               : length | (uint64_t)ENTROPY_END << 24;
		for (unsigned i = 0; i < count; i++)
			to[i] = one;
		return;
	}
	for (unsigned v = 0; v < 1U << size; v++, to += n) {
		bool is_negative = v < (1U << size) / 2; /* T.81 F.2.2.1, EXTEND */

		one = entry(length + size, run, is_negative ? v + 1 - (1U << size) : v);
		for (unsigned i = 0; i < n; i++)
			to[i] = one + rest[n + i];
	}
}

static void put_codes(uint64_t *table, unsigned bits, const JHUFF_TBL *t, bool is_dc,
                      const uint64_t *rest)
{
	const uint8_t *symbol = t->huffval;
	unsigned at = 0, end = 1U << bits;

	for (unsigned length = 1; length <= bits; length++)
		for (unsigned i = 0; i < t->bits[length]; i++, symbol++) {
			unsigned left = bits - length;

			assert(at + (1U << left) <= end);
			put_code(table + at, left, length, *symbol, is_dc, rest);
			at += 1U << left;
		}
	for (; at < end; at++)
		table[at] = (uint64_t)ENTROPY_LONG << 24;
}

void entropy_table_make(struct entropy_table *t, const JHUFF_TBL *dc, const JHUFF_TBL *ac)
{
	uint64_t rest[2 << REST_BITS] = { 0 };

	entropy_codes_make(&t->dc_codes, dc);
	entropy_codes_make(&t->ac_codes, ac);
	put_codes(t->ac, ENTROPY_AC_BITS, ac, false, rest);
	for (unsigned i = 0; i < 1U << REST_BITS; i++)
		rest[(1U << REST_BITS) + i] = as_second(t->ac[2 * i], REST_BITS);
	for (unsigned bits = REST_BITS; bits-- > 0;)
		for (unsigned i = 1U << bits; i < 2U << bits; i++)
			rest[i] = (rest[2 * i] & 0xff) <= bits ? rest[2 * i] : 0;
	put_codes(t->ac, ENTROPY_AC_BITS, ac, false, rest);
	put_codes(t->dc, ENTROPY_DC_BITS, dc, true, rest);
}

/* ---- standard tables ---- */

/* Of luma and chroma. */
static struct {
	JHUFF_TBL dc, ac;
	struct entropy_table table;
} standard[2];
static bool has_standard;

static void on_error(j_common_ptr c)
{
	longjmp(*(jmp_buf *)c->client_data, 1);
}

/* Takes the codes from libjpeg's encoder. Without memory there are no standard tables. */
static void make_standard(void)
{
	jmp_buf failed;
	struct jpeg_error_mgr errors;
	struct jpeg_compress_struct c = { .err = jpeg_std_error(&errors), .client_data = &failed };

	errors.error_exit = on_error;
	if (!setjmp(failed)) {
		jpeg_create_compress(&c);
		c.input_components = 3;
		c.in_color_space = JCS_YCbCr;
		jpeg_set_defaults(&c);
		for (unsigned i = 0; i < 2; i++) {
			standard[i].dc = *c.dc_huff_tbl_ptrs[i];
			standard[i].ac = *c.ac_huff_tbl_ptrs[i];
			entropy_table_make(&standard[i].table, &standard[i].dc, &standard[i].ac);
		}
		has_standard = true;
	}
	jpeg_destroy_compress(&c);
}

static bool is_same(const JHUFF_TBL *a, const JHUFF_TBL *b)
{
	return memcmp(a->bits, b->bits, sizeof a->bits) == 0 &&
	       memcmp(a->huffval, b->huffval, sizeof a->huffval) == 0;
}

const struct entropy_table *entropy_table_standard(const JHUFF_TBL *dc, const JHUFF_TBL *ac)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_standard);
	for (unsigned i = 0; i < 2 && has_standard; i++)
		if (is_same(ac, &standard[i].ac) && is_same(dc, &standard[i].dc))
			return &standard[i].table;
	return NULL;
}
