/*
 * encoder_compare.c - encodes a picture by libjpeg with the Huffman tables of another file.
 */
#include "encoder_compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define LINES_MAX 16 /* of an MCU */

static void set_up(struct jpeg_compress_struct *out, unsigned quality, enum chroma chroma,
                   const struct picture *p)
{
	out->image_width = (JDIMENSION)p->width;
	out->image_height = (JDIMENSION)p->height;
	out->input_components = chroma == CHROMA_NONE ? 1 : 3;
	out->in_color_space = chroma == CHROMA_NONE ? JCS_GRAYSCALE : JCS_YCbCr;
	jpeg_set_defaults(out);
	jpeg_set_quality(out, (int)quality, TRUE);
	if (chroma == CHROMA_444)
		out->comp_info[0].h_samp_factor = out->comp_info[0].v_samp_factor = 1;
	out->raw_data_in = TRUE;
	out->dct_method = JDCT_ISLOW;
}

static void take_tables(struct jpeg_compress_struct *out, const uint8_t *data, size_t size)
{
	struct jpeg_decompress_struct in;
	struct jpeg_error_mgr err;

	in.err = jpeg_std_error(&err);
	jpeg_create_decompress(&in);
	jpeg_mem_src(&in, data, size);
	jpeg_read_header(&in, TRUE);
	for (int t = 0; t < (out->num_components > 1 ? 2 : 1); t++) {
		*out->dc_huff_tbl_ptrs[t] = *in.dc_huff_tbl_ptrs[t];
		*out->ac_huff_tbl_ptrs[t] = *in.ac_huff_tbl_ptrs[t];
	}
	jpeg_destroy_decompress(&in);
}

static void write_rows(struct jpeg_compress_struct *out, const struct picture *p)
{
	JSAMPROW rows[3][LINES_MAX];
	JSAMPARRAY planes[3] = { rows[0], rows[1], rows[2] };

	while (out->next_scanline < out->image_height) {
		int first = (int)out->next_scanline / out->max_v_samp_factor;

		for (int c = 0; c < out->num_components; c++) {
			const struct plane *q = &p->plane[c];
			int factor = out->comp_info[c].v_samp_factor;

			for (int i = 0; i < DCTSIZE * factor; i++) {
				int y = first * factor + i;

				rows[c][i] =
					q->data + (y < q->height ? y : q->height - 1) * q->stride;
			}
		}
		jpeg_write_raw_data(out, planes, (JDIMENSION)(DCTSIZE * out->max_v_samp_factor));
	}
}

bool is_file_of_libjpeg(const uint8_t *data, size_t size, unsigned quality, enum chroma chroma,
                        const struct picture *p, const uint8_t *icc, size_t icc_size)
{
	struct jpeg_compress_struct out;
	struct jpeg_error_mgr err;
	unsigned char *made = NULL;
	unsigned long made_size = 0;

	out.err = jpeg_std_error(&err);
	jpeg_create_compress(&out);
	jpeg_mem_dest(&out, &made, &made_size);
	set_up(&out, quality, chroma, p);
	take_tables(&out, data, size);
	jpeg_start_compress(&out, TRUE);
	if (icc_size)
		jpeg_write_icc_profile(&out, icc, (unsigned)icc_size);
	write_rows(&out, p);
	jpeg_finish_compress(&out);
	jpeg_destroy_compress(&out);
	bool same = made_size == size && memcmp(made, data, size) == 0;

	free(made);
	return same;
}
