/*
 * entropy_progressive.c - decodes the scans of progressive files (ITU-T T.81, annex G).
 *
 * libjpeg calls it for each block and keeps the coefficients. Here each block has a mask of the AC
 * coefficients that are not 0, in zigzag order. So a refinement knows how many bits it has to read,
 * and reads them at once. libjpeg looks at each coefficient.
 */
#include "entropy_private.h"

#if LIBJPEG_HAS_PRIVATE

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.h"
#include "base/pool.h"

#define TABLE_BITS 10
#define REFINED_AT_ONCE 48 /* bits; a full buffer has at least 56 */

/*
 * The next bits are the index.
 *
 *	bits 0-7    length of the code and its value, or of the code
 *	bits 8-15   places up to the coefficient, or 0 if there is none or its value is too long
 *	bits 16-31  the value, or the symbol
 *
 * Length 0: the code itself does not fit.
 */
struct scan_table {
	uint32_t entry[1 << TABLE_BITS];
	struct entropy_codes codes;
};

struct progressive {
	struct entropy entropy; /* first: the libjpeg object points to it */
	struct jpeg_entropy_decoder *theirs;
	uint64_t *masks[MAX_COMPONENTS]; /* of the blocks of each component */
	uint64_t *mask;                  /* of the next block in a scan of AC coefficients */
	uint64_t mcus_left;              /* of the scan */
	uint32_t run;                    /* blocks whose band has ended */
	struct scan_table table[];       /* one for each component */
};

/* ---- tables ---- */

static uint32_t entry(unsigned length, unsigned symbol, unsigned left, unsigned rest)
{
	unsigned size = symbol & 15, half;
	int value;

	if (size == 0 || size > left)
		return length | symbol << 16;
	value = (int)(rest >> (left - size));
	half = 1U << (size - 1);
	if (value < (int)half) /* T.81 F.2.2.1, EXTEND */
		value += 1 - (int)(2 * half);
	return (length + size) | ((symbol >> 4) + 1) << 8 | (uint32_t)value << 16;
}

static void table_make(struct scan_table *t, const JHUFF_TBL *h)
{
	const uint8_t *symbol = h->huffval;
	uint32_t *to = t->entry, *end = to + (1 << TABLE_BITS);

	entropy_codes_make(&t->codes, h);
	for (unsigned length = 1; length <= TABLE_BITS; length++)
		for (unsigned i = 0; i < h->bits[length]; i++, symbol++) {
			unsigned left = TABLE_BITS - length;

			assert(end - to >= 1 << left);
			for (unsigned rest = 0; rest < 1U << left; rest++)
				*to++ = entry(length, *symbol, left, rest);
		}
	while (to < end)
		*to++ = 0;
}

/* ---- symbols: after bits_fill(), which serves a symbol and its value ---- */

/* Reads the symbol of an entry without a value. Returns -1 without such a code. */
INLINE int read_symbol(struct bits *b, const struct scan_table *t, uint32_t e)
{
	unsigned found;

	if (e & 0xff) {
		bits_drop(b, e & 0xff);
		return (int)(e >> 16);
	}
	found = entropy_code_find(&t->codes, (unsigned)(b->buffer >> 48));
	bits_drop(b, found >> 8);
	return found ? (int)(found & 0xff) : -1;
}

/* Returns the number of blocks of an end-of-band run: 2^size plus the next bits. */
INLINE uint32_t read_run(struct bits *b, unsigned size)
{
	uint32_t more = (uint32_t)(b->buffer >> 1 >> (63 - size));

	bits_drop(b, size);
	return (1U << size) + more;
}

/* ---- blocks ---- */

INLINE bool dc_first(j_decompress_ptr in, struct progressive *p, struct bits *b, JBLOCKROW *blocks)
{
	for (int i = 0; i < in->blocks_in_MCU; i++) {
		int c = in->MCU_membership[i], code, value;
		const struct scan_table *t = &p->table[c];

		bits_fill(b);
		uint32_t e = t->entry[b->buffer >> (64 - TABLE_BITS)];

		if (e >> 8 & 0xff) {
			value = (int32_t)e >> 16;
			bits_drop(b, e & 0xff);
		} else {
			code = read_symbol(b, t, e);
			if (code < 0 || code > 15)
				return false;
			value = bits_value(b, (unsigned)code);
		}
		p->entropy.dc[c] += (unsigned)value;
		blocks[i][0][0] = (JCOEF)(p->entropy.dc[c] << in->Al);
	}
	return true;
}

INLINE bool dc_refine(j_decompress_ptr in, struct bits *b, JBLOCKROW *blocks)
{
	for (int i = 0; i < in->blocks_in_MCU; i++) {
		bits_fill(b);
		blocks[i][0][0] |= (JCOEF)((b->buffer >> 63) << in->Al);
		bits_drop(b, 1);
	}
	return true;
}

/* Stores a coefficient at a place and notes it in the mask. */
INLINE void put(JCOEF *block, uint64_t *mask, unsigned place, int value, int low)
{
	JCOEF v = (JCOEF)((unsigned)value << low);

	block[jpeg_natural_order[place]] = v;
	*mask |= (uint64_t)(v != 0) << place;
}

INLINE bool ac_first(j_decompress_ptr in, struct progressive *p, struct bits *b, JCOEF *block)
{
	const struct scan_table *t = p->table;
	unsigned place = (unsigned)in->Ss, last = (unsigned)in->Se;
	uint64_t mask = 0;

	while (place <= last) {
		bits_fill(b);
		uint32_t e = t->entry[b->buffer >> (64 - TABLE_BITS)];

		if (__builtin_expect((e >> 8 & 0xff) != 0, 1)) {
			place += e >> 8 & 0xff;
			if (place > last + 1)
				return false;
			put(block, &mask, place - 1, (int32_t)e >> 16, in->Al);
			bits_drop(b, e & 0xff);
			continue;
		}
		int code = read_symbol(b, t, e);
		unsigned zeros = (unsigned)code >> 4, size = (unsigned)code & 15;

		if (code < 0 || (size > 0 && place + zeros > last))
			return false;
		if (size == 0 && zeros < 15) {
			p->run = read_run(b, zeros) - 1;
			break;
		}
		place += zeros;
		if (size > 0)
			put(block, &mask, place, bits_value(b, size), in->Al);
		place++;
	}
	*p->mask |= mask;
	return true;
}

/* Reads a bit for each of the places and adds it to their coefficients. */
INLINE void refine(struct bits *b, JCOEF *block, uint64_t places, int low)
{
	unsigned left = (unsigned)__builtin_popcountll(places);
	int bit = 1 << low;

	while (left > 0) {
		unsigned n = left < REFINED_AT_ONCE ? left : REFINED_AT_ONCE;

		bits_fill(b);
		uint64_t next = b->buffer;

		bits_drop(b, n);
		left -= n;
		for (; n > 0; n--, places &= places - 1, next <<= 1) {
			JCOEF *at = &block[jpeg_natural_order[__builtin_ctzll(places)]];
			int add = next >> 63 && !(*at & bit) ? bit : 0;

			*at = (JCOEF)(*at < 0 ? *at - add : *at + add);
		}
	}
}

/* Reads a symbol of a refinement: the zeros before a new coefficient and its sign, or 0 after 16
 * zeros. Sets the run if the band ends. Returns false without such a code. */
INLINE bool read_new(struct progressive *p, struct bits *b, unsigned *zeros, int *sign)
{
	const struct scan_table *t = p->table;

	bits_fill(b);
	uint32_t e = t->entry[b->buffer >> (64 - TABLE_BITS)];

	if (e >> 8 & 0xff) {
		*zeros = (e >> 8 & 0xff) - 1;
		*sign = (int32_t)e >> 16;
		bits_drop(b, e & 0xff);
		return *sign == 1 || *sign == -1;
	}
	int code = read_symbol(b, t, e);
	unsigned size = (unsigned)code & 15;

	*zeros = (unsigned)code >> 4;
	*sign = 0;
	if (code < 0 || size > 1)
		return false;
	if (size == 1)
		*sign = bits_value(b, 1);
	else if (*zeros < 15)
		p->run = read_run(b, *zeros);
	return true;
}

/* Returns the bit of `of` with n bits below it, or 0. */
static inline uint64_t bit_after(uint64_t of, unsigned n)
{
	for (; n > 0; n--)
		of &= of - 1;
	return of & -of;
}

#ifdef __x86_64__
#define BMI2 __attribute__((target("bmi,bmi2,popcnt")))

/* The same without branches, which would be mispredicted. */
BMI2 static inline uint64_t bit_after_bmi2(uint64_t of, unsigned n)
{
	return _pdep_u64(UINT64_C(1) << n, of);
}
#endif

/* The places of the band. */
INLINE uint64_t band_of(const struct jpeg_decompress_struct *in)
{
	return UINT64_MAX << in->Ss & UINT64_MAX >> (DCTSIZE2 - 1 - in->Se);
}

INLINE bool ac_refine(j_decompress_ptr in, struct progressive *p, struct bits *b, JCOEF *block,
                      uint64_t (*place_after)(uint64_t, unsigned))
{
	uint64_t had = *p->mask, left = band_of(in);
	unsigned zeros;
	int sign;

	while (p->run == 0 && left) {
		if (!read_new(p, b, &zeros, &sign))
			return false;
		if (p->run > 0)
			break;
		/* all places are before it if there is none */
		uint64_t place = place_after(~had & left, zeros), before = place - 1;

		if (!place && sign)
			return false;
		refine(b, block, had & left & before, in->Al);
		if (sign)
			put(block, p->mask, (unsigned)__builtin_ctzll(place), sign, in->Al);
		left &= ~(place | before);
	}
	if (p->run > 0) {
		refine(b, block, had & left, in->Al);
		p->run--;
	}
	return true;
}

/* ---- scans ---- */

enum kind { DC_FIRST, DC_REFINE, AC_FIRST, AC_REFINE };

INLINE bool decode_blocks(j_decompress_ptr in, struct progressive *p, JBLOCKROW *blocks,
                          enum kind kind, uint64_t (*place_after)(uint64_t, unsigned))
{
	struct bits b = p->entropy.bits;
	bool is_good = kind == DC_FIRST    ? dc_first(in, p, &b, blocks)
	               : kind == DC_REFINE ? dc_refine(in, &b, blocks)
	               : kind == AC_FIRST  ? ac_first(in, p, &b, blocks[0][0])
	                                   : ac_refine(in, p, &b, blocks[0][0], place_after);

	p->entropy.bits = b;
	return is_good;
}

/* Returns whether nothing is to be read for this block. */
INLINE bool is_skipped(j_decompress_ptr in, const struct progressive *p, enum kind kind)
{
	if (kind < AC_FIRST || p->run == 0 || p->entropy.mcus_left == 0)
		return false;
	return kind == AC_FIRST || !(*p->mask & band_of(in));
}

INLINE boolean decode_mcu(j_decompress_ptr in, JBLOCKROW *blocks, enum kind kind,
                          uint64_t (*place_after)(uint64_t, unsigned))
{
	struct progressive *p = (struct progressive *)(void *)in->entropy;
	struct entropy *e = &p->entropy;

	if (e->fault)
		return TRUE;
	if (is_skipped(in, p, kind)) {
		p->run--;
		e->mcus_left--;
	} else {
		unsigned restarts = e->restarts;

		if (!entropy_mcu_begin(in, e))
			return TRUE;
		if (e->restarts != restarts)
			p->run = 0;
		if (!decode_blocks(in, p, blocks, kind, place_after))
			e->fault = ENTROPY_BAD_CODE;
	}
	if (kind >= AC_FIRST)
		p->mask++;
	if (--p->mcus_left == 0)
		entropy_check(in, true);
	return TRUE;
}

#define ON_MCU(name, kind, place_after, target)                            \
	target static boolean name(j_decompress_ptr in, JBLOCKROW *blocks) \
	{                                                                  \
		return decode_mcu(in, blocks, kind, place_after);          \
	}
#define ON_MCUS(suffix, place_after, target)                         \
	ON_MCU(on_dc_first##suffix, DC_FIRST, place_after, target)   \
	ON_MCU(on_dc_refine##suffix, DC_REFINE, place_after, target) \
	ON_MCU(on_ac_first##suffix, AC_FIRST, place_after, target)   \
	ON_MCU(on_ac_refine##suffix, AC_REFINE, place_after, target)

ON_MCUS(, bit_after, )
#ifdef __x86_64__
ON_MCUS(_bmi2, bit_after_bmi2, BMI2)

/* The first two generations of Zen have a slow pdep. */
static bool has_fast_bmi2(void)
{
	return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
	       __builtin_cpu_supports("popcnt") && !__builtin_cpu_is("znver1") &&
	       !__builtin_cpu_is("znver2");
}
#endif

static boolean (*method_of(enum kind kind))(j_decompress_ptr, JBLOCKROW *)
{
	static boolean (*const plain[])(j_decompress_ptr,
	                                JBLOCKROW *) = { on_dc_first, on_dc_refine, on_ac_first,
		                                         on_ac_refine };
#ifdef __x86_64__
	static boolean (*const bmi2[])(j_decompress_ptr,
	                               JBLOCKROW *) = { on_dc_first_bmi2, on_dc_refine_bmi2,
		                                        on_ac_first_bmi2, on_ac_refine_bmi2 };

	if (has_fast_bmi2())
		return bmi2[kind];
#endif
	return plain[kind];
}

/* Begins a scan, whose parameters libjpeg has checked. */
static void scan_begin(j_decompress_ptr in, struct progressive *p)
{
	bool is_dc = in->Ss == 0, is_first = in->Ah == 0;

	p->mcus_left = (uint64_t)in->MCUs_per_row * in->MCU_rows_in_scan;
	p->run = 0;
	p->mask = p->masks[in->cur_comp_info[0]->component_index];
	p->entropy.methods.decode_mcu = method_of(is_dc ? (is_first ? DC_FIRST : DC_REFINE)
	                                                : (is_first ? AC_FIRST : AC_REFINE));
	for (int i = 0; i < in->comps_in_scan && !(is_dc && !is_first); i++) {
		const jpeg_component_info *ci = in->cur_comp_info[i];

		table_make(&p->table[i], is_dc ? in->dc_huff_tbl_ptrs[ci->dc_tbl_no]
		                               : in->ac_huff_tbl_ptrs[ci->ac_tbl_no]);
	}
	entropy_scan_begin(in, &p->entropy);
}

static void on_start_pass(j_decompress_ptr in)
{
	struct progressive *p = (struct progressive *)(void *)in->entropy;

	in->entropy = p->theirs;
	p->theirs->start_pass(in);
	in->entropy = &p->entropy.methods;
	scan_begin(in, p);
}

/* ---- life ---- */

static size_t mask_bytes(const jpeg_component_info *ci)
{
	return (size_t)ci->width_in_blocks * ci->height_in_blocks * sizeof(uint64_t);
}

static size_t own_bytes(const struct jpeg_decompress_struct *in)
{
	return sizeof(struct progressive) + (size_t)in->num_components * sizeof(struct scan_table);
}

size_t entropy_progressive_bytes(const struct jpeg_decompress_struct *in)
{
	size_t bytes = own_bytes(in);

	/* libjpeg_pool.c takes a buffer for each, with one line of its own */
	for (int c = 0; c < in->num_components; c++)
		bytes += pool_size(CACHE_LINE + mask_bytes(&in->comp_info[c]));
	return bytes;
}

void entropy_progressive_start(j_decompress_ptr in)
{
	struct progressive *p = in->mem->alloc_large((j_common_ptr)in, JPOOL_IMAGE, own_bytes(in));

	p->theirs = in->entropy;
	p->entropy.methods = *in->entropy;
	p->entropy.methods.start_pass = on_start_pass;
	for (int c = 0; c < in->num_components; c++) {
		size_t bytes = mask_bytes(&in->comp_info[c]);

		p->masks[c] = in->mem->alloc_large((j_common_ptr)in, JPOOL_IMAGE, bytes);
		memset(p->masks[c], 0, bytes);
	}
	in->entropy = &p->entropy.methods;
	scan_begin(in, p);
}
#endif
