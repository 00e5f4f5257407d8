/*
 * decoder_range.c - checks the DC coefficients of sequential files.
 *
 * Huffman codes find their place again soon after an error. But a DC coefficient is coded as the
 * difference from the one before, so an error stays until the end of the picture or the next
 * restart. On the way it often leaves the range of 8-bit samples.
 */
#include "decoder_range.h"

#include "decoder_errors.h"
#include "libjpeg_private.h"

#if LIBJPEG_HAS_PRIVATE
/* Samples of -128..127 have a DC coefficient of -1024..1016 (T.81 A.3.3). Encoders that overshoot
 * at edges add up to 31 to a sample. */
#define DC_MAX 1280

static boolean on_mcu(j_decompress_ptr in, JBLOCKROW *block)
{
	struct decoder *d = in->client_data;
	boolean is_done = d->decode_mcu(in, block);
	int outside = 0;

	for (int i = 0; i < in->blocks_in_MCU; i++) {
		int dc = block[i][0][0], max = d->dc_max[i];

		outside |= (max - dc) | (max + dc); /* negative if one is outside */
	}
	if (outside < 0 && !d->has_lost)
		decoder_note_loss(d, "Corrupt JPEG data: a DC coefficient is out of range");
	return is_done;
}

void decoder_range_begin(struct decoder *d)
{
	struct jpeg_decompress_struct *in = &d->in;

	if (d->is_buffered || !libjpeg_private_is_usable())
		return;
	for (int i = 0; i < in->blocks_in_MCU; i++) {
		const jpeg_component_info *ci = in->cur_comp_info[in->MCU_membership[i]];
		int step = ci->quant_table->quantval[0];

		d->dc_max[i] = DC_MAX / (step > 0 ? step : 1) + 1;
	}
	d->decode_mcu = in->entropy->decode_mcu;
	in->entropy->decode_mcu = on_mcu;
}
#else
void decoder_range_begin(struct decoder *d)
{
	(void)d;
}
#endif
