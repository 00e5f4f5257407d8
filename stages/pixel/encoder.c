/*
 * encoder.c - makes a file by baseline.c, or drives libjpeg from the planes of a picture to a file
 * in pool memory.
 */
#include "encoder.h"

#include <errno.h>
#include <string.h>

#include <jerror.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "baseline.h"
#include "encoder_jailed.h"
#include "libjpeg_private.h"

#define FILE_BYTES_MIN 4096 /* headers and tables take 0.6 KB */
#define MCU_LINES_MAX 16
/* Memory of libjpeg other than coefficients: tables, and statistics of files with their own tables.
 */
#define WORKING_BYTES JPEG_MEMORY_BYTES

/* ---- errors ---- */

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

/* ---- passes of libjpeg after the first one ---- */

/*
 * jpeg_finish_compress() runs them in a single call, which takes seconds for a large progressive
 * picture. These functions run the same passes in steps, as libjpeg-turbo 2 does, and leave it the
 * end of the last pass. Without the private structures of libjpeg (libjpeg_private.h) no pass is
 * left after the first one. A unit test compares the files with those of jpeg_finish_compress().
 */
#if LIBJPEG_HAS_PRIVATE
/* Returns whether a pass follows the current one. */
static bool is_pass_left(const struct encoder *e)
{
	return libjpeg_private_is_usable() && !e->out.master->is_last_pass;
}

/* Starts the next pass. After the last row of the current one. */
static void begin_pass(struct encoder *e)
{
	e->out.master->finish_pass(&e->out);
	e->out.master->prepare_for_pass(&e->out);
	e->pass++;
	e->row = 0;
}

/* Codes one row of MCUs. In passes after the first one. */
static void code_row(struct encoder *e)
{
	if (!e->out.coef->compress_data(&e->out, NULL))
		ERREXIT(&e->out, JERR_CANT_SUSPEND);
}
#else
#define is_pass_left(e) false
#define begin_pass(e) ((void)(e))
#define code_row(e) ((void)(e))
#endif

/* ---- encoding ---- */

static void start(struct encoder *e)
{
	struct jpeg_compress_struct *out = &e->out;

	out->image_width = (JDIMENSION)e->picture->width;
	out->image_height = (JDIMENSION)e->picture->height;
	/* Photographs take a tenth of a byte per sample at usual qualities: few files grow. */
	e->file.size_first = FILE_BYTES_MIN + e->icc_size + e->icc_size / 16 +
	                     (size_t)out->image_width * out->image_height / 8;
	jpeg_start_compress(out, TRUE);
	if (e->icc_size)
		jpeg_write_icc_profile(out, e->icc, (unsigned)e->icc_size);
	e->is_started = true;
}

/* Encodes one row of MCUs. Below the picture its last line is repeated. */
static void write_row(struct encoder *e)
{
	struct jpeg_compress_struct *out = &e->out;
	const struct picture *p = e->picture;
	JSAMPROW rows[3][MCU_LINES_MAX];
	JSAMPARRAY planes[3] = { rows[0], rows[1], rows[2] };

	for (int c = 0; c < out->num_components; c++) {
		const struct plane *q = &p->plane[c];
		int high = DCTSIZE * out->comp_info[c].v_samp_factor, first = (int)e->row * high;

		for (int i = 0; i < high; i++) {
			int row = first + i < q->height ? first + i : q->height - 1;

			rows[c][i] = q->data + row * q->stride;
		}
	}
	jpeg_write_raw_data(out, planes, (JDIMENSION)(DCTSIZE * out->max_v_samp_factor));
}

static int advance(struct encoder *e, unsigned rows)
{
	if (!e->is_started)
		start(e);
	for (; rows > 0; rows--) {
		if (e->row == e->out.total_iMCU_rows) {
			if (!is_pass_left(e))
				break;
			begin_pass(e);
		}
		if (e->pass == 0)
			write_row(e);
		else
			code_row(e);
		e->row++;
	}
	if (e->row < e->out.total_iMCU_rows || is_pass_left(e))
		return 1;
	jpeg_finish_compress(&e->out);
	e->pass = e->pass_count;
	return 0;
}

/* The same by baseline.c, whose second pass codes the notes of the first one. */
static int advance_own(struct encoder *e, unsigned rows)
{
	unsigned count = baseline_rows(e->own);
	bool is_good = true;

	e->is_started = true;
	for (; rows > 0 && is_good && e->pass < e->pass_count; rows--) {
		is_good = e->pass == 0 ? baseline_note(e->own, e->row)
		                       : baseline_code(e->own, count - e->row);
		if (++e->row < count)
			continue;
		if (e->pass++ == 0)
			is_good = is_good && baseline_tables(e->own);
		e->row = 0;
	}
	return is_good ? e->pass < e->pass_count : -ENOMEM;
}

int encoder_advance(struct encoder *e, unsigned rows)
{
	if (e->is_jailed)
		return encoder_jailed_advance(e);
	if (e->own)
		return advance_own(e, rows);
	if (setjmp(e->errors.failed))
		return e->errors.mgr.msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
	return advance(e, rows);
}

unsigned encoder_lines_left(const struct encoder *e)
{
	if (e->is_jailed)
		return (unsigned)e->picture->height;
	unsigned height = (unsigned)e->picture->height,
		 lines = e->row * (e->chroma == CHROMA_420 ? 2 : 1) * DCTSIZE;

	if (!e->is_started)
		return e->pass_count * height;
	if (e->pass >= e->pass_count)
		return 0;
	return (e->pass_count - e->pass) * height - (lines < height ? lines : height);
}

void encoder_take(struct encoder *e, uint8_t **data, size_t *size)
{
	if (e->own) {
		baseline_take(e->own, data, size);
		return;
	}
	assert(e->file.data);
	*data = e->file.data;
	*size = e->file.size;
	e->file.data = NULL;
}

/* ---- memory ---- */

bool encoder_takes_knots(const struct encoding *how)
{
	return how->format <= FILE_JPEG && how->is_optimized && !how->is_progressive;
}

/* Returns the bytes of all coefficients, in whole MCUs. */
static uint64_t picture_coefficient_bytes(enum chroma chroma, int width, int height)
{
	uint64_t side = chroma == CHROMA_420 ? 2 * DCTSIZE : DCTSIZE;
	uint64_t wide = div_up((uint64_t)width, side), high = div_up((uint64_t)height, side),
		 luma_side = side / DCTSIZE;

	return coefficients_bytes(wide * luma_side, high * luma_side) +
	       (chroma_planes(chroma) - 1) * coefficients_bytes(wide, high);
}

uint64_t encoder_bytes(const struct encoding *how, enum chroma chroma, int width, int height,
                       size_t icc_size)
{
	uint64_t samples = (uint64_t)width * (uint64_t)height, kept = WORKING_BYTES;

	if (how->is_grey)
		chroma = CHROMA_NONE;
	if (how->format > FILE_JPEG)
		return encoder_jailed_bytes(how, chroma, width, height, icc_size);
	if (how->is_progressive)
		kept += WORKING_BYTES + picture_coefficient_bytes(chroma, width, height);
	else if (encoder_takes_knots(how))
		kept += baseline_bytes(width, picture_coefficient_bytes(chroma, width, height));
	if (chroma == CHROMA_420)
		samples += samples / 2 + (uint64_t)width + (uint64_t)height;
	else if (chroma == CHROMA_444)
		samples *= 3;
	/* While the buffer doubles, old and new buffer take 1.5 times the new size. The last buffer
	 * has at most twice the size of the file. */
	return FILE_BYTES_MIN + 3 * icc_size + (how->quality > 90 ? 4 : 1) * samples + kept;
}

/* ---- life ---- */

static unsigned pass_count(const struct jpeg_compress_struct *out)
{
	unsigned n = 0;

	if (!out->optimize_coding)
		return 1;
	/* A scan has a pass for its tables and one for its data. DC refinements need no tables. */
	for (int i = 0; i < out->num_scans; i++)
		n += out->scan_info[i].Ss == 0 && out->scan_info[i].Ah != 0 ? 1 : 2;
	return n;
}

static void setup_planes(struct encoder *e)
{
	struct jpeg_compress_struct *out = &e->out;
	bool is_grey = e->chroma == CHROMA_NONE;

	out->input_components = is_grey ? 1 : 3;
	out->in_color_space = is_grey ? JCS_GRAYSCALE : JCS_YCbCr;
	jpeg_set_defaults(out); /* 4:2:0 for YCbCr */
	if (e->chroma == CHROMA_444)
		out->comp_info[0].h_samp_factor = out->comp_info[0].v_samp_factor = 1;
	out->raw_data_in = TRUE;
}

/* Returns whether there is memory. */
static bool setup(struct encoder *e, const struct encoding *how)
{
	struct jpeg_compress_struct *out = &e->out;

	if (setjmp(e->errors.failed))
		return false;
	out->err = jpeg_std_error(&e->errors.mgr);
	out->client_data = e;
	e->errors.mgr.error_exit = on_error;
	e->errors.mgr.emit_message = on_message;
	jpeg_create_compress(out);
	jpeg_memory_init(&e->memory, (j_common_ptr)out);
	jpeg_output_init(&e->file, out);
	setup_planes(e);
	jpeg_set_quality(out, (int)how->quality, TRUE);
	out->dct_method = JDCT_ISLOW;
	out->optimize_coding = how->is_progressive;
	if (how->is_progressive)
		jpeg_simple_progression(out);
	e->pass_count = pass_count(out);
	return true;
}

struct encoder *encoder_new(const struct encoding *how, const struct picture *p, const uint8_t *icc,
                            size_t icc_size)
{
	struct encoder *e = pool_get(sizeof(*e));

	assert(p->plane_count == 1 || p->plane_count == 3);
	if (!e)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->picture = p;
	e->icc = icc;
	e->icc_size = icc_size;
	e->chroma = how->is_grey ? CHROMA_NONE : picture_chroma(p);
	if (how->format > FILE_JPEG) {
		if (encoder_jailed_begin(e, how))
			return e;
		encoder_free(e);
		return NULL;
	}
	e->memory.coefficient_bytes_max = picture_coefficient_bytes(e->chroma, p->width, p->height);
	if (encoder_takes_knots(how)) {
		e->pass_count = 2;
		e->own = baseline_new(how->quality, e->chroma, p, icc, icc_size,
		                      e->memory.coefficient_bytes_max);
		if (e->own)
			return e;
	} else if (setup(e, how)) {
		return e;
	}
	encoder_free(e);
	return NULL;
}

void encoder_free(struct encoder *e)
{
	if (!e)
		return;
	if (e->is_jailed)
		encoder_jailed_free(e);
	baseline_free(e->own);
	jpeg_abort_compress(&e->out);
	jpeg_destroy_compress(&e->out);
	pool_put(e->file.data);
	pool_put(e);
}
