/*
 * dataset_jpeg.c - paints a scene straight into libjpeg's planes, already subsampled.
 *
 * Raw planes spare libjpeg colour conversion and subsampling, and us half the chroma. Knows nothing of files. Any thread, with
 * an encoder of its own.
 */
#include "dataset_jpeg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "../src/check.h"
#include "dataset_scene.h"

#define OUTPUT_FIRST (256u << 10)
#define ROWS_MAX 16 /* of luma in an MCU row */

struct encoder {
	struct jpeg_compress_struct jpeg;
	struct jpeg_error_mgr error;
	struct jpeg_destination_mgr destination;
	jmp_buf escape;
	int status;
	uint8_t *output;
	size_t output_size;
	uint8_t rows[3][ROWS_MAX][SCENE_SIDE_MAX];
	struct scene_painter painter;
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

/* ---- libjpeg's call-backs ---- */

static void on_error(j_common_ptr common)
{
	struct encoder *e = common->client_data;

	if (!e->status)
		e->status = common->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EIO;
	longjmp(e->escape, 1);
}

static void on_message(j_common_ptr common)
{
	(void)common;
}

static void on_start(j_compress_ptr jpeg)
{
	struct encoder *e = jpeg->client_data;

	e->destination.next_output_byte = e->output;
	e->destination.free_in_buffer = e->output_size;
}

static boolean on_full(j_compress_ptr jpeg)
{
	struct encoder *e = jpeg->client_data;
	size_t size = e->output_size * 2;
	uint8_t *bigger = realloc(e->output, size);

	if (!bigger) {
		e->status = -ENOMEM;
		on_error((j_common_ptr)jpeg);
	}
	e->destination.next_output_byte = bigger + e->output_size;
	e->destination.free_in_buffer = size - e->output_size;
	e->output = bigger;
	e->output_size = size;
	return TRUE;
}

static void on_end(j_compress_ptr jpeg)
{
	(void)jpeg;
}

/* Returns 0, or -1 if libjpeg finds no memory or is not the one we were built for. */
static int create(struct encoder *e)
{
	e->jpeg.err = jpeg_std_error(&e->error);
	e->error.error_exit = on_error;
	e->error.output_message = on_message;
	e->jpeg.client_data = e;
	if (setjmp(e->escape))
		return -1;
	jpeg_create_compress(&e->jpeg);
	e->jpeg.dest = &e->destination;
	e->destination.init_destination = on_start;
	e->destination.empty_output_buffer = on_full;
	e->destination.term_destination = on_end;
	return 0;
}

struct encoder *encoder_new(void)
{
	struct encoder *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->output = malloc(OUTPUT_FIRST);
	e->output_size = OUTPUT_FIRST;
	if (!e->output || create(e)) {
		encoder_free(e);
		return NULL;
	}
	return e;
}

void encoder_free(struct encoder *e)
{
	if (!e)
		return;
	jpeg_destroy_compress(&e->jpeg); /* harmless on zeroes */
	free(e->output);
	free(e);
}

/* A row of samples is continued to whole blocks. */
static void extend(uint8_t *row, int32_t count, JDIMENSION blocks)
{
	memset(row + count, row[count - 1], (size_t)blocks * DCTSIZE - (size_t)count);
}

/* A row of MCUs, from pixel row top on. What lies below the picture repeats its last row. */
static void paint_rows(struct encoder *e, const struct scene *s, struct lattice l, int32_t detail, int32_t top)
{
	int32_t rows = DCTSIZE * l.down, wide = (s->width + l.across - 1) / l.across, y;

	for (y = 0; y < rows; y++) {
		scene_paint_luma(s, &e->painter, top + y < s->height ? top + y : s->height - 1, detail, e->rows[0][y]);
		extend(e->rows[0][y], s->width, e->jpeg.comp_info[0].width_in_blocks);
	}
	for (y = 0; y < DCTSIZE && l.components == 3; y++) {
		int32_t at = top + y * l.down < s->height ? top + y * l.down : s->height - 1;

		scene_paint_chroma(s, &e->painter, at, wide, l.across, detail, e->rows[1][y], e->rows[2][y]);
		extend(e->rows[1][y], wide, e->jpeg.comp_info[1].width_in_blocks);
		extend(e->rows[2][y], wide, e->jpeg.comp_info[2].width_in_blocks);
	}
}

static void write_rows(struct encoder *e, int32_t count)
{
	JSAMPROW row[3][ROWS_MAX];
	JSAMPARRAY planes[3] = { row[0], row[1], row[2] };
	int i, y;

	for (i = 0; i < 3; i++) {
		for (y = 0; y < ROWS_MAX; y++)
			row[i][y] = e->rows[i][y];
	}
	jpeg_write_raw_data(&e->jpeg, planes, (JDIMENSION)count);
}

static void set_parameters(struct encoder *e, const struct jpeg_form *form, struct lattice l, int32_t height)
{
	struct jpeg_compress_struct *jpeg = &e->jpeg;
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

/* Leaves by longjmp if libjpeg fails. */
static void encode(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail, int32_t sample)
{
	struct lattice l = lattice_of(form->sampling);
	int32_t mcu = DCTSIZE * l.down, first = sample / 2, count, i;

	count = ((s->height + mcu - 1) / mcu - first + sample - 1) / sample;
	assert(count >= 1);
	set_parameters(e, form, l, sample == 1 ? s->height : count * mcu);
	jpeg_start_compress(&e->jpeg, TRUE);
	for (i = 0; i < count; i++) {
		paint_rows(e, s, l, detail, (first + i * sample) * mcu);
		write_rows(e, mcu);
	}
	jpeg_finish_compress(&e->jpeg);
}

int encoder_encode(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail, int32_t sample,
                   struct jpeg_stream *stream, int32_t *sampled)
{
	assert(s->width == form->width && s->height == form->height);
	e->status = 0;
	if (setjmp(e->escape)) {
		jpeg_abort_compress(&e->jpeg);
		return e->status;
	}
	encode(e, s, form, detail, sample);
	stream->data = e->output;
	stream->size = e->output_size - e->destination.free_in_buffer;
	*sampled = (int32_t)e->jpeg.image_height;
	return 0;
}
