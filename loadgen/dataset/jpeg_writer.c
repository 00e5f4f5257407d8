/*
 * jpeg_writer.c - paints a scene into libjpeg's subsampled planes.
 *
 * Raw planes save libjpeg's colour conversion and subsampling, and painting half the chroma. Knows
 * no files. Any thread, with a writer of its own.
 */
#include "jpeg_writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "base/check.h"
#include "paint.h"
#include "scene.h"

#define OUTPUT_FIRST (256u << 10)
#define ROWS_MAX 16 /* of luma in an MCU row */

struct jpeg_writer {
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr error;
	struct jpeg_destination_mgr destination;
	jmp_buf escape;
	int status;
	uint8_t *output;
	size_t output_size;
	uint8_t rows[3][ROWS_MAX][SCENE_SIDE_MAX];
	struct painter painter;
};

/* Luma pixels per chroma sample. */
struct lattice {
	int components;
	int32_t across, down;
};

static struct lattice lattice_of(enum jpeg_sampling sampling)
{
	switch (sampling) {
	case JPEG_420:
		return (struct lattice){ 3, 2, 2 };
	case JPEG_422:
		return (struct lattice){ 3, 2, 1 };
	case JPEG_444:
		return (struct lattice){ 3, 1, 1 };
	case JPEG_GREY:
		break;
	}
	return (struct lattice){ 1, 1, 1 };
}

int32_t jpeg_mcu_height(enum jpeg_sampling sampling)
{
	return 8 * lattice_of(sampling).down;
}

/* ---- libjpeg's callbacks ---- */

static void on_error(j_common_ptr common)
{
	struct jpeg_writer *w = common->client_data;

	if (!w->status)
		w->status = common->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EIO;
	longjmp(w->escape, 1);
}

static void on_message(j_common_ptr common)
{
	(void)common;
}

static void on_start(j_compress_ptr jpeg)
{
	struct jpeg_writer *w = jpeg->client_data;

	w->destination.next_output_byte = w->output;
	w->destination.free_in_buffer = w->output_size;
}

static boolean on_full(j_compress_ptr jpeg)
{
	struct jpeg_writer *w = jpeg->client_data;
	size_t size = w->output_size * 2;
	uint8_t *bigger = realloc(w->output, size);

	if (!bigger) {
		w->status = -ENOMEM;
		on_error((j_common_ptr)jpeg);
	}
	w->destination.next_output_byte = bigger + w->output_size;
	w->destination.free_in_buffer = size - w->output_size;
	w->output = bigger;
	w->output_size = size;
	return TRUE;
}

static void on_end(j_compress_ptr jpeg)
{
	(void)jpeg;
}

struct jpeg_writer *jpeg_writer_new(void)
{
	struct jpeg_writer *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->output = malloc(OUTPUT_FIRST);
	w->output_size = OUTPUT_FIRST;
	if (w->output)
		return w;
	free(w);
	return NULL;
}

void jpeg_writer_free(struct jpeg_writer *w)
{
	if (!w)
		return;
	free(w->output);
	free(w);
}

/* Extends a row of samples to whole blocks. */
static void extend(uint8_t *row, int32_t count, JDIMENSION blocks)
{
	memset(row + count, row[count - 1], (size_t)blocks * DCTSIZE - (size_t)count);
}

/* Paints a row of MCUs from pixel row `top` on. Rows below the picture repeat its last row. */
static void paint_rows(struct jpeg_writer *w, const struct scene *s, struct lattice l,
                       int32_t detail, int32_t top)
{
	int32_t rows = DCTSIZE * l.down, wide = (s->width + l.across - 1) / l.across, y;

	for (y = 0; y < rows; y++) {
		paint_luma(s, &w->painter, top + y < s->height ? top + y : s->height - 1, detail,
		           w->rows[0][y]);
		extend(w->rows[0][y], s->width, w->jpeg.comp_info[0].width_in_blocks);
	}
	for (y = 0; y < DCTSIZE && l.components == 3; y++) {
		int32_t at = top + y * l.down < s->height ? top + y * l.down : s->height - 1;

		paint_chroma(s, &w->painter, at, wide, l.across, detail, w->rows[1][y],
		             w->rows[2][y]);
		extend(w->rows[1][y], wide, w->jpeg.comp_info[1].width_in_blocks);
		extend(w->rows[2][y], wide, w->jpeg.comp_info[2].width_in_blocks);
	}
}

static void write_rows(struct jpeg_writer *w, int32_t count)
{
	JSAMPROW row[3][ROWS_MAX];
	JSAMPARRAY planes[3] = { row[0], row[1], row[2] };
	int i, y;

	for (i = 0; i < 3; i++) {
		for (y = 0; y < ROWS_MAX; y++)
			row[i][y] = w->rows[i][y];
	}
	jpeg_write_raw_data(&w->jpeg, planes, (JDIMENSION)count);
}

static void set_parameters(struct jpeg_writer *w, const struct jpeg_form *form, struct lattice l,
                           int32_t height)
{
	struct jpeg_compress_struct *jpeg = &w->jpeg;
	int i;

	jpeg->image_width = (JDIMENSION)form->width;
	jpeg->image_height = (JDIMENSION)height;
	jpeg->input_components = l.components;
	jpeg->in_color_space = l.components == 3 ? JCS_YCbCr : JCS_GRAYSCALE;
	jpeg_set_defaults(jpeg);
	jpeg_set_quality(jpeg, form->quality, TRUE);
	jpeg->raw_data_in = TRUE;
	jpeg->optimize_coding = form->is_optimised ? TRUE : FALSE;
	jpeg->write_JFIF_header = form->has_jfif ? TRUE : FALSE;
	jpeg->restart_in_rows = form->has_restarts ? 1 : 0;
	for (i = 0; i < l.components; i++) {
		jpeg->comp_info[i].h_samp_factor = i ? 1 : l.across;
		jpeg->comp_info[i].v_samp_factor = i ? 1 : l.down;
	}
	if (form->is_progressive)
		jpeg_simple_progression(jpeg);
}

/* If libjpeg fails, this ends with longjmp(). */
static void encode(struct jpeg_writer *w, const struct scene *s, const struct jpeg_form *form,
                   int32_t detail, int32_t sample)
{
	struct lattice l = lattice_of(form->sampling);
	int32_t mcu = DCTSIZE * l.down, first = sample / 2, count, i;

	count = ((s->height + mcu - 1) / mcu - first + sample - 1) / sample;
	assert(count >= 1);
	/* a new object, because an old one keeps the Huffman tables of its last picture */
	jpeg_create_compress(&w->jpeg);
	w->jpeg.dest = &w->destination;
	set_parameters(w, form, l, sample == 1 ? s->height : count * mcu);
	jpeg_start_compress(&w->jpeg, TRUE);
	for (i = 0; i < count; i++) {
		paint_rows(w, s, l, detail, (first + i * sample) * mcu);
		write_rows(w, mcu);
	}
	jpeg_finish_compress(&w->jpeg);
}

int jpeg_writer_encode(struct jpeg_writer *w, const struct scene *s, const struct jpeg_form *form,
                       int32_t detail, int32_t sample, struct jpeg_stream *stream, int32_t *sampled)
{
	assert(s->width == form->width && s->height == form->height);
	w->status = 0;
	w->destination.init_destination = on_start;
	w->destination.empty_output_buffer = on_full;
	w->destination.term_destination = on_end;
	w->jpeg.err = jpeg_std_error(&w->error);
	w->error.error_exit = on_error;
	w->error.output_message = on_message;
	w->jpeg.client_data = w;
	if (!setjmp(w->escape))
		encode(w, s, form, detail, sample);
	*sampled = (int32_t)w->jpeg.image_height;
	jpeg_destroy_compress(&w->jpeg);
	stream->data = w->output;
	stream->size = w->output_size - w->destination.free_in_buffer;
	return w->status;
}
