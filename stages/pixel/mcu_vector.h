/*
 * mcu_vector.h - a kernel of mcu.h for one instruction set.
 *
 * mcu.c includes it once for each instruction set, so it has no include guard. The includer defines
 * the following; this file undefines them. All other macros are the same each time.
 *
 *	NAME                  of the instruction set
 *	TARGET                attribute of the functions
 *	LANES                 words of a vector: 8 for one block, 16 for two blocks
 *	DOT_LOW(a, b, f, g)   a * f + b * g in 32 bits, of the lower halves
 *	DOT_HIGH(a, b, f, g)  those of the upper halves
 *	NARROW(low, high)     halves of 32 bits as words
 *	SCALED(v, d, i)       the words v divided by row i of the divisors d
 *
 * These as well, but with 8 lanes they are the same for every instruction set and follow here:
 *
 *	LOAD(a, b)            8 samples at a, and with 16 lanes 8 samples at b, as words
 *	LOW(a, b)             the words of the lower halves by turns, for each block
 *	HIGH(a, b)            those of the upper halves
 *	KEEP(o, i, table, r, n)  takes over the coefficients r of the block i of *o, or of both;
 *	                      those beyond n x n are 0
 *	NOTE(o, i, table, last_dc, n)  notes the block i of *o
 *	ROW(a, b)             8 words at a, and with 16 lanes 8 words at b
 *	PUT_8(out, stride, v, w)  stores v and w as 2 lines of bytes from -128 to 127, plus 128
 *	PUT_4(out, stride, v, w)  the same of 4 lines of half the length
 *	PUT_2(out, stride, sums)  stores 2 x 2 samples of each block: see put_2()
 */
#if LANES == 8
#define LOAD(a, b) ((void)(b), load_words(a))
#define LOW LOW_WORDS
#define HIGH HIGH_WORDS
#define KEEP(o, block, table, r, n) ((void)(table), (void)(n), keep(o, block, r))
#define NOTE note_block
#define ROW(a, b) ((void)(b), words_at(a))
#define PUT_8 put_8
#define PUT_4 put_4
#define PUT_2 put_2
#endif

#define WORDS JOIN(words, NAME)
#define UWORDS JOIN(unsigned_words, NAME)
#define INTS JOIN(ints, NAME)
#define NATURALS JOIN(naturals, NAME)

typedef int16_t WORDS __attribute__((vector_size(2 * LANES), may_alias));
typedef uint16_t UWORDS __attribute__((vector_size(2 * LANES), may_alias));
typedef int32_t INTS __attribute__((vector_size(2 * LANES), may_alias));
typedef uint32_t NATURALS __attribute__((vector_size(2 * LANES), may_alias));

TARGET static inline void JOIN(transpose, NAME)(WORDS r[8])
{
	TRANSPOSE(r, 8, 3, LOW, HIGH);
}

/* d = (a * f + b * g) / 2^s, rounded, and the same with z added. */
#define HALF_BIT(s) ((INTS)((NATURALS){ 0 } + (1U << ((s)-1))))
#define DOT(a, b, f, g, s)                                 \
	NARROW((DOT_LOW(a, b, f, g) + HALF_BIT(s)) >> (s), \
	       (DOT_HIGH(a, b, f, g) + HALF_BIT(s)) >> (s))
#define DOT_PLUS(a, b, f, g, z, s)                                   \
	NARROW((DOT_LOW(a, b, f, g) + z##_low + HALF_BIT(s)) >> (s), \
	       (DOT_HIGH(a, b, f, g) + z##_high + HALF_BIT(s)) >> (s))

/* One pass of the DCT by Loeffler, Ligtenberg and Moschytz (1989), as in jfdctint.c: along the
 * lines with the level shift, or along the columns. */
TARGET static inline __attribute__((always_inline)) void JOIN(dct, NAME)(WORDS d[8], bool is_second)
{
	const int s = is_second ? DCT_BITS + 2 : DCT_BITS - 2;
	WORDS s0 = d[0] + d[7], d0 = d[0] - d[7], s1 = d[1] + d[6], d1 = d[1] - d[6];
	WORDS s2 = d[2] + d[5], d2 = d[2] - d[5], s3 = d[3] + d[4], d3 = d[3] - d[4];
	WORDS even = s0 + s3 + s1 + s2, odd = s0 + s3 - s1 - s2, e0 = s0 - s3, e1 = s1 - s2;
	WORDS z3 = d3 + d1, z4 = d2 + d0;
	INTS z3_low = DOT_LOW(z3, z4, F_1_175 - F_1_961, F_1_175),
	     z3_high = DOT_HIGH(z3, z4, F_1_175 - F_1_961, F_1_175),
	     z4_low = DOT_LOW(z3, z4, F_1_175, F_1_175 - F_0_390),
	     z4_high = DOT_HIGH(z3, z4, F_1_175, F_1_175 - F_0_390);

	d[0] = is_second ? (even + 2) >> 2 : even * 4 - 4 * 8 * 128;
	d[4] = is_second ? (odd + 2) >> 2 : odd * 4;
	d[2] = DOT(e1, e0, F_0_541, F_0_541 + F_0_765, s);
	d[6] = DOT(e1, e0, F_0_541 - F_1_847, F_0_541, s);
	d[7] = DOT_PLUS(d3, d0, F_0_298 - F_0_899, -F_0_899, z3, s);
	d[1] = DOT_PLUS(d3, d0, -F_0_899, F_1_501 - F_0_899, z4, s);
	d[5] = DOT_PLUS(d2, d1, F_2_053 - F_2_562, -F_2_562, z4, s);
	d[3] = DOT_PLUS(d2, d1, -F_2_562, F_3_072 - F_2_562, z3, s);
}

/* r = `count` frequencies of a spline, divided by 2^s, from its first four knots and their images.
 */
TARGET static inline __attribute__((always_inline)) void JOIN(combine, NAME)(
	WORDS r[8], const struct mcu_spline *spline, const WORDS first[4], const WORDS last[4],
	int count, int s)
{
	WORDS v[2][4];

	KERNEL_UNROLL(4)
	for (int i = 0; i < 4; i++) {
		v[0][i] = first[i] + last[i];
		v[1][i] = first[i] - last[i];
	}
	KERNEL_UNROLL(8)
	for (int k = 0; k < count; k++) {
		const int16_t *w = spline->weight + 4 * k;
		const WORDS *u = v[k % 2];
		INTS z_low = DOT_LOW(u[2], u[3], w[2], w[3]),
		     z_high = DOT_HIGH(u[2], u[3], w[2], w[3]);

		r[k] = DOT_PLUS(u[0], u[1], w[0], w[1], z, s);
	}
}

/* Frequencies of columns have COLUMN_BITS fraction bits, and those of blocks 3, as after dct(). */
TARGET static void JOIN(transform, NAME)(const struct mcu_blocks *to, const uint8_t *knots,
                                         ptrdiff_t stride, int width)
{
	ptrdiff_t end = (to->spline->knots - 1) * stride;

	for (int x = 0; x < width; x += LANES) {
		WORDS first[4], last[4], r[8];

		for (int i = 0; i < 4; i++) {
			const uint8_t *a = knots + x + i * stride,
				      *b = knots + x + end - i * stride;

			first[i] = LOAD(a, a + 8) - 128;
			last[i] = LOAD(b, b + 8) - 128;
		}
		JOIN(combine, NAME)(r, to->spline, first, last, 8, WEIGHT_BITS - COLUMN_BITS);
		JOIN(transpose, NAME)(r);
		for (int i = 0; i < 8 * (LANES / 8); i++)
			memcpy(to->columns + 8 * (x + i), (const int16_t *)&r[i % 8] + i / 8 * 8,
			       16);
	}
}

/* Makes `count` rows of the block x, or with 16 lanes of both blocks. */
TARGET static inline __attribute__((always_inline)) void JOIN(block_of_spline, NAME)(
	WORDS r[8], const struct mcu_blocks *a, int x, const struct mcu_blocks *b, int y, int count)
{
	const struct mcu_spline *spline = a->spline;
	const int16_t *left = a->columns + 8 * x * spline->per_block,
		      *right = b->columns + 8 * y * spline->per_block;
	int end = 8 * (spline->knots - 1);
	WORDS first[4], last[4];

	KERNEL_UNROLL(4)
	for (int i = 0; i < 4; i++) {
		first[i] = ROW(left + 8 * i, right + 8 * i);
		last[i] = ROW(left + end - 8 * i, right + end - 8 * i);
	}
	memset(r, 0, 8 * sizeof(*r));
	JOIN(combine, NAME)(r, spline, first, last, count, WEIGHT_BITS + COLUMN_BITS - 3);
	JOIN(transpose, NAME)(r);
}

TARGET static inline void JOIN(block_of_samples, NAME)(WORDS r[8], const struct mcu_blocks *a,
                                                       int x, const struct mcu_blocks *b, int y,
                                                       int count)
{
	(void)count;
	KERNEL_UNROLL(8)
	for (int i = 0; i < 8; i++)
		r[i] = LOAD(a->line[i] + MCU_BLOCK * x, b->line[i] + MCU_BLOCK * y);
	JOIN(transpose, NAME)(r);
	JOIN(dct, NAME)(r, false);
	JOIN(transpose, NAME)(r);
	JOIN(dct, NAME)(r, true);
}

/* Defines a function that prepares the notes of block x of the row a and of block y of the row b,
 * which block_of_##kind() makes. It has `count` rows and columns of coefficients. */
#define PREPARE(name, kind, count)                                                       \
	TARGET static __attribute__((noinline)) void JOIN(name, NAME)(                   \
		struct prepared * o, const struct mcu_divisors *by, unsigned table,      \
		const struct mcu_blocks *a, int x, const struct mcu_blocks *b, int y)    \
	{                                                                                \
		for (int block = 0; block < 2; block += LANES / 8) {                     \
			WORDS r[8];                                                      \
                                                                                         \
			JOIN(kind, NAME)(r, block ? b : a, block ? y : x, b, y, count);  \
			KERNEL_UNROLL(8)                                                 \
			for (int i = 0; i < 8; i++)                                      \
				r[i] = i < (count) ? SCALED(r[i], by, i) : (WORDS){ 0 }; \
			KEEP(o, block, table, r, count);                                 \
		}                                                                        \
	}

PREPARE(prepare_samples, block_of_samples, 8)
PREPARE(prepare_spline, block_of_spline, 8)
PREPARE(prepare_low, block_of_spline, 4)

static inline void JOIN(prepare, NAME)(struct prepared *o, const struct mcu_divisors *by,
                                       unsigned table, const struct mcu_blocks *a, int x,
                                       const struct mcu_blocks *b, int y)
{
	(!a->spline  ? JOIN(prepare_samples, NAME)
	 : a->is_low ? JOIN(prepare_low, NAME)
	             : JOIN(prepare_spline, NAME))(o, by, table, a, x, b, y);
}

/* Notes MCUs of 2 x 2 blocks of luma and one of each chroma plane. */
TARGET static uint32_t *JOIN(note_420, NAME)(struct mcu_row *m, int from, int to, uint32_t *n)
{
	struct prepared o = { .mask = { 0 } };

	for (int x = from; x < to; x++) {
		bool has_right = 2 * x + 1 < m->wide;

		for (int i = 0; i < (m->is_cut ? 1 : 2); i++) {
			const struct mcu_blocks *row = &m->luma[i];

			JOIN(prepare, NAME)
			(&o, m->luma_divisors, 0, row, 2 * x, row, 2 * x + has_right);
			n = NOTE(&o, 0, 0, &m->last_dc[0], n);
			n = has_right ? NOTE(&o, 1, 0, &m->last_dc[0], n) : note_like_last(n);
		}
		if (m->is_cut)
			n = note_like_last(note_like_last(n));
		JOIN(prepare, NAME)
		(&o, m->chroma_divisors, MCU_CHROMA, &m->cb, x, &m->cr, x);
		n = NOTE(&o, 0, MCU_CHROMA, &m->last_dc[1], n);
		n = NOTE(&o, 1, MCU_CHROMA, &m->last_dc[2], n);
	}
	return n;
}

/* Notes MCUs of one block of each plane: grey and 4:4:4. */
TARGET static uint32_t *JOIN(note_single, NAME)(struct mcu_row *m, int from, int to, uint32_t *n)
{
	struct prepared luma = { .mask = { 0 } }, o = luma;

	for (int x = from; x < to; x++) {
		if ((x - from) % 2 == 0)
			JOIN(prepare, NAME)
		(&luma, m->luma_divisors, 0, m->luma, x, m->luma, x + (x + 1 < m->wide));
		n = NOTE(&luma, (x - from) % 2, 0, &m->last_dc[0], n);
		if (m->chroma == CHROMA_NONE)
			continue;
		JOIN(prepare, NAME)(&o, m->chroma_divisors, MCU_CHROMA, &m->cb, x, &m->cr, x);
		n = NOTE(&o, 0, MCU_CHROMA, &m->last_dc[1], n);
		n = NOTE(&o, 1, MCU_CHROMA, &m->last_dc[2], n);
	}
	return n;
}

static uint32_t *JOIN(note, NAME)(struct mcu_row *m, int from, int to, uint32_t *note)
{
	return m->chroma == CHROMA_420 ? JOIN(note_420, NAME)(m, from, to, note)
	                               : JOIN(note_single, NAME)(m, from, to, note);
}

/* ---- inverse DCT: jidctint.c, and jidctred.c for fewer samples ---- */

/* Sums wrap around: damaged files have coefficients of any size. */
#define SUM(a, b) ((WORDS)((UWORDS)(a) + (UWORDS)(b)))
#define DIFFERENCE(a, b) ((WORDS)((UWORDS)(a) - (UWORDS)(b)))
#define N(dot) ((NATURALS)(dot))
#define SHIFTED(sum, s) ((INTS)(sum) >> (s))

/* One pass of 8 x 8 samples along the columns: the sums of half of the vectors, shifted by s. */
#define INVERSE_HALF(sum, DOT_HALF, s)                                                   \
	do {                                                                             \
		NATURALS z3 = N(DOT_HALF(z73, z51, F_1_175 - F_1_961, F_1_175)),         \
			 z4 = N(DOT_HALF(z73, z51, F_1_175, F_1_175 - F_0_390));         \
		NATURALS e2 = N(DOT_HALF(r[2], r[6], F_0_541, F_0_541 - F_1_847)),       \
			 e3 = N(DOT_HALF(r[2], r[6], F_0_541 + F_0_765, F_0_541));       \
		NATURALS e0 = N(DOT_HALF(plus, plus, 4096, 4096)) + N(HALF_BIT(s)),      \
			 e1 = N(DOT_HALF(minus, minus, 4096, 4096)) + N(HALF_BIT(s));    \
		NATURALS o0 = N(DOT_HALF(r[7], r[1], -F_0_899, F_1_501 - F_0_899)) + z4, \
			 o1 = N(DOT_HALF(r[5], r[3], -F_2_562, F_3_072 - F_2_562)) + z3, \
			 o2 = N(DOT_HALF(r[5], r[3], F_2_053 - F_2_562, -F_2_562)) + z4, \
			 o3 = N(DOT_HALF(r[7], r[1], F_0_298 - F_0_899, -F_0_899)) + z3; \
                                                                                         \
		(sum)[0] = SHIFTED(e0 + e3 + o0, s);                                     \
		(sum)[7] = SHIFTED(e0 + e3 - o0, s);                                     \
		(sum)[1] = SHIFTED(e1 + e2 + o1, s);                                     \
		(sum)[6] = SHIFTED(e1 + e2 - o1, s);                                     \
		(sum)[2] = SHIFTED(e1 - e2 + o2, s);                                     \
		(sum)[5] = SHIFTED(e1 - e2 - o2, s);                                     \
		(sum)[3] = SHIFTED(e0 - e3 + o3, s);                                     \
		(sum)[4] = SHIFTED(e0 - e3 - o3, s);                                     \
	} while (0)

TARGET static inline __attribute__((always_inline)) void JOIN(inverse_pass, NAME)(WORDS r[8], int s)
{
	WORDS plus = SUM(r[0], r[4]), minus = DIFFERENCE(r[0], r[4]);
	WORDS z73 = SUM(r[7], r[3]), z51 = SUM(r[5], r[1]);
	INTS low[8], high[8];

	INVERSE_HALF(low, DOT_LOW, s);
	INVERSE_HALF(high, DOT_HIGH, s);
	KERNEL_UNROLL(8)
	for (int i = 0; i < 8; i++)
		r[i] = NARROW(low[i], high[i]);
}

/* Loads and multiplies row i of block `from`, or of both. */
#define SCALED_ROW(i)                                                  \
	((WORDS)((UWORDS)ROW((block ? b : a) + 8 * (i), b + 8 * (i)) * \
	         (UWORDS)ROW(quantum + 8 * (i), quantum + 8 * (i))))

TARGET static void JOIN(inverse_8, NAME)(const int16_t *a, const int16_t *b, const int16_t *quantum,
                                         uint8_t *out, ptrdiff_t stride)
{
	for (int block = 0; block < 2; block += LANES / 8) {
		WORDS r[8];

		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++)
			r[i] = SCALED_ROW(i);
		JOIN(inverse_pass, NAME)(r, DCT_BITS - 2);
		JOIN(transpose, NAME)(r);
		JOIN(inverse_pass, NAME)(r, DCT_BITS + 5);
		JOIN(transpose, NAME)(r);
		KERNEL_UNROLL(4)
		for (int i = 0; i < 8; i += 2)
			PUT_8(out + 8 * block + i * stride, stride, r[i], r[i + 1]);
	}
}

/* The 4 sums of a pass of 4 x 4 samples, from the dot products with columns 1 and 3, 5 and 7, 2 and
 * 6, and 0 twice. */
#define INVERSE_4(sum, ONE_THREE, FIVE_SEVEN, TWO_SIX, ZERO, s)     \
	do {                                                        \
		NATURALS e = N(TWO_SIX(F_1_847, -F_0_765)),         \
			 d = N(ZERO(8192, 8192)) + N(HALF_BIT(s));  \
		NATURALS inner = N(ONE_THREE(F_1_061, -F_2_172)) +  \
		                 N(FIVE_SEVEN(F_1_451, -F_0_211)),  \
			 outer = N(ONE_THREE(F_2_562, F_0_899)) +   \
		                 N(FIVE_SEVEN(-F_0_601, -F_0_509)); \
                                                                    \
		(sum)[0] = SHIFTED(d + e + outer, s);               \
		(sum)[1] = SHIFTED(d - e + inner, s);               \
		(sum)[2] = SHIFTED(d - e - inner, s);               \
		(sum)[3] = SHIFTED(d + e - outer, s);               \
	} while (0)

TARGET static void JOIN(inverse_4, NAME)(const int16_t *a, const int16_t *b, const int16_t *quantum,
                                         uint8_t *out, ptrdiff_t stride)
{
	for (int block = 0; block < 2; block += LANES / 8) {
		WORDS r[8], w[4];
		INTS low[4], high[4];

		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++)
			r[i] = SCALED_ROW(i);
#define LOW_13(f, g) DOT_LOW(r[1], r[3], f, g)
#define LOW_57(f, g) DOT_LOW(r[5], r[7], f, g)
#define LOW_26(f, g) DOT_LOW(r[2], r[6], f, g)
#define LOW_00(f, g) DOT_LOW(r[0], r[0], f, g)
#define HIGH_13(f, g) DOT_HIGH(r[1], r[3], f, g)
#define HIGH_57(f, g) DOT_HIGH(r[5], r[7], f, g)
#define HIGH_26(f, g) DOT_HIGH(r[2], r[6], f, g)
#define HIGH_00(f, g) DOT_HIGH(r[0], r[0], f, g)
		INVERSE_4(low, LOW_13, LOW_57, LOW_26, LOW_00, DCT_BITS - 1);
		INVERSE_4(high, HIGH_13, HIGH_57, HIGH_26, HIGH_00, DCT_BITS - 1);
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++)
			w[i] = NARROW(low[i], high[i]);
		/* Columns 0 and 1 become the halves of r[0], and so on. */
		WORDS even = LOW(w[0], w[2]), odd = LOW(w[1], w[3]);

		r[0] = LOW(even, odd);
		r[1] = HIGH(even, odd);
		even = HIGH(w[0], w[2]);
		odd = HIGH(w[1], w[3]);
		r[2] = LOW(even, odd);
		r[3] = HIGH(even, odd);
#define ROWS_13(f, g) DOT_HIGH(r[0], r[1], f, g)
#define ROWS_57(f, g) DOT_HIGH(r[2], r[3], f, g)
#define ROWS_26(f, g) DOT_LOW(r[1], r[3], f, g)
		INVERSE_4(low, ROWS_13, ROWS_57, ROWS_26, LOW_00, DCT_BITS + 6);
		/* Each vector has a column of samples; the upper half is not used. */
		even = LOW(NARROW(low[0], low[0]), NARROW(low[2], low[2]));
		odd = LOW(NARROW(low[1], low[1]), NARROW(low[3], low[3]));
		PUT_4(out + 4 * block, stride, LOW(even, odd), HIGH(even, odd));
	}
}

TARGET static void JOIN(inverse_2, NAME)(const int16_t *a, const int16_t *b, const int16_t *quantum,
                                         uint8_t *out, ptrdiff_t stride)
{
	for (int block = 0; block < 2; block += LANES / 8) {
		const int s = DCT_BITS;
		WORDS r[8];

		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++)
			r[i] = SCALED_ROW(i);
		NATURALS d = N(LOW_00(16384, 16384)) + N(HALF_BIT(s)),
			 e = N(HIGH_00(16384, 16384)) + N(HALF_BIT(s));
		NATURALS odd = N(LOW_13(F_3_624, -F_1_272)) + N(LOW_57(F_0_850, -F_0_720)),
			 odd_high = N(HIGH_13(F_3_624, -F_1_272)) + N(HIGH_57(F_0_850, -F_0_720));
		WORDS upper = NARROW(SHIFTED(d + odd, s), SHIFTED(e + odd_high, s)),
		      lower = NARROW(SHIFTED(d - odd, s), SHIFTED(e - odd_high, s));
		/* Columns 0, 4 and 1, 5 of both lines; 2, 6 and 3, 7. */
		WORDS left = LOW(upper, lower), right = HIGH(upper, lower), m = LOW(left, right),
		      n = HIGH(left, right);
		INTS sums[3] = { DOT_HIGH(m, n, F_3_624, -F_1_272),
			         DOT_HIGH(m, n, F_0_850, -F_0_720), DOT_LOW(m, m, 16384, 16384) };

		PUT_2(out + 2 * block, stride, sums);
	}
}

static const struct mcu_kernel JOIN(mcu_kernel, NAME) = {
	.name = STRING(NAME),
	.note = JOIN(note, NAME),
	.transform = JOIN(transform, NAME),
	.inverse = { inverse_1, JOIN(inverse_2, NAME), JOIN(inverse_4, NAME),
	             JOIN(inverse_8, NAME) },
};

#undef NAME
#undef TARGET
#undef LANES
#undef LOAD
#undef LOW
#undef HIGH
#undef DOT_LOW
#undef DOT_HIGH
#undef NARROW
#undef SCALED
#undef KEEP
#undef NOTE
#undef ROW
#undef PUT_8
#undef PUT_4
#undef PUT_2
