/*
 * kernel_vector.h - the kernel of one instruction set.
 *
 * kernel_vector.c includes it once for each instruction set, so it has no include guard. The
 * includer defines the following; this file undefines them:
 *
 *	NAME            of the instruction set
 *	TARGET          attribute of the functions
 *	LANES           words of a vector
 *	VECTORS         that the vertical loop sums up at once
 *	WIDE(s, i)      the bytes of vector i at s as words, times 128
 *	MULHRS(a, b)    the products of words in 1/32768, rounded
 *	PUT(to, sum)    divides the KERNEL_TILE words of sum[] by 32, clamps them to 0..255, and
 *	                stores them as bytes
 */
TARGET static void JOIN(vertical, NAME)(const uint8_t *src, ptrdiff_t stride, int width,
                                        const int16_t *w, int taps, int16_t *out)
{
	typedef uint16_t words __attribute__((vector_size(2 * LANES))); /* sums wrap around */
	typedef words words_at __attribute__((aligned(2), may_alias));

	for (int x = 0; x < width; x += VECTORS * LANES) {
		words sum[VECTORS] = { { 0 } };
		const uint8_t *s = src + x;

		for (int k = 0; k < taps; k++, s += stride) {
			words wk = (words){ 0 } + (uint16_t)w[k];

			KERNEL_UNROLL(8)
			for (int i = 0; i < VECTORS; i++)
				sum[i] += (words)MULHRS(WIDE(s, i), wk);
		}
		KERNEL_UNROLL(8)
		for (int i = 0; i < VECTORS; i++)
			*(words_at *)(out + x + LANES * i) = sum[i];
	}
}

TARGET static void JOIN(horizontal, NAME)(const int16_t *tile, const struct weights *t,
                                          uint8_t *out)
{
	typedef uint16_t words __attribute__((vector_size(2 * LANES))); /* sums wrap around */
	typedef words words_at __attribute__((aligned(2), may_alias));
	const int16_t *w = t->w;

	for (int o = 0; o < t->out; o++, w += t->taps, out += KERNEL_TILE) {
		const int16_t *s = tile + (ptrdiff_t)t->first[o] * KERNEL_TILE;
		words sum[KERNEL_TILE / LANES];

		KERNEL_UNROLL(4)
		for (int i = 0; i < KERNEL_TILE / LANES; i++)
			sum[i] = (words){ 0 } + 16;
		for (int k = 0; k < t->taps; k++, s += KERNEL_TILE) {
			words wk = (words){ 0 } + (uint16_t)w[k];

			KERNEL_UNROLL(4)
			for (int i = 0; i < KERNEL_TILE / LANES; i++)
				sum[i] += (words)MULHRS(*(const words_at *)(s + LANES * i), wk);
		}
		PUT(out, sum);
	}
}

const struct kernel JOIN(kernel, NAME) = {
	.name = STRING(NAME),
	.vertical = JOIN(vertical, NAME),
	.horizontal = JOIN(horizontal, NAME),
};

#undef NAME
#undef TARGET
#undef LANES
#undef VECTORS
#undef WIDE
#undef MULHRS
#undef PUT
