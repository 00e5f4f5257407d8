/*
 * dataset_jpeg.c - paints a scene straight into libjpeg's planes, already subsampled.
 *
 * Raw planes spare libjpeg colour conversion and subsampling, and us half the chroma. Upright pictures are
 * painted an MCU row at a time; turned ones go through whole planes. Knows nothing of files. Any thread, with an encoder of its own.
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
	uint8_t *plane[3]; /* for turned pictures, upright */
	size_t plane_size[3];
	uint8_t rows[3][ROWS_MAX][SCENE_SIDE_MAX];
	struct scene_painter painter;
	struct scene scene;
};

/* How the components lie: luma pixels per chroma sample, in the stored picture. */
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
	unsigned i;

	if (!e)
		return;
	jpeg_destroy_compress(&e->jpeg); /* harmless on zeroes */
	free(e->output);
	for (i = 0; i < 3; i++)
		free(e->plane[i]);
	free(e);
}

struct scene *encoder_scene(struct encoder *e)
{
	return &e->scene;
}

/* ---- painting ---- */

static bool is_turned(unsigned orientation)
{
	return orientation >= 5;
}

/* Paints whole upright planes; chroma is as dense as it will be once turned. */
static int paint_planes(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail)
{
	struct lattice l = lattice_of(form->sampling);
	int32_t across = is_turned(form->orientation) ? l.down : l.across, down = is_turned(form->orientation) ? l.across : l.down;
	int32_t wide = (form->width + across - 1) / across, high = (form->height + down - 1) / down, y;
	int i;

	for (i = 0; i < l.components; i++) {
		size_t size = i ? (size_t)wide * (size_t)high : (size_t)form->width * (size_t)form->height;

		if (e->plane_size[i] < size) {
			free(e->plane[i]);
			e->plane[i] = malloc(size);
			e->plane_size[i] = e->plane[i] ? size : 0;
			if (!e->plane[i])
				return -ENOMEM;
		}
	}
	for (y = 0; y < form->height; y++)
		scene_paint_luma(s, &e->painter, y, form->width, detail, e->plane[0] + (ptrdiff_t)y * form->width);
	for (y = 0; y < high && l.components == 3; y++)
		scene_paint_chroma(s, &e->painter, y * down, wide, across, detail, e->plane[1] + (ptrdiff_t)y * wide,
		                   e->plane[2] + (ptrdiff_t)y * wide);
	return 0;
}

/* Where sample (x, y) of the stored plane is in the upright plane of w by h: the EXIF specification's table of orientations. */
static size_t upright(unsigned orientation, int32_t x, int32_t y, int32_t w, int32_t h)
{
	int32_t column = is_turned(orientation) ? y : x, row = is_turned(orientation) ? x : y;

	if (column >= w)
		column = w - 1; /* padding to whole MCUs repeats the edge */
	if (row >= h)
		row = h - 1;
	if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7)
		column = w - 1 - column;
	if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8)
		row = h - 1 - row;
	return (size_t)row * (size_t)w + (size_t)column;
}

/* One MCU row of the stored picture, fetched from the upright planes. */
static void fetch_rows(struct encoder *e, const struct jpeg_form *form, int32_t top, int32_t count)
{
	struct lattice l = lattice_of(form->sampling);
	bool turned = is_turned(form->orientation);
	int i;

	for (i = 0; i < l.components; i++) {
		int32_t across = i ? l.across : 1, down = i ? l.down : 1;
		int32_t upright_across = turned ? down : across, upright_down = turned ? across : down;
		int32_t w = (form->width + upright_across - 1) / upright_across, h = (form->height + upright_down - 1) / upright_down;
		int32_t wide = (int32_t)e->jpeg.comp_info[i].width_in_blocks * DCTSIZE, x, y;

		for (y = 0; y < count / down; y++)
			for (x = 0; x < wide; x++)
				e->rows[i][y][x] = e->plane[i][upright(form->orientation, x, top / down + y, w, h)];
	}
}

static void paint_rows(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail, int32_t top,
                       int32_t count)
{
	struct lattice l = lattice_of(form->sampling);
	int32_t wide = (int32_t)e->jpeg.comp_info[0].width_in_blocks * DCTSIZE, y;

	for (y = 0; y < count; y++)
		scene_paint_luma(s, &e->painter, top + y, wide, detail, e->rows[0][y]);
	if (l.components == 1)
		return;
	wide = (int32_t)e->jpeg.comp_info[1].width_in_blocks * DCTSIZE;
	for (y = 0; y < count / l.down; y++)
		scene_paint_chroma(s, &e->painter, top + y * l.down, wide, l.across, detail, e->rows[1][y], e->rows[2][y]);
}

/* ---- encoding ---- */

static void set_parameters(struct encoder *e, const struct jpeg_form *form, int32_t width, int32_t height)
{
	struct jpeg_compress_struct *jpeg = &e->jpeg;
	struct lattice l = lattice_of(form->sampling);
	int i;

	jpeg->image_width = (JDIMENSION)width;
	jpeg->image_height = (JDIMENSION)height;
	jpeg->input_components = l.components;
	jpeg->in_color_space = l.components == 3 ? JCS_YCbCr : JCS_GRAYSCALE;
	jpeg_set_defaults(jpeg);
	jpeg_set_quality(jpeg, form->quality, TRUE);
	jpeg->raw_data_in = TRUE;
	jpeg->optimize_coding = form->optimised ? TRUE : FALSE;
	jpeg->write_JFIF_header = form->has_jfif ? TRUE : FALSE;
	jpeg->restart_in_rows = (int)form->restart_rows;
	for (i = 0; i < l.components; i++) {
		jpeg->comp_info[i].h_samp_factor = i ? 1 : l.across;
		jpeg->comp_info[i].v_samp_factor = i ? 1 : l.down;
	}
	if (form->progressive)
		jpeg_simple_progression(jpeg);
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

/* Leaves by longjmp if libjpeg fails. */
static void encode(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail, int32_t sample)
{
	bool turned = sample == 1 && form->orientation > 1;
	bool swapped = turned && is_turned(form->orientation);
	int32_t width = swapped ? form->height : form->width, height = swapped ? form->width : form->height;
	int32_t mcu = jpeg_mcu_height(form->sampling), first = sample / 2;
	int32_t count = ((height + mcu - 1) / mcu - first + sample - 1) / sample, i;

	assert(count >= 1);
	set_parameters(e, form, width, sample == 1 ? height : count * mcu);
	jpeg_start_compress(&e->jpeg, TRUE);
	for (i = 0; i < count; i++) {
		if (turned)
			fetch_rows(e, form, i * mcu, mcu);
		else
			paint_rows(e, s, form, detail, (first + i * sample) * mcu, mcu);
		write_rows(e, mcu);
	}
	jpeg_finish_compress(&e->jpeg);
}

int encoder_encode(struct encoder *e, const struct scene *s, const struct jpeg_form *form, int32_t detail, int32_t sample,
                   struct jpeg_stream *stream, uint32_t *share)
{
	int err = sample == 1 && form->orientation > 1 ? paint_planes(e, s, form, detail) : 0;

	if (err)
		return err;
	e->status = 0;
	if (setjmp(e->escape)) {
		jpeg_abort_compress(&e->jpeg);
		return e->status;
	}
	encode(e, s, form, detail, sample);
	stream->data = e->output;
	stream->size = e->output_size - e->destination.free_in_buffer;
	*share = sample == 1 ? 65536 : (uint32_t)(((uint64_t)e->jpeg.image_height << 16) / (uint64_t)form->height);
	return 0;
}
