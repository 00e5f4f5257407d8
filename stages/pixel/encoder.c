/*
 * encoder.c - libjpeg, from planes to a file in pool memory that grows as it must.
 */
#include "encoder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>

#include "../../src/check.h"
#include "../../src/mem/pool.h"
#include "picture.h"

/* Headers and tables take 0.6 KB. */
#define FILE_BYTES_MIN 4096
#define MCU_ROWS_COLOR 16
#define MCU_ROWS_GREY 8

/* ---- errors and output ---------------------------------------------------------------------------- */

static void on_error(j_common_ptr c)
{
	struct encoder *e = c->client_data;

	longjmp(e->errors.failed, 1);
}

static void on_message(j_common_ptr c, int level)
{
	(void)c;
	(void)level;
}

/* Photographs take a tenth of a byte per sample at usual qualities: few files will have to grow. */
static size_t size_first(const struct encoder *e)
{
	return FILE_BYTES_MIN + e->icc_size + e->icc_size / 16 + (size_t)e->picture->width * (size_t)e->picture->height / 8;
}

static void file_start(j_compress_ptr c)
{
	struct encoder *e = c->client_data;
	struct encoder_file *f = &e->file;

	f->data = pool_get_sized(size_first(e), &f->size);
	if (!f->data)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	f->mgr.next_output_byte = f->data;
	f->mgr.free_in_buffer = f->size;
}

static boolean file_grow(j_compress_ptr c)
{
	struct encoder_file *f = &((struct encoder *)c->client_data)->file;
	size_t had = f->size, got;
	uint8_t *more = pool_get_sized(2 * had, &got);

	if (!more)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	memcpy(more, f->data, had);
	pool_put(f->data);
	f->data = more;
	f->size = got;
	f->mgr.next_output_byte = more + had;
	f->mgr.free_in_buffer = got - had;
	return TRUE;
}

static void file_end(j_compress_ptr c)
{
	struct encoder_file *f = &((struct encoder *)c->client_data)->file;

	f->size -= f->mgr.free_in_buffer;
}

/* ---- encoding ------------------------------------------------------------------------------------- */

static void start(struct encoder *e)
{
	struct jpeg_compress_struct *out = &e->out;

	out->image_width = (JDIMENSION)e->picture->width;
	out->image_height = (JDIMENSION)e->picture->height;
	jpeg_start_compress(out, TRUE);
	if (e->icc_size)
		jpeg_write_icc_profile(out, e->icc, (unsigned)e->icc_size);
	e->is_started = true;
}

/* One row of MCUs. Below the picture its last line is repeated. */
static void write_row(struct jpeg_compress_struct *out, const struct picture *p)
{
	int mcu_rows = p->plane_count == 1 ? MCU_ROWS_GREY : MCU_ROWS_COLOR;
	JSAMPROW rows[3][MCU_ROWS_COLOR];
	JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};

	for (unsigned c = 0; c < p->plane_count; c++) {
		const struct plane *q = &p->plane[c];
		int high = c ? MCU_ROWS_COLOR / 2 : mcu_rows;
		int first = (int)out->next_scanline / mcu_rows * high;

		for (int i = 0; i < high; i++) {
			int row = first + i < q->height ? first + i : q->height - 1;

			rows[c][i] = q->data + row * q->stride;
		}
	}
	jpeg_write_raw_data(out, planes, (JDIMENSION)mcu_rows);
}

static int advance(struct encoder *e, unsigned rows)
{
	if (!e->is_started)
		start(e);
	for (; rows > 0 && e->out.next_scanline < e->out.image_height; rows--)
		write_row(&e->out, e->picture);
	if (e->out.next_scanline < e->out.image_height)
		return 1;
	jpeg_finish_compress(&e->out);
	return 0;
}

int encoder_advance(struct encoder *e, unsigned rows)
{
	if (setjmp(e->errors.failed))
		return e->errors.mgr.msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
	return advance(e, rows);
}

unsigned encoder_lines_left(const struct encoder *e)
{
	unsigned height = (unsigned)e->picture->height;

	/* libjpeg counts whole rows of MCUs */
	return e->out.next_scanline < height ? height - e->out.next_scanline : 0;
}

void encoder_take(struct encoder *e, uint8_t **data, size_t *size)
{
	assert(e->file.data);
	*data = e->file.data;
	*size = e->file.size;
	e->file.data = NULL;
}

int encoder_encode(unsigned quality, const struct picture *p, const uint8_t *icc, size_t icc_size, uint8_t **data, size_t *size)
{
	struct encoder *e = encoder_new(quality, p, icc, icc_size);
	int err = e ? encoder_advance(e, UINT_MAX) : -ENOMEM;

	if (!err)
		encoder_take(e, data, size);
	encoder_free(e);
	return err;
}

uint64_t encoder_bytes(unsigned quality, unsigned plane_count, int width, int height, size_t icc_size)
{
	uint64_t samples = (uint64_t)width * (uint64_t)height;

	if (plane_count > 1)
		samples += samples / 2 + (uint64_t)width + (uint64_t)height;
	/* Growing by doubling holds one and a half times the final buffer, which is at most twice too large. */
	return FILE_BYTES_MIN + 3 * icc_size + (quality > 90 ? 4 : 1) * samples;
}

/* ---- life ----------------------------------------------------------------------------------------- */

static void setup(struct encoder *e, unsigned quality)
{
	struct jpeg_compress_struct *out = &e->out;
	bool is_color = e->picture->plane_count == 3;

	out->err = jpeg_std_error(&e->errors.mgr);
	out->client_data = e;
	e->errors.mgr.error_exit = on_error;
	e->errors.mgr.emit_message = on_message;
	e->file.mgr.init_destination = file_start;
	e->file.mgr.empty_output_buffer = file_grow;
	e->file.mgr.term_destination = file_end;
	jpeg_create_compress(out);
	out->dest = &e->file.mgr;
	out->input_components = is_color ? 3 : 1;
	out->in_color_space = is_color ? JCS_YCbCr : JCS_GRAYSCALE;
	jpeg_set_defaults(out); /* 4:2:0 for YCbCr */
	jpeg_set_quality(out, (int)quality, TRUE);
	out->raw_data_in = TRUE;
	out->dct_method = JDCT_ISLOW;
}

static bool try_setup(struct encoder *e, unsigned quality)
{
	if (setjmp(e->errors.failed))
		return false;
	setup(e, quality);
	return true;
}

struct encoder *encoder_new(unsigned quality, const struct picture *p, const uint8_t *icc, size_t icc_size)
{
	struct encoder *e = calloc(1, sizeof(*e));

	assert(p->plane_count == 1 || p->plane_count == 3);
	if (!e)
		return NULL;
	e->picture = p;
	e->icc = icc;
	e->icc_size = icc_size;
	if (!try_setup(e, quality)) {
		encoder_free(e);
		return NULL;
	}
	return e;
}

void encoder_free(struct encoder *e)
{
	if (!e)
		return;
	jpeg_destroy_compress(&e->out);
	pool_put(e->file.data);
	free(e);
}
