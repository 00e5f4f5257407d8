/*
 * mcu_vector.h - a kernel of mcu.h for one instruction set.
 *
 * mcu.c includes it once for each instruction set, so it has no include guard. The includer defines
 * the following; this file undefines them:
 *
 *	NAME                  of the instruction set
 *	TARGET                attribute of the functions
 *	LANES                 words of a vector: 8 for one block, 16 for two blocks
 *	LOAD(a, b)            8 samples at a, and with 16 lanes 8 samples at b, as words
 *	LOW(a, b)             the words of the lower halves by turns, for each block
 *	HIGH(a, b)            those of the upper halves
 *	DOT_LOW(a, b, f, g)   a * f + b * g in 32 bits, of the lower halves
 *	DOT_HIGH(a, b, f, g)  those of the upper halves
 *	NARROW(low, high)     halves of 32 bits as words
 *	SCALED(v, d, i)       the words v divided by row i of the divisors d
 *	KEEP(o, i, table, r)  takes over the coefficients r of the block i of *o, or of both
 *	NOTE(o, i, table, last_dc, n)  notes the block i of *o
 */
#define WORDS JOIN(words, NAME)
#define INTS JOIN(ints, NAME)
#define NATURALS JOIN(naturals, NAME)

typedef int16_t WORDS __attribute__((vector_size(2 * LANES), may_alias));
typedef int32_t INTS __attribute__((vector_size(2 * LANES), may_alias));
typedef uint32_t NATURALS __attribute__((vector_size(2 * LANES), may_alias));

TARGET static inline void JOIN(transpose, NAME)(WORDS r[8])
{
	WORDS a[8];

	KERNEL_UNROLL(3)
	for (int pass = 0; pass < 3; pass++) {
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++) {
			a[2 * i] = LOW(r[i], r[i + 4]);
			a[2 * i + 1] = HIGH(r[i], r[i + 4]);
		}
		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++)
			r[i] = a[i];
	}
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

/* Prepares the notes of the blocks at column x of the lines a and at column y of the lines b. */
TARGET static void JOIN(prepare, NAME)(struct prepared *o, const struct mcu_divisors *by,
                                       unsigned table, const uint8_t *const *a, int x,
                                       const uint8_t *const *b, int y)
{
	for (int block = 0; block < 2; block += LANES / 8) {
		WORDS r[8];

		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++)
			r[i] = LOAD(block ? b[i] + y : a[i] + x, b[i] + y);
		JOIN(transpose, NAME)(r);
		JOIN(dct, NAME)(r, false);
		JOIN(transpose, NAME)(r);
		JOIN(dct, NAME)(r, true);
		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++)
			r[i] = SCALED(r[i], by, i);
		KEEP(o, block, table, r);
	}
}

/* Notes MCUs of 2 x 2 blocks of luma and one of each chroma plane. */
TARGET static uint32_t *JOIN(note_420, NAME)(struct mcu_row *m, int from, int to, uint32_t *n)
{
	struct prepared o = { .mask = { 0 } };

	for (int x = from; x < to; x++) {
		bool has_right = 2 * x + 1 < m->wide;
		int left = 2 * MCU_BLOCK * x, right = has_right ? left + MCU_BLOCK : left;

		for (int i = 0; i < (m->is_cut ? 1 : 2); i++) {
			const uint8_t *const *lines = m->luma + MCU_BLOCK * i;

			JOIN(prepare, NAME)(&o, m->luma_divisors, 0, lines, left, lines, right);
			n = NOTE(&o, 0, 0, &m->last_dc[0], n);
			n = has_right ? NOTE(&o, 1, 0, &m->last_dc[0], n) : note_like_last(n);
		}
		if (m->is_cut)
			n = note_like_last(note_like_last(n));
		JOIN(prepare, NAME)
		(&o, m->chroma_divisors, MCU_CHROMA, m->cb, MCU_BLOCK * x, m->cr, MCU_BLOCK * x);
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
		int at = MCU_BLOCK * x, next = x + 1 < m->wide ? at + MCU_BLOCK : at;

		if ((x - from) % 2 == 0)
			JOIN(prepare, NAME)(&luma, m->luma_divisors, 0, m->luma, at, m->luma, next);
		n = NOTE(&luma, (x - from) % 2, 0, &m->last_dc[0], n);
		if (m->chroma == CHROMA_NONE)
			continue;
		JOIN(prepare, NAME)(&o, m->chroma_divisors, MCU_CHROMA, m->cb, at, m->cr, at);
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

static const struct mcu_kernel JOIN(mcu_kernel, NAME) = {
	.name = STRING(NAME),
	.note = JOIN(note, NAME),
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
#undef WORDS
#undef INTS
#undef NATURALS
#undef HALF_BIT
#undef DOT
#undef DOT_PLUS
