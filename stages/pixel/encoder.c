/*
 * encoder.c - libjpeg, from planes to a file in pool memory that grows as it must.
 */
#include "encoder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpegint.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "huffman.h"

/* Headers and tables take 0.6 KB. */
#define FILE_BYTES_MIN 4096
#define MCU_LINES_MAX 16
/* What libjpeg needs beside coefficients: tables, and for files with tables of their own the
 * statistics of all of them. */
#define WORKING_BYTES JPEG_MEMORY_BYTES

/* Then what is inside of libjpeg is as jpegint.h here says. */
#define HAS_INSIDE \
	(LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 && LIBJPEG_TURBO_VERSION_NUMBER < 3000000)

/* ---- errors and output ---- */

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
	return FILE_BYTES_MIN + e->icc_size + e->icc_size / 16 +
	       (size_t)e->picture->width * (size_t)e->picture->height / 8;
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

/* ---- encoding ---- */

static void start(struct encoder *e)
{
	struct jpeg_compress_struct *out = &e->out;

	out->image_width = (JDIMENSION)e->picture->width;
	out->image_height = (JDIMENSION)e->picture->height;
	jpeg_start_compress(out, TRUE);
	if (e->huffman)
		huffman_start(e->huffman, out);
	if (e->icc_size)
		jpeg_write_icc_profile(out, e->icc, (unsigned)e->icc_size);
	e->is_started = true;
}

/* One row of MCUs. Below the picture its last line is repeated. */
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

/*
 * jpeg_finish_compress() makes all passes after the first in one call, which takes seconds for a
 * large progressive picture. So they are made here, as it would make them, row by row, and it is
 * left the end of the last one. This uses what is inside of libjpeg-turbo 2; a unit test compares
 * the files. With any other version the passes are made at one go. The second pass of a baseline
 * file is all ours.
 */
#if HAS_INSIDE
static bool has_further_pass(const struct encoder *e)
{
	return e->huffman ? e->pass == 0 : !e->out.master->is_last_pass;
}

static void begin_pass(struct encoder *e)
{
	if (e->huffman) {
		huffman_tables(e->huffman, &e->out);
	} else {
		e->out.master->finish_pass(&e->out);
		e->out.master->prepare_for_pass(&e->out);
	}
	e->pass++;
	e->row = 0;
}

static void code_row(struct encoder *e)
{
	if (e->huffman)
		huffman_code(e->huffman, &e->out, e->out.total_iMCU_rows - e->row);
	else if (!e->out.coef->compress_data(&e->out, NULL))
		ERREXIT(&e->out, JERR_CANT_SUSPEND);
}
#else
static bool has_further_pass(const struct encoder *e)
{
	(void)e;
	return false;
}

static void begin_pass(struct encoder *e)
{
	(void)e;
}

static void code_row(struct encoder *e)
{
	(void)e;
}
#endif

static int advance(struct encoder *e, unsigned rows)
{
	if (!e->is_started)
		start(e);
	for (; rows > 0; rows--) {
		if (e->row == e->out.total_iMCU_rows) {
			if (!has_further_pass(e))
				break;
			begin_pass(e);
		}
		if (e->pass == 0)
			write_row(e);
		else
			code_row(e);
		e->row++;
	}
	if (e->row < e->out.total_iMCU_rows || has_further_pass(e))
		return 1;
	jpeg_finish_compress(&e->out);
	e->pass = e->pass_count;
	return 0;
}

static bool is_no_memory(int message)
{
	return message == JERR_OUT_OF_MEMORY || message == JERR_NO_BACKING_STORE;
}

int encoder_advance(struct encoder *e, unsigned rows)
{
	if (setjmp(e->errors.failed)) {
		e->has_failed = true;
		return is_no_memory(e->errors.mgr.msg_code) ? -ENOMEM : -EINVAL;
	}
	return advance(e, rows);
}

unsigned encoder_lines_left(const struct encoder *e)
{
	unsigned height = (unsigned)e->picture->height,
		 lines = e->row * DCTSIZE * (unsigned)e->out.max_v_samp_factor;

	if (!e->is_started)
		return e->pass_count * height;
	if (e->pass >= e->pass_count)
		return 0;
	return (e->pass_count - e->pass) * height - (lines < height ? lines : height);
}

void encoder_take(struct encoder *e, uint8_t **data, size_t *size)
{
	assert(e->file.data);
	*data = e->file.data;
	*size = e->file.size;
	e->file.data = NULL;
}

int encoder_encode(const struct encoding *how, const struct picture *p, const uint8_t *icc,
                   size_t icc_size, uint8_t **data, size_t *size)
{
	struct encoder *e = encoder_new(how, p, icc, icc_size);
	int err = e ? encoder_advance(e, UINT_MAX) : -ENOMEM;

	if (!err)
		encoder_take(e, data, size);
	encoder_free(e);
	return err;
}

/* Baseline with tables of its own. */
static bool is_coded_here(const struct encoding *how)
{
	return HAS_INSIDE && how->is_optimized && !how->is_progressive;
}

static bool keeps_coefficients(const struct encoding *how)
{
	return !is_coded_here(how) && (how->is_progressive || how->is_optimized);
}

/* Of whole MCUs. */
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
	if (keeps_coefficients(how))
		kept += WORKING_BYTES + picture_coefficient_bytes(chroma, width, height);
	else if (is_coded_here(how))
		kept += huffman_bytes(picture_coefficient_bytes(chroma, width, height));
	if (chroma == CHROMA_420)
		samples += samples / 2 + (uint64_t)width + (uint64_t)height;
	else if (chroma == CHROMA_444)
		samples *= 3;
	/* Growing by doubling holds one and a half times the final buffer, which is at most twice
	 * too large. */
	return FILE_BYTES_MIN + 3 * icc_size + (how->quality > 90 ? 4 : 1) * samples + kept;
}

/* ---- life ---- */

static unsigned pass_count(const struct jpeg_compress_struct *out)
{
	unsigned n = 0;

	if (!out->optimize_coding)
		return 1;
	if (!out->scan_info)
		return 2;
	/* For each scan one to make its tables and one to write it; refinements of DC need no
	 * tables. */
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

static void setup(struct encoder *e)
{
	struct jpeg_compress_struct *out = &e->out;

	out->err = jpeg_std_error(&e->errors.mgr);
	out->client_data = e;
	e->errors.mgr.error_exit = on_error;
	e->errors.mgr.emit_message = on_message;
	e->file.mgr.init_destination = file_start;
	e->file.mgr.empty_output_buffer = file_grow;
	e->file.mgr.term_destination = file_end;
	jpeg_create_compress(out);
	jpeg_memory_init(&e->memory, (j_common_ptr)out, false);
	out->dest = &e->file.mgr;
	setup_planes(e);
	jpeg_set_quality(out, (int)e->how.quality, TRUE);
	out->dct_method = JDCT_ISLOW;
	out->optimize_coding = keeps_coefficients(&e->how);
	if (e->how.is_progressive)
		jpeg_simple_progression(out);
	e->pass_count = is_coded_here(&e->how) ? 2 : pass_count(out);
}

static bool try_setup(struct encoder *e)
{
	if (setjmp(e->errors.failed))
		return false;
	setup(e);
	return true;
}

static void destroy(struct encoder *e)
{
	jpeg_destroy_compress(&e->out);
	free(e);
}

static struct encoder *make(const struct encoding *how, enum chroma chroma)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->how = *how;
	e->chroma = chroma;
	if (!try_setup(e)) {
		destroy(e);
		return NULL;
	}
	return e;
}

/* ---- at rest ---- */

/* All of a configuration with few variants, each for grey and for colour. One takes about 6 KB. */
#define RESTING_MAX 16

/* The one used last first. */
static _Thread_local struct encoder *resting;

static bool is_for(const struct encoder *e, const struct encoding *how, enum chroma chroma)
{
	return e->chroma == chroma && e->how.quality == how->quality &&
	       e->how.is_progressive == how->is_progressive &&
	       e->how.is_optimized == how->is_optimized;
}

static struct encoder *wake(const struct encoding *how, enum chroma chroma)
{
	for (struct encoder **at = &resting; *at; at = &(*at)->next) {
		struct encoder *e = *at;

		if (!is_for(e, how, chroma))
			continue;
		*at = e->next;
		return e;
	}
	return NULL;
}

/* Those that nobody has wanted for long are of variants that there are no more. */
static void rest(struct encoder *e)
{
	struct encoder **at = &resting;

	e->next = resting;
	resting = e;
	for (unsigned i = 0; *at && i < RESTING_MAX; i++)
		at = &(*at)->next;
	if (*at) {
		destroy(*at);
		*at = NULL;
	}
}

struct encoder *encoder_new(const struct encoding *how, const struct picture *p, const uint8_t *icc,
                            size_t icc_size)
{
	enum chroma chroma = how->is_grey ? CHROMA_NONE : picture_chroma(p);
	struct encoder *e = wake(how, chroma);

	assert(p->plane_count == 1 || p->plane_count == 3);
	if (!e)
		e = make(how, chroma);
	if (!e)
		return NULL;
	e->picture = p;
	e->icc = icc;
	e->icc_size = icc_size;
	e->is_started = false;
	e->pass = e->row = 0;
	e->memory.coefficients.bytes_max = picture_coefficient_bytes(chroma, p->width, p->height);
	if (!is_coded_here(how))
		return e;
	e->huffman = huffman_new(e->memory.coefficients.bytes_max);
	if (!e->huffman) {
		encoder_free(e);
		return NULL;
	}
	return e;
}

void encoder_free(struct encoder *e)
{
	if (!e)
		return;
	jpeg_abort_compress(&e->out);
	huffman_free(e->huffman);
	e->huffman = NULL;
	pool_put(e->file.data);
	e->file.data = NULL;
	if (e->has_failed)
		destroy(e);
	else
		rest(e);
}

void encoder_thread_fini(void)
{
	while (resting) {
		struct encoder *e = resting;

		resting = e->next;
		destroy(e);
	}
}
