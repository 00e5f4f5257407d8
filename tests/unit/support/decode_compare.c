/*
 * decode_compare.c - two decoders, one of which leaves all to libjpeg.
 */
#include "decode_compare.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "base/check.h"
#include "picture_compare.h"
#include "pixel/decoder.h"

#define SCANS_MAX 100
#define PIXELS_MAX (1 << 20) /* the daemon refuses pictures whose memory was not reserved */
#define ROWS_AT_ONCE 3

struct result {
	bool is_open, is_done, has_lost, is_own;
	struct picture *picture;
};

static struct result decode(const uint8_t *jpeg, size_t size, int dct_size, bool by_libjpeg)
{
	struct decoder *d = decoder_new();
	struct result r = { 0 };

	assert(d);
	r.is_open = decoder_open(d, jpeg, size) == DECODER_MORE &&
	            (uint64_t)d->in.image_width * d->in.image_height <= PIXELS_MAX;
	if (r.is_open) {
		if (by_libjpeg)
			decoder_use_libjpeg(d);
		for (int c = 0; c < PLANE_MAX; c++)
			d->dct_size[c] = dct_size;
		enum decoder_result result = decoder_start(d, SCANS_MAX, false);

		while (result == DECODER_MORE)
			result = decoder_advance(d, ROWS_AT_ONCE);
		r.is_done = result == DECODER_DONE;
		r.has_lost = d->has_lost;
		r.is_own = d->has_entropy;
		r.picture = r.is_done ? decoder_take(d) : NULL;
	}
	decoder_free(d);
	return r;
}

/* ---- coefficients that no picture has ---- */

/* Sums up to this do not overflow 16 bits between the passes of the inverse DCT. */
#define SUM_MAX 5000

static void on_error(j_common_ptr c)
{
	longjmp(*(jmp_buf *)c->client_data, 1);
}

static void on_message(j_common_ptr c, int level)
{
	(void)c;
	(void)level;
}

static bool is_moderate(const JCOEF *block, const JQUANT_TBL *quantum)
{
	long sum = 0;

	for (int k = 0; k < DCTSIZE2; k++)
		sum += labs((long)block[k] * quantum->quantval[k]);
	return sum <= SUM_MAX;
}

static bool are_moderate(j_decompress_ptr in, jvirt_barray_ptr *arrays)
{
	bool result = true;

	for (int c = 0; c < in->num_components; c++) {
		const jpeg_component_info *ci = &in->comp_info[c];

		for (JDIMENSION y = 0; y < ci->height_in_blocks; y++) {
			JBLOCKARRAY row = in->mem->access_virt_barray((j_common_ptr)in, arrays[c],
			                                              y, 1, FALSE);

			for (JDIMENSION x = 0; x < ci->width_in_blocks; x++)
				result = result && ci->quant_table &&
				         is_moderate(row[0][x], ci->quant_table);
		}
	}
	return result;
}

static bool has_moderate_coefficients(const uint8_t *jpeg, size_t size)
{
	struct jpeg_decompress_struct in;
	struct jpeg_error_mgr errors;
	jmp_buf failed;

	in.err = jpeg_std_error(&errors);
	errors.error_exit = on_error;
	errors.emit_message = on_message;
	in.client_data = &failed;
	jpeg_create_decompress(&in);
	if (setjmp(failed)) {
		jpeg_destroy_decompress(&in);
		return false;
	}
	jpeg_mem_src(&in, jpeg, size);
	jpeg_read_header(&in, TRUE);
	bool result = are_moderate(&in, jpeg_read_coefficients(&in));

	jpeg_destroy_decompress(&in);
	return result;
}

struct decode_comparison decode_compare(const uint8_t *jpeg, size_t size, int dct_size)
{
	struct result own = decode(jpeg, size, dct_size, false),
		      theirs = decode(jpeg, size, dct_size, true);
	struct decode_comparison c = { .is_own = own.is_own,
		                       .is_done = own.is_done,
		                       .has_lost = own.has_lost };

	if (own.is_open != theirs.is_open || own.is_done != theirs.is_done)
		c.difference = "only one decodes it";
	else if (theirs.has_lost && !own.has_lost)
		c.difference = "only libjpeg sees the damage";
	else if (!is_same_picture(own.picture, theirs.picture) &&
	         has_moderate_coefficients(jpeg, size))
		c.difference = "other planes";
	picture_unref(own.picture);
	picture_unref(theirs.picture);
	return c;
}
