/*
 * mcu.c - the notes of blocks, the kernels of the instruction sets, and the choice among them.
 *
 * With AVX2 two blocks are made at once, and their notes without a branch for each coefficient. The
 * others transform one block at once and note it in plain C, as AVX2 does with large coefficients.
 */
#include "mcu.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernel.h"

#define ZIGZAG(OF)                                                                  \
	OF(0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5),                 \
		OF(12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28),   \
		OF(35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51), \
		OF(58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63)
#define AS_THEY_ARE(...) __VA_ARGS__

const uint8_t mcu_zigzag[MCU_COEFFICIENTS] = { ZIGZAG(AS_THEY_ARE) };

/* The constants of jfdctint.c, jidctint.c and jidctred.c, in 1/2^DCT_BITS. */
enum { DCT_BITS = 13 };
enum { F_0_211 = 1730, F_0_298 = 2446, F_0_390 = 3196, F_0_509 = 4176, F_0_541 = 4433 };
enum { F_0_601 = 4926, F_0_720 = 5906, F_0_765 = 6270, F_0_850 = 6967, F_0_899 = 7373 };
enum { F_1_061 = 8697, F_1_175 = 9633, F_1_272 = 10426, F_1_451 = 11893, F_1_501 = 12299 };
enum { F_1_847 = 15137, F_1_961 = 16069, F_2_053 = 16819, F_2_172 = 17799, F_2_562 = 20995 };
enum { F_3_072 = 25172, F_3_624 = 29692 };

/* Fraction bits of the weights of splines, and of sums of columns. */
enum { WEIGHT_BITS = 14, COLUMN_BITS = 5 };

/* As compute_reciprocal() of libjpeg-turbo's jcdctmgr.c: the quotients are rounded like there. */
void mcu_divisors_make(struct mcu_divisors *d, const uint8_t *quantum)
{
	for (int i = 0; i < MCU_COEFFICIENTS; i++) {
		unsigned by = quantum[i] * 8U, half = by / 2;
		unsigned shift = 16 + 31 - (unsigned)__builtin_clz(by);
		unsigned reciprocal = (1U << shift) / by, rest = (1U << shift) % by;

		if (rest == 0) {
			reciprocal /= 2;
			shift--;
		} else if (rest <= half) {
			half++;
		} else {
			reciprocal++;
		}
		d->reciprocal[i] = (uint16_t)reciprocal;
		d->correction[i] = (uint16_t)half;
		d->scale[i] = (uint16_t)(1U << (32 - shift));
	}
}

/* ---- splines ---- */

static const struct mcu_spline splines[] = {
	{ 2, 8, 4, 59, { 15,    2248, 9338, 11570, 21,    3023, 10628, 5633,  20,   2597, 5011,
	                 -7627, 18,   2013, 350,   -5724, 15,   1403,  -1403, -15,  12,   873,
	                 -1167, 697,  8,    475,   -557,  73,   4,     201,   -205, -6 } },
	{ 4, 6, 2, 26, { 53,   4608, 18509, 0,     73,   5364, 9932, 0,    68,  3027, -3095,
	                 0,    59,   1295,  -1423, 0,    49,   577,  -626, 0,   37,   311,
	                 -297, 0,    25,    154,   -179, 0,    13,   64,   -48, 0 } },
	{ 8,
	  5,
	  1,
	  8,
	  { 117, 9157, 13897, 0, 152, 6293, 0, 0, 118, 1144, -1262, 0, 78, 534, 0, 0,
	    45,  181,  -226,  0, 25,  156,  0, 0, 13,  61,   -74,   0, 6,  39,  0, 0 } },
};

const struct mcu_spline *mcu_spline_of(int step)
{
	return step > 0 ? &splines[step / 4] : NULL;
}

int mcu_knots(const struct mcu_spline *spline, int samples)
{
	return (samples + MCU_BLOCK - 1) / MCU_BLOCK * spline->per_block + 4;
}

/* ---- notes ---- */

/* Two transformed blocks. Kernels without AVX2 have only the coefficients. */
struct prepared {
	_Alignas(32) int16_t coefficient[2][MCU_COEFFICIENTS]; /* natural order */
	/* For each place in zigzag order the note of its coefficient, with 16 times the place added
	 * to the symbol. Place 64 is read and ignored. */
	uint32_t note[2][MCU_COEFFICIENTS + 8];
	uint64_t mask[2]; /* places of AC coefficients that are not 0 */
	int dc[2];
	bool is_large; /* an AC coefficient has more than 7 bits: coefficient[], not note[], is set
	                */
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

static const uint64_t zigzag_bits[MCU_COEFFICIENTS / 4][16] = {
	FOUR(0, 1, 5, 6),     FOUR(14, 15, 27, 28), FOUR(2, 4, 7, 13),    FOUR(16, 26, 29, 42),
	FOUR(3, 8, 12, 17),   FOUR(25, 30, 41, 43), FOUR(9, 11, 18, 24),  FOUR(31, 40, 44, 53),
	FOUR(10, 19, 23, 32), FOUR(39, 45, 52, 54), FOUR(20, 22, 33, 38), FOUR(46, 51, 55, 60),
	FOUR(21, 34, 37, 47), FOUR(50, 56, 59, 61), FOUR(35, 36, 48, 49), FOUR(57, 58, 62, 63),
};

/* Returns which of 16 coefficients are not zero. */
static inline unsigned nonzero_16(const int16_t *b)
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
static inline uint64_t nonzero_zigzag(const int16_t *b)
{
	uint64_t zigzag = 0;

	for (int i = 0; i < MCU_COEFFICIENTS / 4; i += 4) {
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
	return ((uint32_t)(v - (v < 0)) & (UINT32_C(0x7fffffff) >> zeros)) << 16;
}

static inline uint32_t *note_dc(int dc, unsigned table, int *last_dc, uint32_t *n)
{
	unsigned size;
	uint32_t bits = note_bits(dc - *last_dc, &size);

	*last_dc = dc;
	*n = bits | (table + size);
	return n + 1;
}

/* Notes the AC coefficients of a block at the places `left`, without the end of the block. `table`
 * is the offset of the AC table, as it is below. */
static uint32_t *note_ac(const int16_t *b, unsigned table, uint64_t left, uint32_t *n)
{
	unsigned at = 0, size;

	for (; left; left &= left - 1) {
		unsigned to = (unsigned)__builtin_ctzll(left), run = to - at - 1;
		uint32_t bits = note_bits(b[mcu_zigzag[to]], &size);

		for (; run > 15; run -= 16)
			*n++ = table + 0xf0;
		*n++ = bits | (table + (run << 4 | size));
		at = to;
	}
	return n;
}

/* Ends a block, unless its last coefficient has been noted. */
static inline uint32_t *note_end(unsigned table, uint64_t mask, uint32_t *n)
{
	*n = table;
	return n + !(mask >> (MCU_COEFFICIENTS - 1));
}

/* Notes a block of luma beside or below the picture. It repeats the mean of the block before. */
static inline uint32_t *note_like_last(uint32_t *n)
{
	*n++ = 0;
	*n++ = HUFFMAN_SYMBOLS;
	return n;
}

/* Notes one block from its coefficients. */
static uint32_t *note_block(const struct prepared *o, int i, unsigned table, int *last_dc,
                            uint32_t *n)
{
	const int16_t *b = o->coefficient[i];
	uint64_t mask = nonzero_zigzag(b) & ~UINT64_C(1);

	n = note_dc(b[0], table, last_dc, n);
	n = note_ac(b, table + HUFFMAN_SYMBOLS, mask, n);
	return note_end(table + HUFFMAN_SYMBOLS, mask, n);
}

/* ---- inverse DCT of few samples ---- */

/* Returns a sample, with the limits of libjpeg for values that no picture has. */
static inline uint8_t sample_of(int v)
{
	v = ((v + 512) & 1023) - 512 + 128;
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void inverse_1(const int16_t *a, const int16_t *b, const int16_t *quantum, uint8_t *out,
                      ptrdiff_t stride)
{
	(void)stride;
	out[0] = sample_of((a[0] * quantum[0] + 4) >> 3);
	out[1] = sample_of((b[0] * quantum[0] + 4) >> 3);
}

/* Stores 2 x 2 samples of a block. For every line there are two elements of each of the three
 * vectors: the products with columns 1 and 3, with 5 and 7, and with column 0. */
static inline void put_2(uint8_t *out, ptrdiff_t stride, const void *of_line)
{
	const uint32_t *sums = of_line;

	for (int i = 0; i < 2; i++) {
		uint32_t odd = sums[2 * i] + sums[4 + 2 * i + 1],
			 even = sums[8 + 2 * i] + (1U << (DCT_BITS + 6));

		for (int k = 0; k < 2; k++) {
			int v = ((int32_t)(k ? even - odd : even + odd) >> (DCT_BITS + 7)) + 128;

			out[i * stride + k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
		}
	}
}

/* ---- vectors of the compiler, for every machine ---- */

typedef int16_t words8 __attribute__((vector_size(16), may_alias));
typedef uint16_t unsigned8 __attribute__((vector_size(16)));
typedef int16_t words4 __attribute__((vector_size(8)));
typedef uint16_t unsigned4 __attribute__((vector_size(8)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef uint32_t naturals4 __attribute__((vector_size(16)));

#define LOW_HALF(v) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define HIGH_HALF(v) __builtin_shufflevector(v, v, 4, 5, 6, 7)
#define WHOLE(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)
#define INT_HALF(v, half) ((naturals4) __builtin_convertvector(half(v), ints4))

static inline words8 load_words(const uint8_t *from)
{
	bytes8 samples;

	memcpy(&samples, from, sizeof(samples));
	return __builtin_convertvector(samples, words8);
}

/* Returns the upper words of the products of words without signs. */
static inline words8 high_products(words8 a, const uint16_t *b)
{
	unsigned8 u = (unsigned8)a, v;

	memcpy(&v, b, sizeof(v));
	naturals4 low = __builtin_convertvector(LOW_HALF(u), naturals4) *
	                __builtin_convertvector(LOW_HALF(v), naturals4),
		  high = __builtin_convertvector(HIGH_HALF(u), naturals4) *
	                 __builtin_convertvector(HIGH_HALF(v), naturals4);

	return (words8)WHOLE(__builtin_convertvector(low >> 16, unsigned4),
	                     __builtin_convertvector(high >> 16, unsigned4));
}

static inline words8 scaled(words8 v, const struct mcu_divisors *by, int row)
{
	words8 sign = v >> 15, correction;

	memcpy(&correction, by->correction + 8 * row, sizeof(correction));
	words8 q = high_products((v ^ sign) - sign + correction, by->reciprocal + 8 * row);

	return (high_products(q, by->scale + 8 * row) ^ sign) - sign;
}

static inline void keep(struct prepared *o, int block, const words8 r[8])
{
	memcpy(o->coefficient[block], r, sizeof(o->coefficient[block]));
}

static inline words8 words_at(const int16_t *from)
{
	words8 v;

	memcpy(&v, from, sizeof(v));
	return v;
}

/* Returns the words, limited to -128..127, plus 128. */
static inline bytes8 samples_of(words8 v)
{
	words8 is_low = v<-128, is_high = v> 127;

	v = (words8)(((((unsigned8)v + 128) & ~(unsigned8)is_low) | (unsigned8)is_high) & 255);
	return __builtin_convertvector(v, bytes8);
}

static inline void put_8(uint8_t *out, ptrdiff_t stride, words8 v, words8 w)
{
	bytes8 upper = samples_of(v), lower = samples_of(w);

	memcpy(out, &upper, sizeof(upper));
	memcpy(out + stride, &lower, sizeof(lower));
}

static inline void put_4(uint8_t *out, ptrdiff_t stride, words8 v, words8 w)
{
	bytes8 b[2] = { samples_of(v), samples_of(w) };

	for (int i = 0; i < 4; i++)
		memcpy(out + i * stride, (const uint8_t *)b + 4 * i, 4);
}

#define NAME plain
#define TARGET
#define LANES 8
#define TIMES(f) ((naturals4){ 0 } + (uint32_t)(f))
#define DOT_OF(a, b, f, g, half) \
	((ints4)(INT_HALF(a, half) * TIMES(f) + INT_HALF(b, half) * TIMES(g)))
#define DOT_LOW(a, b, f, g) DOT_OF(a, b, f, g, LOW_HALF)
#define DOT_HIGH(a, b, f, g) DOT_OF(a, b, f, g, HIGH_HALF)
#define NARROW(low, high) \
	WHOLE(__builtin_convertvector(low, words4), __builtin_convertvector(high, words4))
#define SCALED scaled
#include "mcu_vector.h"
#undef DOT_OF

#if defined(__x86_64__)

/* Two factors as the words of 32 bits. */
#define FACTORS(f, g) ((int)((uint32_t)(uint16_t)(g) << 16 | (uint16_t)(f)))

/* ---- SSE2, which every x86-64 has ---- */

#define PART(d, what, i) _mm_load_si128((const void *)((d)->what + 8 * (i)))

static inline words8 scaled_sse2(words8 v, const struct mcu_divisors *d, int i)
{
	words8 sign = v >> 15;
	__m128i q = (__m128i)((v ^ sign) - sign + (words8)PART(d, correction, i));

	q = _mm_mulhi_epu16(_mm_mulhi_epu16(q, PART(d, reciprocal, i)), PART(d, scale, i));
	return ((words8)q ^ sign) - sign;
}

#define NAME sse2
#define TARGET
#define LANES 8
#define DOT_OF(v, f, g) (ints4) _mm_madd_epi16((__m128i)(v), _mm_set1_epi32(FACTORS(f, g)))
#define DOT_LOW(a, b, f, g) DOT_OF(LOW_WORDS(a, b), f, g)
#define DOT_HIGH(a, b, f, g) DOT_OF(HIGH_WORDS(a, b), f, g)
#define NARROW(low, high) (words8) _mm_packs_epi32((__m128i)(low), (__m128i)(high))
#define SCALED scaled_sse2
#include "mcu_vector.h"
#undef DOT_OF

/* ---- AVX2: one block in each half of a vector ---- */

#define AVX2 __attribute__((target("avx2,bmi,popcnt")))

/* For 16 places in zigzag order, where they are in each quarter of a block. */
#define IN(n, quarter) ((n) / 16 == (quarter) ? (n) % 16 : 0x80)
#define QUARTER(q, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                              \
	{                                                                                       \
		IN(a, q), IN(b, q), IN(c, q), IN(d, q), IN(e, q), IN(f, q), IN(g, q), IN(h, q), \
			IN(i, q), IN(j, q), IN(k, q), IN(l, q), IN(m, q), IN(n, q), IN(o, q),   \
			IN(p, q)                                                                \
	}
#define QUARTERS(...)                                                                      \
	{                                                                                  \
		QUARTER(0, __VA_ARGS__), QUARTER(1, __VA_ARGS__), QUARTER(2, __VA_ARGS__), \
			QUARTER(3, __VA_ARGS__)                                            \
	}

static const _Alignas(16) uint8_t zigzag_in[4][4][16] = { ZIGZAG(QUARTERS) };

/* Bits of a number from 0 to 127: by its lower 4 bits, and by its upper ones. */
static const _Alignas(16) uint8_t size_of_low[16] = {
	0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4
};
static const _Alignas(16) uint8_t size_of_high[16] = { 0, 5, 6, 6, 7, 7, 7, 7 };
static const _Alignas(16) uint8_t ones[16] = { 0, 1, 3, 7, 15, 31, 63, 127 };

AVX2 static inline __m256i both(const void *half)
{
	return _mm256_broadcastsi128_si256(_mm_load_si128(half));
}

/* Returns 16 places of both blocks, from the first `count` quarters p of the blocks. */
AVX2 static inline __m256i in_zigzag(const __m256i p[4], int group, int count)
{
	__m256i v = _mm256_setzero_si256();

	KERNEL_UNROLL(4)
	for (int q = 0; q < count; q++)
		v = _mm256_or_si256(v, _mm256_shuffle_epi8(p[q], both(zigzag_in[group][q])));
	return v;
}

/* Makes the notes of 16 places of both blocks. */
AVX2 static inline void note_places(struct prepared *o, int group, unsigned table, __m256i v)
{
	const __m256i zero = _mm256_setzero_si256(), nibble = _mm256_set1_epi8(15);
	__m256i a = _mm256_abs_epi8(v);
	__m256i low = _mm256_shuffle_epi8(both(size_of_low), _mm256_and_si256(a, nibble));
	__m256i high = _mm256_shuffle_epi8(both(size_of_high),
	                                   _mm256_and_si256(_mm256_srli_epi16(a, 4), nibble));
	__m256i size = _mm256_max_epu8(low, high);
	__m256i bits = _mm256_and_si256(_mm256_add_epi8(v, _mm256_cmpgt_epi8(zero, v)),
	                                _mm256_shuffle_epi8(both(ones), size));
	__m256i first = _mm256_set1_epi16((short)(table + 256 * (unsigned)group));
	__m256i place = _mm256_add_epi16(
		first, _mm256_broadcastsi128_si256(_mm_setr_epi16(0, 16, 32, 48, 64, 80, 96, 112)));

	KERNEL_UNROLL(2)
	for (int i = 0; i < 2; i++) {
		__m256i s = i ? _mm256_unpackhi_epi8(size, zero) : _mm256_unpacklo_epi8(size, zero);
		__m256i b = i ? _mm256_unpackhi_epi8(bits, zero) : _mm256_unpacklo_epi8(bits, zero);
		uint32_t *left = o->note[0] + 16 * group + 8 * i,
			 *right = o->note[1] + 16 * group + 8 * i;

		s = _mm256_add_epi16(_mm256_add_epi16(s, place),
		                     _mm256_set1_epi16((short)(128 * i)));
		__m256i n = _mm256_unpacklo_epi16(s, b), next = _mm256_unpackhi_epi16(s, b);

		_mm256_storeu_si256((void *)left, _mm256_permute2x128_si256(n, next, 0x20));
		_mm256_storeu_si256((void *)right, _mm256_permute2x128_si256(n, next, 0x31));
	}
}

/* Only the first `count` rows and columns, 4 or 8, are not 0. */
AVX2 static inline __attribute__((always_inline)) void keep_avx2(struct prepared *o, unsigned table,
                                                                 const __m256i r[8], int count)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i p[4], v[4], any = _mm256_blend_epi16(_mm256_abs_epi16(r[0]), zero, 1);
	uint64_t places[4] = { 0 };

	o->dc[0] = (int16_t)_mm256_extract_epi16(r[0], 0);
	o->dc[1] = (int16_t)_mm256_extract_epi16(r[0], 8);
	KERNEL_UNROLL(7)
	for (int i = 1; i < count; i++)
		any = _mm256_or_si256(any, _mm256_abs_epi16(r[i]));
	o->is_large = !_mm256_testz_si256(any, _mm256_set1_epi16((short)0xff80));
	KERNEL_UNROLL(4)
	for (int i = 0; i < count / 2; i++)
		p[i] = _mm256_packs_epi16(r[2 * i], r[2 * i + 1]);
	KERNEL_UNROLL(4)
	for (int i = 0; i < count / 2; i++) {
		v[i] = in_zigzag(p, i, count / 2);
		places[i] = ~(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v[i], zero));
	}
	for (int i = 0; i < 2; i++) {
		o->mask[i] = (places[0] >> 16 * i & 0xfffe) | (places[1] >> 16 * i & 0xffff) << 16 |
		             (places[2] >> 16 * i & 0xffff) << 32 |
		             (places[3] >> 16 * i & 0xffff) << 48;
	}
	if (__builtin_expect(o->is_large, 0)) {
		for (int i = 0; i < 8; i++) {
			memcpy(o->coefficient[0] + 8 * i, (const int16_t *)&r[i], 16);
			memcpy(o->coefficient[1] + 8 * i, (const int16_t *)&r[i] + 8, 16);
		}
		return;
	}
	note_places(o, 0, table + HUFFMAN_SYMBOLS, v[0]);
	note_places(o, 1, table + HUFFMAN_SYMBOLS, v[1]);
	if (count == 4 || !((o->mask[0] | o->mask[1]) >> 32))
		return;
	note_places(o, 2, table + HUFFMAN_SYMBOLS, v[2]);
	note_places(o, 3, table + HUFFMAN_SYMBOLS, v[3]);
}

/* Notes the places of a block with a run of more than 15 zeros. `before` is 16 times the place
 * after the last note. */
AVX2 static uint32_t *note_runs(const uint32_t *prepared, unsigned table, uint64_t left,
                                uint32_t *n)
{
	unsigned before = 16;

	for (; left; left &= left - 1) {
		unsigned to = (unsigned)_tzcnt_u64(left);

		for (; 16 * to - before > 255; before += 256)
			*n++ = table + 0xf0;
		*n++ = prepared[to] - before;
		before = 16 * to + 16;
	}
	return n;
}

/* Notes the places of a block, four at once: a branch for each would be mispredicted. */
AVX2 static inline uint32_t *note_fours(const uint32_t *prepared, uint64_t mask, uint32_t *n)
{
	unsigned before = 16;
	uint64_t left = mask;
	uint32_t *to = n;

	for (; left; to += 4) {
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++) {
			unsigned at = (unsigned)_tzcnt_u64(left); /* 64 after the last one */

			to[i] = prepared[at] - before;
			before = 16 * at + 16;
			left &= left - 1;
		}
	}
	return n + __builtin_popcountll(mask);
}

AVX2 static inline uint32_t *note_prepared(const struct prepared *o, int i, unsigned table,
                                           int *last_dc, uint32_t *n)
{
	uint64_t mask = o->mask[i], near = mask | 1;

	/* Places at most 16 behind a coefficient: those that need no run of zeros. */
	near |= near << 1;
	near |= near << 2;
	near |= near << 4;
	near |= near << 8;
	n = note_dc(o->dc[i], table, last_dc, n);
	table += HUFFMAN_SYMBOLS;
	if (__builtin_expect(o->is_large, 0))
		n = note_ac(o->coefficient[i], table, mask, n);
	else if (__builtin_expect((mask & ~(near << 1)) != 0, 0))
		n = note_runs(o->note[i], table, mask, n);
	else
		n = note_fours(o->note[i], mask, n);
	return note_end(table, mask, n);
}

AVX2 static inline __m256i scaled_avx2(__m256i v, const struct mcu_divisors *d, int i)
{
	__m256i q = _mm256_add_epi16(_mm256_abs_epi16(v), both(d->correction + 8 * i));

	q = _mm256_mulhi_epu16(q, both(d->reciprocal + 8 * i));
	return _mm256_sign_epi16(_mm256_mulhi_epu16(q, both(d->scale + 8 * i)), v);
}

/* Two lines of both blocks, which are the halves of the vectors. */
AVX2 static inline void put_8_avx2(uint8_t *out, ptrdiff_t stride, __m256i v, __m256i w)
{
	__m256i lines = _mm256_permute4x64_epi64(_mm256_packs_epi16(v, w), 0xd8);

	lines = _mm256_add_epi8(lines, _mm256_set1_epi8((char)0x80));
	_mm_storeu_si128((void *)out, _mm256_castsi256_si128(lines));
	_mm_storeu_si128((void *)(out + stride), _mm256_extracti128_si256(lines, 1));
}

AVX2 static inline void put_4_avx2(uint8_t *out, ptrdiff_t stride, __m256i v, __m256i w)
{
	const __m256i by_line = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i lines = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(v, w), by_line);
	uint64_t line[4];

	lines = _mm256_add_epi8(lines, _mm256_set1_epi8((char)0x80));
	_mm256_storeu_si256((void *)line, lines);
	for (int i = 0; i < 4; i++)
		memcpy(out + i * stride, &line[i], sizeof(line[i]));
}

/* The same of both blocks. */
AVX2 static inline void put_2_avx2(uint8_t *out, ptrdiff_t stride, const void *of_line)
{
	const __m256i *sums = of_line;
	__m256i odd = _mm256_add_epi32(sums[0], _mm256_srli_epi64(sums[1], 32));
	__m256i even = _mm256_add_epi32(sums[2], _mm256_set1_epi32(1 << (DCT_BITS + 6)));
	__m256i left = _mm256_add_epi32(even, odd), right = _mm256_sub_epi32(even, odd);
	__m256i v = _mm256_blend_epi32(left, _mm256_slli_epi64(right, 32), 0xaa);

	v = _mm256_srai_epi32(v, DCT_BITS + 7);
	v = _mm256_packs_epi32(v, v);
	v = _mm256_xor_si256(_mm256_packs_epi16(v, v), _mm256_set1_epi8((char)0x80));
	uint32_t a = (uint32_t)_mm256_extract_epi32(v, 0), b = (uint32_t)_mm256_extract_epi32(v, 4);
	uint32_t line[2] = { (a & 0xffff) | b << 16, a >> 16 | (b & 0xffff0000) };

	memcpy(out, &line[0], sizeof(line[0]));
	memcpy(out + stride, &line[1], sizeof(line[1]));
}

#define NAME avx2
#define TARGET AVX2
#define LANES 16
#define EIGHT(at) _mm_loadl_epi64((const void *)(at))
#define LOAD(a, b) (words_avx2) _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(EIGHT(a), EIGHT(b)))
#define LOW(a, b) (words_avx2) _mm256_unpacklo_epi16((__m256i)(a), (__m256i)(b))
#define HIGH(a, b) (words_avx2) _mm256_unpackhi_epi16((__m256i)(a), (__m256i)(b))
#define DOT_OF(v, f, g) \
	(ints_avx2) _mm256_madd_epi16((__m256i)(v), _mm256_set1_epi32(FACTORS(f, g)))
#define DOT_LOW(a, b, f, g) DOT_OF(LOW(a, b), f, g)
#define DOT_HIGH(a, b, f, g) DOT_OF(HIGH(a, b), f, g)
#define NARROW(low, high) (words_avx2) _mm256_packs_epi32((__m256i)(low), (__m256i)(high))
#define SCALED(v, d, i) (words_avx2) scaled_avx2((__m256i)(v), d, i)
#define KEEP(o, block, table, r, n) keep_avx2(o, table, (const __m256i *)(const void *)(r), n)
#define NOTE note_prepared
#define HALF_OF(at) _mm_loadu_si128((const void *)(at))
#define ROW(a, b) \
	(words_avx2) _mm256_inserti128_si256(_mm256_castsi128_si256(HALF_OF(a)), HALF_OF(b), 1)
#define PUT_8(out, stride, v, w) put_8_avx2(out, stride, (__m256i)(v), (__m256i)(w))
#define PUT_4(out, stride, v, w) put_4_avx2(out, stride, (__m256i)(v), (__m256i)(w))
#define PUT_2 put_2_avx2
#include "mcu_vector.h"

#endif

/* ---- the choice ---- */

const struct mcu_kernel *mcu_kernel_at(unsigned index)
{
	const struct mcu_kernel *usable[3];
	unsigned count = 0;

#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	    __builtin_cpu_supports("popcnt"))
		usable[count++] = &mcu_kernel_avx2;
	usable[count++] = &mcu_kernel_sse2;
#endif
	usable[count++] = &mcu_kernel_plain;
	return index < count ? usable[index] : NULL;
}
