/*
 * mcu_rows.c - a few MCUs of blocks at once, from the entropy decoder to the planes.
 */
#include "mcu_rows.h"

#if LIBJPEG_HAS_PRIVATE

#include <string.h>

#include "mcu.h"

#define MCUS_AT_ONCE \
	4 /* an even number. With 8 decoding takes 4 % longer: blocks leave the cache */

struct mcu_rows {
	const struct mcu_kernel *kernel;
	const struct picture *picture;
	int16_t quantum[PLANE_MAX][DCTSIZE2];
	int size[PLANE_MAX]; /* samples of a block in both directions */
	/* For the lines of blocks of each component the indices of their blocks, in an order that
	 * begins at `first`. */
	uint8_t order[MCUS_AT_ONCE * D_MAX_BLOCKS_IN_MCU];
	int first[PLANE_MAX];
	JBLOCKROW at[MCUS_AT_ONCE * D_MAX_BLOCKS_IN_MCU];
	JBLOCK block[MCUS_AT_ONCE * D_MAX_BLOCKS_IN_MCU];
};

size_t mcu_rows_bytes(void)
{
	return sizeof(struct mcu_rows);
}

/* Sets the order of a component, whose first block in an MCU is `first`. */
static void set_order(struct mcu_rows *m, const struct jpeg_decompress_struct *in,
                      const jpeg_component_info *ci, int first)
{
	uint8_t *order = m->order + MCUS_AT_ONCE * first;

	m->first[ci->component_index] = MCUS_AT_ONCE * first;
	for (int v = 0; v < ci->MCU_height; v++)
		for (int mcu = 0; mcu < MCUS_AT_ONCE; mcu++)
			for (int h = 0; h < ci->MCU_width; h++)
				*order++ = (uint8_t)(mcu * in->blocks_in_MCU + first +
				                     v * ci->MCU_width + h);
}

struct mcu_rows *mcu_rows_start(j_decompress_ptr in, const struct picture *p, const int *dct_size)
{
	struct mcu_rows *m = in->mem->alloc_large((j_common_ptr)in, JPOOL_IMAGE, sizeof(*m));
	int first = 0;

	m->kernel = mcu_kernel_at(0);
	m->picture = p;
	for (int i = 0; i < in->comps_in_scan; i++) {
		const jpeg_component_info *ci = in->cur_comp_info[i];
		int c = ci->component_index;

		for (int k = 0; k < DCTSIZE2; k++)
			m->quantum[c][k] = (int16_t)ci->quant_table->quantval[k];
		m->size[c] = dct_size[c];
		set_order(m, in, ci, first);
		first += ci->MCU_blocks;
	}
	for (int i = 0; i < MCUS_AT_ONCE * D_MAX_BLOCKS_IN_MCU; i++)
		m->at[i] = &m->block[i];
	return m;
}

/* Makes the samples of a line of blocks of component c. */
static void transform_line(const struct mcu_rows *m, int c, const uint8_t *order, int count,
                           uint8_t *out)
{
	int size = m->size[c], log = size == 8 ? 3 : size / 2;
	ptrdiff_t stride = m->picture->plane[c].stride;
	const int16_t *quantum = m->quantum[c];
	uint8_t pair[DCTSIZE * 2 * DCTSIZE];

	for (; count > 1; count -= 2, order += 2, out += 2 * size)
		m->kernel->inverse[log](m->block[order[0]], m->block[order[1]], quantum, out,
		                        stride);
	if (count < 1)
		return;
	m->kernel->inverse[log](m->block[*order], m->block[*order], quantum, pair, 2 * DCTSIZE);
	for (int i = 0; i < size; i++)
		memcpy(out + i * stride, pair + i * 2 * DCTSIZE, (size_t)size);
}

/* Makes the samples of `count` MCUs from `mcu`. `line` is their row of blocks in a scan of one
 * component, 0 otherwise. */
static void transform(const struct mcu_rows *m, const struct jpeg_decompress_struct *in,
                      unsigned row, int line, int mcu, int count)
{
	for (int i = 0; i < in->comps_in_scan; i++) {
		const jpeg_component_info *ci = in->cur_comp_info[i];
		int c = ci->component_index, size = m->size[c], x = mcu * ci->MCU_width;
		const struct plane *p = &m->picture->plane[c];
		const uint8_t *order = m->order + m->first[c];
		int left = (int)ci->width_in_blocks - x, n = count * ci->MCU_width;

		for (int v = 0; v < ci->MCU_height; v++, order += MCUS_AT_ONCE * ci->MCU_width) {
			int y = (int)row * ci->v_samp_factor + line + v;

			if (y < (int)ci->height_in_blocks)
				transform_line(m, c, order, n < left ? n : left,
				               p->data + (ptrdiff_t)y * size * p->stride +
				                       x * size);
		}
	}
}

void mcu_rows_make(struct mcu_rows *m, j_decompress_ptr in, unsigned row)
{
	const jpeg_component_info *ci = in->cur_comp_info[0];
	int wide = (int)in->MCUs_per_row, blocks = in->blocks_in_MCU, lines = 1;

	/* A scan of one component has no padding and all its rows of blocks. */
	if (in->comps_in_scan == 1)
		lines = row + 1 < in->total_iMCU_rows ? ci->v_samp_factor : ci->last_row_height;
	for (int line = 0; line < lines; line++)
		for (int x = 0; x < wide; x += MCUS_AT_ONCE) {
			int n = wide - x < MCUS_AT_ONCE ? wide - x : MCUS_AT_ONCE;

			memset(m->block, 0, (size_t)(n * blocks) * sizeof(*m->block));
			for (int i = 0; i < n; i++)
				in->entropy->decode_mcu(in, m->at + i * blocks);
			transform(m, in, row, line, x, n);
		}
}
#endif
