/*
 * jpeg_fixture.c - JPEG files of every structure, for tests of the pixel library.
 */
#include "jpeg_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int fixture_sample(const struct fixture *f, int x, int y, int c)
{
	double u = (x + .5) / f->width, v = (y + .5) / f->height;
	double s = c == 0 ? 40 + 150 * u + 40 * v : c == 1 ? 60 + 120 * v * u : 200 - 110 * v;

	if (c == 3)
		s = 20 + 60 * u * v;
	s += 8 * sin(x * .13) * cos(y * .11);
	return (int)(s < 0 ? 0 : s > 255 ? 255 : s);
}

static void fixture_setup(struct jpeg_compress_struct *c, const struct fixture *f,
                          jpeg_scan_info *scans)
{
	c->image_width = (JDIMENSION)f->width;
	c->image_height = (JDIMENSION)f->height;
	c->input_components = f->components;
	c->in_color_space = f->from;
	jpeg_set_defaults(c);
	jpeg_set_colorspace(c, f->in);
	jpeg_set_quality(c, f->quality ? f->quality : 90, TRUE);
	for (int i = 0; i < c->num_components; i++)
		if (f->sampling[i][0]) {
			c->comp_info[i].h_samp_factor = f->sampling[i][0];
			c->comp_info[i].v_samp_factor = f->sampling[i][1];
		}
	if (f->is_progressive)
		jpeg_simple_progression(c);
	if (f->is_per_component) {
		for (int i = 0; i < c->num_components; i++)
			scans[i] = (jpeg_scan_info){
				.comps_in_scan = 1, .component_index = { i }, .Ss = 0, .Se = 63
			};
		c->scan_info = scans;
		c->num_scans = c->num_components;
	}
	c->arith_code = f->is_arithmetic;
	c->restart_in_rows = (int)f->restart_rows;
	if (f->no_adobe)
		c->write_Adobe_marker = FALSE;
	c->raw_data_in = f->is_raw;
}

static void fixture_write_raw(struct jpeg_compress_struct *c, const struct fixture *f)
{
	static JSAMPLE samples[4][32][1024];
	JSAMPROW rows[4][32];
	JSAMPARRAY planes[4] = { rows[0], rows[1], rows[2], rows[3] };

	for (int top = 0; c->next_scanline < c->image_height; top++) {
		for (int i = 0; i < c->num_components; i++) {
			const jpeg_component_info *ci = &c->comp_info[i];
			int h = ci->h_samp_factor, v = ci->v_samp_factor;

			for (int y = 0; y < 8 * v; y++) {
				rows[i][y] = samples[i][y];
				for (int x = 0; x < 8 * (int)ci->width_in_blocks; x++)
					samples[i][y][x] = (JSAMPLE)fixture_sample(
						f, x * c->max_h_samp_factor / h,
						(top * 8 * v + y) * c->max_v_samp_factor / v, i);
			}
		}
		jpeg_write_raw_data(c, planes, (JDIMENSION)(8 * c->max_v_samp_factor));
	}
}

static void fixture_write_pixels(struct jpeg_compress_struct *c, const struct fixture *f)
{
	JSAMPLE *row = malloc((size_t)f->width * (size_t)f->components);

	while (c->next_scanline < c->image_height) {
		for (int x = 0; x < f->width; x++)
			for (int i = 0; i < f->components; i++)
				row[x * f->components + i] =
					(JSAMPLE)fixture_sample(f, x, (int)c->next_scanline, i);
		jpeg_write_scanlines(c, &row, 1);
	}
	free(row);
}

uint8_t *fixture_make(const struct fixture *f, size_t *size)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr err;
	jpeg_scan_info scans[8];
	unsigned char *data = NULL;
	unsigned long length = 0;

	c.err = jpeg_std_error(&err);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &data, &length);
	fixture_setup(&c, f, scans);
	jpeg_start_compress(&c, TRUE);
	if (f->app1)
		jpeg_write_marker(&c, JPEG_APP0 + 1, f->app1, (unsigned)f->app1_size);
	if (f->icc)
		jpeg_write_icc_profile(&c, f->icc, (unsigned)f->icc_size);
	if (f->is_raw)
		fixture_write_raw(&c, f);
	else
		fixture_write_pixels(&c, f);
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	*size = length;
	return data;
}

size_t fixture_exif(uint8_t *to, unsigned orientation, bool is_big_endian)
{
	static const uint8_t little[] =
		"Exif\0\0II*\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x01\0\0\0\0\0\0\0"
		"\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0\0";
	static const uint8_t big[] = "Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x0f\0\x02\0\0\0\x01\0\0\0\0"
				     "\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0";
	const size_t size = sizeof(little) - 1, at = size - 8;

	memcpy(to, is_big_endian ? big : little, size);
	to[at + (is_big_endian ? 1 : 0)] = (uint8_t)orientation;
	return size;
}

size_t find_sof(const uint8_t *jpeg, size_t size)
{
	for (size_t i = 2; i + 12 < size; i++)
		if (jpeg[i] == 0xff &&
		    (jpeg[i + 1] == 0xc0 || jpeg[i + 1] == 0xc1 || jpeg[i + 1] == 0xc2))
			return i;
	return 0;
}

size_t find_marker(const uint8_t *jpeg, size_t size, unsigned marker)
{
	for (size_t i = 2; i + 1 < size; i++)
		if (jpeg[i] == 0xff && jpeg[i + 1] == marker)
			return i;
	return 0;
}

uint8_t *jpeg_rewritten(const uint8_t *data, size_t size, bool is_progressive, unsigned restart,
                        size_t *to_size)
{
	struct jpeg_decompress_struct in;
	struct jpeg_compress_struct out;
	struct jpeg_error_mgr in_err, out_err;
	unsigned char *made = NULL;
	unsigned long made_size = 0;

	in.err = jpeg_std_error(&in_err);
	out.err = jpeg_std_error(&out_err);
	jpeg_create_decompress(&in);
	jpeg_create_compress(&out);
	jpeg_mem_src(&in, data, size);
	jpeg_read_header(&in, TRUE);
	jvirt_barray_ptr *arrays = jpeg_read_coefficients(&in);

	jpeg_copy_critical_parameters(&in, &out);
	out.optimize_coding = TRUE;
	if (is_progressive)
		jpeg_simple_progression(&out);
	out.restart_interval = restart;
	jpeg_mem_dest(&out, &made, &made_size);
	jpeg_write_coefficients(&out, arrays);
	jpeg_finish_compress(&out);
	jpeg_destroy_compress(&out);
	jpeg_finish_decompress(&in);
	jpeg_destroy_decompress(&in);
	if (in_err.num_warnings > 0 || out_err.num_warnings > 0)
		abort();
	*to_size = made_size;
	return made;
}

uint64_t jpeg_coefficients(const uint8_t *data, size_t size, struct jpeg_decompress_struct *in)
{
	struct jpeg_error_mgr err;
	jvirt_barray_ptr *arrays;
	uint64_t sum = 0;

	in->err = jpeg_std_error(&err);
	jpeg_create_decompress(in);
	jpeg_mem_src(in, data, size);
	jpeg_read_header(in, TRUE);
	arrays = jpeg_read_coefficients(in);
	for (int c = 0; c < in->num_components; c++)
		for (JDIMENSION y = 0; y < in->comp_info[c].height_in_blocks; y++) {
			JBLOCKARRAY rows = in->mem->access_virt_barray((j_common_ptr)in, arrays[c],
			                                               y, 1, FALSE);

			for (JDIMENSION x = 0; x < in->comp_info[c].width_in_blocks; x++)
				for (int k = 0; k < DCTSIZE2; k++)
					sum = sum * UINT64_C(6364136223846793005) +
					      (uint64_t)(rows[0][x][k] + 32768);
		}
	if (err.num_warnings > 0)
		abort();
	return sum;
}
