/*
 * encoder.c - libjpeg, from planes to a file in pool memory that grows as it must.
 */
#include "encoder.h"

#include <errno.h>
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

static void file_start(j_compress_ptr c)
{
	struct encoder_file *f = &((struct encoder *)c->client_data)->file;

	f->data = pool_get_sized(f->size_first, &f->size);
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

static void write_rows(struct jpeg_compress_struct *out, const struct picture *p)
{
	int mcu_rows = p->plane_count == 1 ? MCU_ROWS_GREY : MCU_ROWS_COLOR;
	JSAMPROW rows[3][MCU_ROWS_COLOR];
	JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};

	while (out->next_scanline < out->image_height) {
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
}

int encoder_encode(struct encoder *e, unsigned index, const struct picture *p, const uint8_t *icc, size_t icc_size,
                   uint8_t **data, size_t *size)
{
	struct jpeg_compress_struct *out = &e->out[index][p->plane_count == 3];

	assert(index < e->quality_count && (p->plane_count == 1 || p->plane_count == 3));
	e->file.data = NULL;
	/* Photographs take a tenth of a byte per sample at usual qualities: few will have to grow. */
	e->file.size_first = FILE_BYTES_MIN + icc_size + icc_size / 16 + (size_t)p->width * (size_t)p->height / 8;
	if (setjmp(e->errors.failed)) {
		int message = e->errors.mgr.msg_code;

		jpeg_abort_compress(out);
		pool_put(e->file.data);
		return message == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
	}
	out->image_width = (JDIMENSION)p->width;
	out->image_height = (JDIMENSION)p->height;
	jpeg_start_compress(out, TRUE);
	if (icc_size)
		jpeg_write_icc_profile(out, icc, (unsigned)icc_size);
	write_rows(out, p);
	jpeg_finish_compress(out);
	*data = e->file.data;
	*size = e->file.size;
	return 0;
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

static void compress_setup(struct encoder *e, struct jpeg_compress_struct *out, unsigned quality, int is_color)
{
	jpeg_create_compress(out);
	out->dest = &e->file.mgr;
	out->input_components = is_color ? 3 : 1;
	out->in_color_space = is_color ? JCS_YCbCr : JCS_GRAYSCALE;
	jpeg_set_defaults(out); /* 4:2:0 for YCbCr */
	jpeg_set_quality(out, (int)quality, TRUE);
	out->raw_data_in = TRUE;
	out->dct_method = JDCT_ISLOW;
}

int encoder_init(struct encoder *e, const unsigned *quality, unsigned quality_count)
{
	assert(quality_count <= ENCODER_QUALITY_MAX);
	memset(e, 0, sizeof(*e));
	jpeg_std_error(&e->errors.mgr);
	e->errors.mgr.error_exit = on_error;
	e->errors.mgr.emit_message = on_message;
	e->file.mgr.init_destination = file_start;
	e->file.mgr.empty_output_buffer = file_grow;
	e->file.mgr.term_destination = file_end;
	e->quality_count = quality_count;
	if (setjmp(e->errors.failed)) {
		encoder_fini(e);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < quality_count; i++)
		for (int is_color = 0; is_color < 2; is_color++) {
			struct jpeg_compress_struct *out = &e->out[i][is_color];

			out->err = &e->errors.mgr;
			out->client_data = e;
			compress_setup(e, out, quality[i], is_color);
		}
	return 0;
}

void encoder_fini(struct encoder *e)
{
	for (unsigned i = 0; i < e->quality_count; i++)
		for (int is_color = 0; is_color < 2; is_color++)
			jpeg_destroy_compress(&e->out[i][is_color]);
	e->quality_count = 0;
}
