/*
 * entropy_table.c - makes the tables: each entry is the sum of a first and a second symbol.
 */
#include "entropy_table.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"

#define LENGTH_MAX 16 /* of a code */
#define REST_BITS (ENTROPY_AC_BITS - 1)

/* ---- codes ---- */

static void codes_make(struct entropy_codes *c, const JHUFF_TBL *t)
{
	uint32_t code = 0, index = 0;

	for (unsigned length = 1; length <= LENGTH_MAX; length++, code <<= 1) {
		c->first[length] = index - code;
		index += t->bits[length];
		code += t->bits[length];
		c->end[length] = code << (LENGTH_MAX - length);
	}
	memcpy(c->symbol, t->huffval, sizeof c->symbol);
}

unsigned entropy_code_find(const struct entropy_codes *c, unsigned bits)
{
	for (unsigned length = 1; length <= LENGTH_MAX; length++)
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
	unsigned run = symbol >> 4, size = symbol & 15, count = 1U << bits, n;
	uint64_t one;

	if (size > bits || (size == 0 && run != 15 && !is_dc)) {
		one = size > 0 ? length | run << 8 | size << 16 | (uint64_t)ENTROPY_LONG << 24
		               : length | (uint64_t)ENTROPY_END << 24;
		for (unsigned i = 0; i < count; i++)
			to[i] = one;
		return;
	}
	n = count >> size;
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

	codes_make(&t->dc_codes, dc);
	codes_make(&t->ac_codes, ac);
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

/* T.81, tables K.3 to K.6: luma, chroma. The symbols of the DC tables are 0 to 11. */
static const uint8_t dc_bits[2][LENGTH_MAX] = {
	{ 0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0 },
	{ 0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0 },
};
static const uint8_t ac_bits[2][LENGTH_MAX] = {
	{ 0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125 },
	{ 0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119 },
};
static const uint8_t dc_symbols[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
/* clang-format off */
static const uint8_t ac_symbols[2][162] = { {
	0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61,
	0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52,
	0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25,
	0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45,
	0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64,
	0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83,
	0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
	0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6,
	0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3,
	0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
	0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
}, {
	0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61,
	0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33,
	0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18,
	0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44,
	0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63,
	0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a,
	0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97,
	0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4,
	0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca,
	0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7,
	0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
} };
/* clang-format on */

static struct entropy_table standard[2];

static void make_standard(void)
{
	for (unsigned i = 0; i < 2; i++) {
		JHUFF_TBL dc = { 0 }, ac = { 0 };

		memcpy(dc.bits + 1, dc_bits[i], LENGTH_MAX);
		memcpy(dc.huffval, dc_symbols, sizeof dc_symbols);
		memcpy(ac.bits + 1, ac_bits[i], LENGTH_MAX);
		memcpy(ac.huffval, ac_symbols[i], sizeof ac_symbols[i]);
		entropy_table_make(&standard[i], &dc, &ac);
	}
}

static bool is_table(const JHUFF_TBL *t, const uint8_t *bits, const uint8_t *symbols, size_t count)
{
	return memcmp(t->bits + 1, bits, LENGTH_MAX) == 0 &&
	       memcmp(t->huffval, symbols, count) == 0;
}

const struct entropy_table *entropy_table_standard(const JHUFF_TBL *dc, const JHUFF_TBL *ac)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	for (unsigned i = 0; i < 2; i++)
		if (is_table(dc, dc_bits[i], dc_symbols, sizeof dc_symbols) &&
		    is_table(ac, ac_bits[i], ac_symbols[i], sizeof ac_symbols[i])) {
			pthread_once(&once, make_standard);
			return &standard[i];
		}
	return NULL;
}
