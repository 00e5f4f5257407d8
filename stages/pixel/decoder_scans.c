/*
 * decoder_scans.c - the scans of a file: their work, and what they leave over.
 *
 * A progressive scan of end-of-band runs has two bytes for 32767 blocks, and libjpeg visits each of
 * them ("Two Issues with the JPEG Standard", libjpeg-turbo.org). So the work is bounded by the
 * number of blocks, and by the data.
 *
 * libjpeg's fast Huffman decoder does not report bad codes. But a decoder that has lost its place
 * needs more or fewer bytes than there are. Fewer cause a warning. Bytes that are left over are
 * counted here.
 */
#include "decoder_scans.h"

#include <string.h>

#include "base/round.h"
#include "decoder_errors.h"

/* libjpeg's own progression visits a block at most 6 times. */
#define VISITS_PER_BLOCK 8
/* A visit with data costs more than one without: one visit for 2 bits is always granted. */
#define VISITS_PER_BYTE 4
/* Sound files leave over at most 17 bytes (a webcam's). Zeros are padding. */
#define LEFT_OVER_MAX 32

/* ---- work ---- */

static uint64_t bytes_left(const struct decoder *d)
{
	return d->in.src->bytes_in_buffer;
}

/* Returns the blocks of all components, with the padding of interleaved scans. */
static uint64_t block_count(const struct jpeg_decompress_struct *in)
{
	uint64_t blocks = 0;

	for (int c = 0; c < in->num_components; c++) {
		const jpeg_component_info *ci = &in->comp_info[c];

		blocks += round_up(ci->width_in_blocks, (uint64_t)ci->h_samp_factor) *
		          in->total_iMCU_rows * (uint64_t)ci->v_samp_factor;
	}
	return blocks;
}

/* Returns the blocks of one row in the current scan. */
static uint64_t blocks_in_row(const struct jpeg_decompress_struct *in)
{
	int high = in->comps_in_scan == 1 ? in->cur_comp_info[0]->v_samp_factor : in->blocks_in_MCU;

	return (uint64_t)in->MCUs_per_row * (uint64_t)high;
}

void decoder_scans_begin(struct decoder *d)
{
	d->bytes_before_scans = bytes_left(d);
	d->visits = 0;
}

static void check_work(struct decoder *d)
{
	uint64_t blocks = block_count(&d->in), bytes = d->bytes_before_scans - bytes_left(d);
	uint64_t max = blocks * VISITS_PER_BLOCK + bytes * VISITS_PER_BYTE;
	char text[JMSG_LENGTH_MAX];

	if ((unsigned)d->in.input_scan_number > d->scans_max) {
		snprintf(text, sizeof text, "more than %u scans", d->scans_max);
		decoder_fail(d, DECODER_TOO_MANY_SCANS, text);
	}
	if (d->visits > max) {
		snprintf(text, sizeof text,
		         "the first %d scans visit %llu blocks; %llu blocks with %llu bytes of "
		         "data may be visited %llu times",
		         d->in.input_scan_number, (unsigned long long)d->visits,
		         (unsigned long long)blocks, (unsigned long long)bytes,
		         (unsigned long long)max);
		decoder_fail(d, DECODER_TOO_MUCH_WORK, text);
	}
}

/* ---- what is missing ---- */

/* Returns whether a component has no data. In a file that ended early, also whether bits of a
 * coefficient are missing. */
static bool is_incomplete(const struct decoder *d)
{
	const struct jpeg_decompress_struct *in = &d->in;

	for (int c = 0; c < in->num_components; c++) {
		if (!in->comp_info[c].quant_table) /* set when its first scan starts */
			return true;
		if (!in->progressive_mode)
			continue;
		if (in->coef_bits[c][0] < 0) /* its DC scan is missing */
			return true;
		for (int k = 0; d->has_ended_early && k < DCTSIZE2; k++)
			if (in->coef_bits[c][k] != 0)
				return true;
	}
	return false;
}

void decoder_scans_row(struct decoder *d)
{
	uint64_t blocks = blocks_in_row(&d->in);
	int reached = jpeg_consume_input(&d->in);

	if (reached == JPEG_REACHED_EOI) {
		if (is_incomplete(d))
			decoder_note_loss(d, d->has_ended_early ? DECODER_PREMATURE_END
			                                        : "a component has no data");
		jpeg_start_output(&d->in, d->in.input_scan_number);
		d->state = DECODER_OUTPUT;
		return;
	}
	if (reached == JPEG_ROW_COMPLETED || reached == JPEG_SCAN_COMPLETED)
		d->visits += blocks;
	check_work(d);
}

/* ---- what is left over ---- */

static void check_left_over(struct decoder *d, const uint8_t *from, const uint8_t *to)
{
	char text[JMSG_LENGTH_MAX];
	size_t n = 0;

	for (const uint8_t *p = from; p < to; p++)
		n += *p != 0;
	if (n <= LEFT_OVER_MAX)
		return;
	snprintf(text, sizeof text, "Corrupt JPEG data: %zu bytes left over in a scan", n);
	decoder_note_loss(d, text);
}

void decoder_scans_skipped(struct decoder *d, size_t count)
{
	const uint8_t *at = d->in.src->next_input_byte;

	/* Bytes before the first scan are harmless. At the end of the file, which has no EOI, they
	 * are not the scan's. */
	if (d->state == DECODER_HEADER || d->has_ended_early)
		return;
	size_t read = (size_t)(at - d->source);

	check_left_over(d, at - (count < read ? count : read), at);
}

void decoder_scans_finished(struct decoder *d)
{
	const uint8_t *begin = d->in.src->next_input_byte, *p = begin, *end = p + bytes_left(d);

	/* The decoder has met a marker already, or the end of the file. */
	if (d->in.unread_marker || d->has_ended_early)
		return;
	while ((p = memchr(p, 0xff, (size_t)(end - p))) && end - p >= 2) {
		/* Only a marker that ends data counts: without an EOI anything may follow. */
		if (p[1] == JPEG_EOI || (p[1] & 0xf8) == JPEG_RST0)
			check_left_over(d, begin, p);
		if (p[1] != 0 && p[1] != 0xff)
			return;
		p += p[1] == 0 ? 2 : 1;
	}
}
