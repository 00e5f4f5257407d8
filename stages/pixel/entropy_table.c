/*
 * entropy_table.c - makes the tables: each entry is the sum of a first and a second symbol.
 *
 * It has a file of its own, apart from its only user: in one file with entropy.c the compiler
 * arranges the decoding of an MCU in another way, and decoding takes 8 % longer.
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
	1, 2, 3, 0, 4, 17, 5, 18, 33, 49, 65, 6, 19, 81, 97, 7, 34, 113, 20, 50, 129, 145, 161, 8,
	35, 66, 177, 193, 21, 82, 209, 240, 36, 51, 98, 114, 130, 9, 10, 22, 23, 24, 25, 26, 37, 38,
	39, 40, 41, 42, 52, 53, 54, 55, 56, 57, 58, 67, 68, 69, 70, 71, 72, 73, 74, 83, 84, 85, 86,
	87, 88, 89, 90, 99, 100, 101, 102, 103, 104, 105, 106, 115, 116, 117, 118, 119, 120, 121,
	122, 131, 132, 133, 134, 135, 136, 137, 138, 146, 147, 148, 149, 150, 151, 152, 153, 154,
	162, 163, 164, 165, 166, 167, 168, 169, 170, 178, 179, 180, 181, 182, 183, 184, 185, 186,
	194, 195, 196, 197, 198, 199, 200, 201, 202, 210, 211, 212, 213, 214, 215, 216, 217, 218,
	225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 241, 242, 243, 244, 245, 246, 247, 248,
	249, 250,
}, {
	0, 1, 2, 3, 17, 4, 5, 33, 49, 6, 18, 65, 81, 7, 97, 113, 19, 34, 50, 129, 8, 20, 66, 145,
	161, 177, 193, 9, 35, 51, 82, 240, 21, 98, 114, 209, 10, 22, 36, 52, 225, 37, 241, 23, 24,
	25, 26, 38, 39, 40, 41, 42, 53, 54, 55, 56, 57, 58, 67, 68, 69, 70, 71, 72, 73, 74, 83, 84,
	85, 86, 87, 88, 89, 90, 99, 100, 101, 102, 103, 104, 105, 106, 115, 116, 117, 118, 119, 120,
	121, 122, 130, 131, 132, 133, 134, 135, 136, 137, 138, 146, 147, 148, 149, 150, 151, 152,
	153, 154, 162, 163, 164, 165, 166, 167, 168, 169, 170, 178, 179, 180, 181, 182, 183, 184,
	185, 186, 194, 195, 196, 197, 198, 199, 200, 201, 202, 210, 211, 212, 213, 214, 215, 216,
	217, 218, 226, 227, 228, 229, 230, 231, 232, 233, 234, 242, 243, 244, 245, 246, 247, 248,
	249, 250,
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

const struct entropy_table *entropy_table_standard(const JHUFF_TBL *dc, const JHUFF_TBL *ac)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	for (unsigned i = 0; i < 2; i++)
		if (memcmp(ac->huffval, ac_symbols[i], sizeof ac_symbols[i]) == 0 &&
		    memcmp(ac->bits + 1, ac_bits[i], LENGTH_MAX) == 0 &&
		    memcmp(dc->huffval, dc_symbols, sizeof dc_symbols) == 0 &&
		    memcmp(dc->bits + 1, dc_bits[i], LENGTH_MAX) == 0) {
			pthread_once(&once, make_standard);
			return &standard[i];
		}
	return NULL;
}
