/* entropy_file.c - libjpeg encodes them with tables of four kinds. */
#include "entropy_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "base/check.h"

unsigned entropy_pick(uint32_t *state, unsigned count)
{
	*state = *state * 1103515245 + 12345;
	return (*state >> 8) % count;
}

struct entropy_file entropy_file_random(uint32_t *state, int side_max)
{
	static const int samplings[] = { 0x11, 0x22, 0x21, 0x12, 0x41, 0x14, 0x31, 0x42 };
	static const int components[] = { 3, 1, 3, 4 };
	static const unsigned restarts[] = { 0, 0, 1, 2, 7 };
	struct entropy_file f;

	f.width = 1 + (int)entropy_pick(state, (unsigned)side_max);
	f.height = 1 + (int)entropy_pick(state, (unsigned)side_max);
	f.quality = 1 + (int)entropy_pick(state, 100);
	f.components = components[entropy_pick(state, COUNT_OF(components))];
	f.sampling = samplings[entropy_pick(state, COUNT_OF(samplings))];
	f.tables = entropy_pick(state, ENTROPY_TABLES_COUNT);
	f.restart = restarts[entropy_pick(state, COUNT_OF(restarts))];
	f.content = entropy_pick(state, 4);
	if (f.components == 4 && f.sampling == 0x42)
		f.sampling = 0x41;
	return f;
}

static void set_table(j_compress_ptr c, JHUFF_TBL **to, bool is_dc, enum entropy_tables tables)
{
	JHUFF_TBL *t = jpeg_alloc_huff_table((j_common_ptr)c);
	unsigned n = 0, last = is_dc ? 11 : 0xff, count;

	memset(t, 0, sizeof *t);
	for (unsigned i = 0; i <= last; i++) {
		unsigned symbol = tables == ENTROPY_FLAT ? i : last - i;

		if (is_dc || (symbol & 15) <= 10)
			t->huffval[n++] = (UINT8)symbol;
	}
	count = n;
	for (unsigned length = 1; length < 8 && tables == ENTROPY_UPSIDE_DOWN; length++, count--)
		t->bits[length] = 1;
	t->bits[tables == ENTROPY_FLAT ? 9 : 16] = (UINT8)count;
	*to = t;
}

static void set_tables(j_compress_ptr c, enum entropy_tables tables)
{
	c->optimize_coding = tables == ENTROPY_OPTIMIZED;
	for (int i = 0; i < 2 && tables >= ENTROPY_FLAT; i++) {
		set_table(c, &c->dc_huff_tbl_ptrs[i], true, tables);
		set_table(c, &c->ac_huff_tbl_ptrs[i], false, tables);
	}
}

static void fill_row(uint8_t *row, int n, int y, unsigned content, uint32_t *state)
{
	for (int x = 0; x < n; x++) {
		unsigned extreme = entropy_pick(state, 2) * 255;

		row[x] = content == 0   ? 77
		         : content == 1 ? (uint8_t)(x * 3 + y * 2)
		         : content == 2 ? (uint8_t)(x * 3 + y * 2 + (int)entropy_pick(state, 40))
		                        : (uint8_t)extreme;
	}
}

uint8_t *entropy_file_make(const struct entropy_file *f, uint32_t *state, size_t *size)
{
	static const J_COLOR_SPACE spaces[] = { 0, JCS_GRAYSCALE, 0, JCS_YCbCr, JCS_CMYK };
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	uint8_t row[ENTROPY_FILE_SIDE_MAX * 4], *jpeg = NULL;
	JSAMPROW rows[] = { row };
	unsigned long length = 0;

	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &jpeg, &length);
	c.image_width = (JDIMENSION)f->width;
	c.image_height = (JDIMENSION)f->height;
	c.input_components = f->components;
	c.in_color_space = spaces[f->components];
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, f->quality, TRUE);
	for (int i = 0; i < f->components; i++)
		c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
	c.comp_info[0].h_samp_factor = f->sampling / 16;
	c.comp_info[0].v_samp_factor = f->sampling % 16;
	c.restart_interval = f->restart;
	set_tables(&c, f->tables);
	jpeg_start_compress(&c, TRUE);
	for (int y = 0; y < f->height; y++) {
		fill_row(row, f->width * f->components, y, f->content, state);
		jpeg_write_scanlines(&c, rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	*size = length;
	return jpeg;
}
