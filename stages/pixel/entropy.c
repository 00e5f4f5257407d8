/*
 * entropy.c - decodes MCUs from a window of data without stuffing.
 *
 * The window has more bytes than the largest MCU needs, so that an MCU is decoded without a test
 * for the end. Behind the last byte before a marker it has zeros; the bits that an MCU has used are
 * compared with those that there are before the next one. The bit buffer is in registers while an
 * MCU is decoded: no address of it leaves the function.
 */
#include "entropy.h"

#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "entropy_private.h"
#include "kernel.h"

#if LIBJPEG_HAS_PRIVATE
/* Two tables for the codes of a file take 10 us, which 3 KB of data save. */
#define OWN_TABLES_BYTES_MIN 4096
#define LOOK_UPS 5 /* that the bit buffer has bits for */

static_assert(LOOK_UPS * ENTROPY_AC_BITS <= 56, "a full buffer has at least 56 bits");
static_assert(WINDOW_BYTES > 2 * MCU_BYTES, "the window is not copied for every MCU");

/* ---- window ---- */

/* Copies bytes until the window is full or has all before the next marker. Two bytes of 0xff and a
 * zero are not data: libjpeg returns different blocks for them. Returns the first byte that is not
 * copied. */
static const uint8_t *copy_data(struct entropy *e, const uint8_t *from, const uint8_t *from_end)
{
	const uint8_t *full = e->window + WINDOW_BYTES;

	while (e->end < full) {
		size_t room = (size_t)(full - e->end), left = (size_t)(from_end - from);
		size_t n = left < room ? left : room;
		const uint8_t *found = memchr(from, 0xff, n), *p;

		n = found ? (size_t)(found - from) : n;
		memcpy(e->end, from, n);
		e->end += n;
		from += n;
		if (!found && from < from_end)
			continue;
		for (p = from; p < from_end && *p == 0xff;)
			p++;
		if (p - from != 1 || p == from_end || *p != 0) {
			e->is_last = true;
			e->marker = p == from_end ? 0 : *p == 0 ? 0xff : *p;
			break;
		}
		*e->end++ = 0xff;
		from = p + 1;
	}
	return from;
}

static void window_fill(j_decompress_ptr in, struct entropy *e)
{
	const uint8_t *from = in->src->next_input_byte, *end = from + in->src->bytes_in_buffer;
	size_t kept = (size_t)(e->end - e->bits.next);

	memmove(e->window, e->bits.next, kept);
	e->bits.next = e->window;
	e->end = e->window + kept;
	in->src->next_input_byte = copy_data(e, from, end);
	in->src->bytes_in_buffer = (size_t)(end - in->src->next_input_byte);
	if (e->is_last)
		memset(e->end, 0, MCU_BYTES);
	e->low = e->end - e->window > MCU_BYTES ? e->end - MCU_BYTES : e->window;
}

/* Returns the number of unused bits, which is negative if more were used than there are. */
static ptrdiff_t bits_left(const struct entropy *e)
{
	return (e->end - e->bits.next) * 8 + (ptrdiff_t)(e->bits.count & 63);
}

static enum entropy_end check_length(const struct entropy *e)
{
	bool is_short = e->is_last && bits_left(e) < 0;

	return !is_short ? ENTROPY_GOOD : e->marker ? ENTROPY_SHORT : ENTROPY_CUT;
}

static void segment_begin(j_decompress_ptr in, struct entropy *e)
{
	e->bits = (struct bits){ .next = e->window };
	e->end = e->window;
	e->is_last = false;
	e->mcus_left = in->restart_interval ? in->restart_interval : UINT32_MAX;
	memset(e->dc, 0, sizeof e->dc);
	window_fill(in, e);
}

/* Goes on behind the restart marker that is due. */
static enum entropy_end restart(j_decompress_ptr in, struct entropy *e)
{
	struct jpeg_source_mgr *src = in->src;

	if (!e->is_last)
		window_fill(in, e);
	if (check_length(e))
		return check_length(e);
	if (bits_left(e) >= 8)
		return ENTROPY_LEFT_OVER;
	if (!e->is_last || e->marker != JPEG_RST0 + e->restarts % 8)
		return ENTROPY_OUT_OF_ORDER;
	do
		src->bytes_in_buffer--;
	while (*src->next_input_byte++ == 0xff);
	e->restarts++;
	segment_begin(in, e);
	return ENTROPY_GOOD;
}

bool entropy_mcu_begin(j_decompress_ptr in, struct entropy *e)
{
	if (e->mcus_left == 0)
		e->fault = restart(in, e);
	else if (e->bits.next > e->low && e->is_last)
		e->fault = check_length(e);
	else if (e->bits.next > e->low)
		window_fill(in, e);
	e->mcus_left--;
	return e->fault == ENTROPY_GOOD;
}

void entropy_scan_begin(j_decompress_ptr in, struct entropy *e)
{
	e->fault = ENTROPY_GOOD;
	e->restarts = 0;
	segment_begin(in, e);
}

/* ---- blocks ---- */

/* Reads a code that the entry does not have. Returns run << 4 | size, or -1 without such a code. */
INLINE int long_code(struct bits *b, uint64_t entry, const struct entropy_codes *codes)
{
	unsigned found;

	bits_fill(b);
	if (entry >> 24 & ENTROPY_LONG && entry & 0xff) {
		bits_drop(b, entry);
		return (int)((entry >> 8 & 15) << 4 | (entry >> 16 & 15));
	}
	found = entropy_code_find(codes, (unsigned)(b->buffer >> 48));
	bits_drop(b, found >> 8);
	return found ? (int)(found & 0xff) : -1;
}

/* Decodes the difference of the DC coefficient, and perhaps an AC coefficient. Returns the number
 * of coefficients until then, with ENTROPY_END if they are all, or -1. */
INLINE int decode_dc(struct bits *b, const struct entropy_table *t, JCOEF *block)
{
	bits_fill(b);
	uint64_t e = t->dc[b->buffer >> (64 - ENTROPY_DC_BITS)];

	if (__builtin_expect(e >> 24 & ENTROPY_LONG, 0)) {
		int code = long_code(b, e, &t->dc_codes);

		block[0] = (JCOEF)bits_value(b, (unsigned)code & 15);
		return code < 0 ? -1 : 1;
	}
	block[jpeg_natural_order[e >> 16 & 0xff]] = (JCOEF)(e >> 48);
	block[0] = (JCOEF)(e >> 32);
	bits_drop(b, e);
	return (int)(e >> 24 & 0xff);
}

/* Decodes a single AC symbol. Returns the number of coefficients until then, or -1. */
INLINE int decode_long(struct bits *b, uint64_t e, const struct entropy_table *t, JCOEF *block,
                       unsigned n)
{
	int code = long_code(b, e, &t->ac_codes);
	unsigned to = n + ((unsigned)code >> 4), size = (unsigned)code & 15;

	if (code >= 0 && size == 0 && code != 0xf0)
		return DCTSIZE2;
	if (code < 0 || to >= DCTSIZE2)
		return -1;
	if (size > 0)
		block[jpeg_natural_order[to]] = (JCOEF)bits_value(b, size);
	return (int)to + 1;
}

/* Decodes a block of zeros, with the difference for its DC coefficient. */
INLINE bool decode_block(struct bits *b, const struct entropy_table *t, JCOEF *block)
{
	const int *order = jpeg_natural_order;
	int first = decode_dc(b, t, block);
	unsigned n = (unsigned)first, next = n;
	uint64_t e = 0;

	while (next < DCTSIZE2) {
		bits_fill(b);
		KERNEL_UNROLL(5)
		for (int i = 0; i < LOOK_UPS; i++) {
			e = t->ac[b->buffer >> (64 - ENTROPY_AC_BITS)];
			next = n + (unsigned)(e >> 24 & 0xff);
			if (__builtin_expect(next >= DCTSIZE2, 0))
				break;
			block[order[n + (e >> 8 & 0xff)]] = (JCOEF)(e >> 32);
			block[order[n + (e >> 16 & 0xff)]] = (JCOEF)(e >> 48);
			bits_drop(b, e);
			n = next;
		}
		if (next < DCTSIZE2)
			continue;
		if (!(next & ENTROPY_LONG)) {
			block[order[n + (e >> 8 & 0xff)]] = (JCOEF)(e >> 32);
			bits_drop(b, e);
			return true;
		}
		first = decode_long(b, e, t, block, n);
		n = next = (unsigned)first;
	}
	return first >= 0;
}

INLINE boolean decode_mcu(j_decompress_ptr in, JBLOCKROW *blocks)
{
	struct entropy *e = (struct entropy *)(void *)in->entropy;

	if (e->fault || !entropy_mcu_begin(in, e))
		return TRUE;
	struct bits b = e->bits;

	for (int i = 0; i < in->blocks_in_MCU; i++) {
		JCOEF *block = blocks[i][0];
		int c = in->MCU_membership[i];

		if (!decode_block(&b, e->table[c], block)) {
			e->fault = ENTROPY_BAD_CODE;
			return TRUE;
		}
		e->dc[c] += (unsigned)block[0];
		block[0] = (JCOEF)e->dc[c];
	}
	e->bits = b;
	return TRUE;
}

static boolean on_mcu(j_decompress_ptr in, JBLOCKROW *blocks)
{
	return decode_mcu(in, blocks);
}

#ifdef __x86_64__
/* Shifts by a variable count are faster: 8 % of the whole decoding. */
__attribute__((target("bmi,bmi2"))) static boolean on_mcu_bmi2(j_decompress_ptr in,
                                                               JBLOCKROW *blocks)
{
	return decode_mcu(in, blocks);
}
#endif

/* ---- life ---- */

/* The numbers of the tables are checked by jpeg_start_decompress() only. */
static const struct entropy_table *standard_of(const struct jpeg_decompress_struct *in,
                                               const jpeg_component_info *ci)
{
	int i = ci->dc_tbl_no, k = ci->ac_tbl_no;
	const JHUFF_TBL *dc = i < NUM_HUFF_TBLS ? in->dc_huff_tbl_ptrs[i] : NULL;
	const JHUFF_TBL *ac = k < NUM_HUFF_TBLS ? in->ac_huff_tbl_ptrs[k] : NULL;

	return dc && ac ? entropy_table_standard(dc, ac) : NULL;
}

/* Returns the first component with the same tables as component c. */
static int sharer(const struct jpeg_decompress_struct *in, int c)
{
	jpeg_component_info *const *ci = in->cur_comp_info;
	int i = 0;

	while (ci[i]->dc_tbl_no != ci[c]->dc_tbl_no || ci[i]->ac_tbl_no != ci[c]->ac_tbl_no)
		i++;
	return i;
}

/* Returns the number of tables that are made for this file. */
static size_t own_tables(const struct jpeg_decompress_struct *in)
{
	size_t n = 0;

	for (int c = 0; c < in->comps_in_scan; c++)
		n += sharer(in, c) == c && !standard_of(in, in->cur_comp_info[c]);
	return n;
}

bool entropy_suits(j_decompress_ptr in)
{
	if (!libjpeg_private_is_usable() || in->arith_code || in->data_precision != 8)
		return false;
	return in->progressive_mode ||
	       (!jpeg_has_multiple_scans(in) &&
	        (in->src->bytes_in_buffer >= OWN_TABLES_BYTES_MIN || own_tables(in) == 0));
}

size_t entropy_bytes(const struct jpeg_decompress_struct *in)
{
	if (in->progressive_mode)
		return entropy_progressive_bytes(in);
	return sizeof(struct entropy) + own_tables(in) * sizeof(struct entropy_table);
}

static void start_sequential(j_decompress_ptr in)
{
	struct entropy *e = in->mem->alloc_large((j_common_ptr)in, JPOOL_IMAGE, sizeof *e);
	struct entropy_table *t;

	e->methods = *in->entropy;
	e->methods.decode_mcu = on_mcu;
#ifdef __x86_64__
	if (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
		e->methods.decode_mcu = on_mcu_bmi2;
#endif
	for (int c = 0; c < in->comps_in_scan; c++) {
		const jpeg_component_info *ci = in->cur_comp_info[c];
		int same = sharer(in, c);

		e->table[c] = same < c ? e->table[same] : standard_of(in, ci);
		if (e->table[c])
			continue;
		e->table[c] = t = in->mem->alloc_large((j_common_ptr)in, JPOOL_IMAGE, sizeof *t);
		entropy_table_make(t, in->dc_huff_tbl_ptrs[ci->dc_tbl_no],
		                   in->ac_huff_tbl_ptrs[ci->ac_tbl_no]);
	}
	entropy_scan_begin(in, e);
	in->entropy = &e->methods;
}

void entropy_start(j_decompress_ptr in)
{
	assert(libjpeg_private_is_usable());
	if (in->progressive_mode)
		entropy_progressive_start(in);
	else
		start_sequential(in);
}

enum entropy_end entropy_check(j_decompress_ptr in, bool is_over)
{
	struct entropy *e = (struct entropy *)(void *)in->entropy;

	if (!e->fault && is_over)
		e->fault = check_length(e);
	if (e->fault || !is_over)
		return e->fault;
	/* back over the bytes in the window, each of which may be stuffed */
	for (ptrdiff_t left = bits_left(e) / 8; left > 0; left--) {
		const uint8_t *p = in->src->next_input_byte;
		size_t size = p[-1] == 0 && p[-2] == 0xff ? 2 : 1;

		in->src->next_input_byte -= size;
		in->src->bytes_in_buffer += size;
	}
	return ENTROPY_GOOD;
}
#endif
