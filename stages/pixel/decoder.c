/*
 * decoder.c - drives libjpeg from markers to planes, without colour conversion or upsampling.
 *
 * Each component is decoded at 1, 2, 4 or 8 eighths of its size: only these sizes have SIMD code.
 * Every function that enters libjpeg calls setjmp() first. Files with several scans use the
 * buffered-image mode of libjpeg, which reads its input row by row. Other files are decoded while
 * they are read.
 */
#include "decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "decoder_errors.h"
#include "decoder_range.h"
#include "decoder_scans.h"
#include "entropy.h"

#define SIZE_COUNT 4
/* A plane reduced to fewer samples than this would be blended with the padding of its blocks. */
#define REDUCED_SIDE_MIN 16
/* Memory of libjpeg other than coefficients: 4 + 4 Huffman tables of 1.5 KB, block buffers, and its
 * own chunks of memory. */
#define WORKING_BYTES (256 << 10)

static const int dct_sizes[SIZE_COUNT] = { 1, 2, 4, 8 };

/* ---- header ---- */

/* libjpeg-turbo 3 reads the headers of lossless files and of 12-bit samples, version 2 rejects
 * them. In lossless files the unit of a component is a sample and not a block. */
static void check_supported(struct decoder *d)
{
	const struct jpeg_decompress_struct *in = &d->in;
	char text[JMSG_LENGTH_MAX];

	if (in->arith_code)
		decoder_fail(d, DECODER_UNSUPPORTED, "arithmetic coding is not supported");
	if (in->comp_info[0].DCT_scaled_size != DCTSIZE)
		decoder_fail(d, DECODER_UNSUPPORTED, "lossless JPEG is not supported");
	if (in->data_precision != 8) {
		snprintf(text, sizeof(text), "samples of %d bits are not supported, only of 8",
		         in->data_precision);
		decoder_fail(d, DECODER_UNSUPPORTED, text);
	}
	if (in->num_components == 2 || in->num_components > PLANE_MAX) {
		snprintf(text, sizeof(text), "%d components are not supported, only 1, 3 and 4",
		         in->num_components);
		decoder_fail(d, DECODER_UNSUPPORTED, text);
	}
}

static void read_header(struct decoder *d)
{
	jpeg_mem_src(&d->in, d->source, d->source_size);
	jpeg_read_header(&d->in, TRUE);
	check_supported(d);
	decoder_scans_begin(d);
}

enum decoder_result decoder_open(struct decoder *d, const uint8_t *jpeg, size_t size)
{
	assert(d->state == DECODER_CLOSED);
	d->fault = 0;
	d->has_lost = d->has_ended_early = d->stop_on_loss = false;
	d->rows_done = 0;
	d->errors.mgr.msg_code = 0;
	d->state = DECODER_HEADER;
	if (setjmp(d->errors.failed)) {
		decoder_fault_explain(d);
		decoder_close(d);
		return DECODER_FAILED;
	}
	d->source = jpeg;
	d->source_size = size;
	read_header(d);
	d->is_buffered = jpeg_has_multiple_scans(&d->in);
	d->has_entropy = entropy_suits(&d->in);
	return DECODER_MORE;
}

void decoder_use_libjpeg(struct decoder *d)
{
	d->has_entropy = false;
}

bool decoder_is_buffered(const struct decoder *d)
{
	return d->is_buffered;
}

bool decoder_is_cut(const struct decoder *d)
{
	uint64_t blocks = 0;

	for (int c = 0; c < d->in.num_components; c++)
		blocks += (uint64_t)d->in.comp_info[c].width_in_blocks *
		          d->in.comp_info[c].height_in_blocks;
	return decoder_bytes_left(d) * 8 < blocks;
}

/* ---- sizes ---- */

static int reduced(int side, int factor, int factor_max, int size)
{
	return (int)div_up((uint64_t)side * (uint64_t)factor * (uint64_t)size,
	                   DCTSIZE * (uint64_t)factor_max);
}

void decoder_choose(struct decoder *d, int width, int height, int chroma_width, int chroma_height)
{
	const struct jpeg_decompress_struct *in = &d->in;

	for (int c = 0; c < in->num_components; c++) {
		const jpeg_component_info *ci = &in->comp_info[c];
		bool is_chroma = c > 0 && in->jpeg_color_space == JCS_YCbCr;
		int need_width = is_chroma ? chroma_width : width,
		    need_height = is_chroma ? chroma_height : height;
		int i;

		if (need_width < REDUCED_SIDE_MIN)
			need_width = REDUCED_SIDE_MIN;
		if (need_height < REDUCED_SIDE_MIN)
			need_height = REDUCED_SIDE_MIN;
		for (i = 0; i < SIZE_COUNT - 1; i++)
			if (reduced((int)in->image_width, ci->h_samp_factor, in->max_h_samp_factor,
			            dct_sizes[i]) >= need_width &&
			    reduced((int)in->image_height, ci->v_samp_factor, in->max_v_samp_factor,
			            dct_sizes[i]) >= need_height)
				break;
		d->dct_size[c] = dct_sizes[i];
	}
}

static struct plane_shape component_shape(const struct decoder *d, int c, int size)
{
	const jpeg_component_info *ci = &d->in.comp_info[c];
	int h = ci->h_samp_factor, h_max = d->in.max_h_samp_factor, v = ci->v_samp_factor,
	    v_max = d->in.max_v_samp_factor;

	return (struct plane_shape){
		.width = reduced((int)d->in.image_width, h, h_max, size),
		.height = reduced((int)d->in.image_height, v, v_max, size),
		.room_width = (int)ci->width_in_blocks * size,
		.room_height = (int)d->in.total_iMCU_rows * v * size,
		.real_width = (double)d->in.image_width * h * size / (8. * h_max),
		.real_height = (double)d->in.image_height * v * size / (8. * v_max),
	};
}

unsigned decoder_shapes(const struct decoder *d, struct plane_shape shape[PLANE_MAX])
{
	for (int c = 0; c < d->in.num_components; c++)
		shape[c] = component_shape(d, c, d->dct_size[c]);
	return (unsigned)d->in.num_components;
}

uint64_t decoder_working_bytes(const struct decoder *d)
{
	uint64_t bytes = 0;

	if (d->has_entropy)
		return WORKING_BYTES + entropy_bytes(&d->in);
	if (!decoder_is_buffered(d))
		return WORKING_BYTES;
	for (int c = 0; c < d->in.num_components; c++) {
		const jpeg_component_info *ci = &d->in.comp_info[c];
		uint64_t wide = round_up(ci->width_in_blocks, (uint64_t)ci->h_samp_factor);
		uint64_t high = round_up(ci->height_in_blocks, (uint64_t)ci->v_samp_factor);

		bytes += coefficients_bytes(wide, high);
	}
	return WORKING_BYTES + pool_size(bytes);
}

/*
 * Sets the size of each component. libjpeg chooses one size for the picture and doubles it for
 * subsampled chroma to avoid upsampling. The decoder needs the smallest size that serves for each
 * component. libjpeg calls this method after it has chosen the sizes (master_selection() in
 * jdmaster.c) and before its passes use them. This order is not documented; a unit test checks it.
 * If it changed, planes would be larger but correct: picture_make() reads the sizes back.
 */
static void on_realize(j_common_ptr c)
{
	struct decoder *d = c->client_data;

	for (int i = 0; i < d->in.num_components; i++)
		d->in.comp_info[i].DCT_scaled_size = d->dct_size[i];
	d->realize(c);
}

/* ---- decoding ---- */

static bool picture_make(struct decoder *d)
{
	struct plane_shape shape[PLANE_MAX];

	for (int c = 0; c < d->in.num_components; c++)
		shape[c] = component_shape(d, c, d->in.comp_info[c].DCT_scaled_size);
	d->picture =
		picture_new(shape, (unsigned)d->in.num_components, (int)d->in.jpeg_color_space);
	if (!d->picture)
		return false;
	d->picture->is_inverted = d->in.saw_Adobe_marker;
	return true;
}

static void start(struct decoder *d)
{
	struct jpeg_decompress_struct *in = &d->in;

	d->memory.coefficients.bytes_max = decoder_working_bytes(d);
	in->scale_num = (unsigned)d->dct_size[0];
	in->scale_denom = DCTSIZE;
	in->raw_data_out = TRUE;
	in->dct_method = JDCT_ISLOW;
	in->do_block_smoothing = FALSE; /* it would interpolate missing coefficients */
	in->out_color_space = in->jpeg_color_space;
	in->buffered_image = d->is_buffered;
	jpeg_start_decompress(in);
	if (d->has_entropy)
		entropy_start(in);
	decoder_range_begin(d);
	if (!d->picture && !picture_make(d))
		decoder_fail(d, DECODER_NO_MEMORY, "no memory for the decoded picture");
	d->state = in->buffered_image ? DECODER_INPUT : DECODER_OUTPUT;
}

enum decoder_result decoder_start(struct decoder *d, unsigned scans_max, bool stop_on_loss)
{
	assert(d->state == DECODER_HEADER);
	d->scans_max = scans_max;
	d->stop_on_loss = stop_on_loss;
	if (setjmp(d->errors.failed)) {
		decoder_close(d);
		return DECODER_FAILED;
	}
	start(d);
	return DECODER_MORE;
}

/* Decodes one row of MCUs into samples. */
static void output_row(struct decoder *d)
{
	struct jpeg_decompress_struct *in = &d->in;
	JSAMPROW rows[PLANE_MAX][MAX_SAMP_FACTOR * DCTSIZE];
	JSAMPARRAY planes[PLANE_MAX] = { rows[0], rows[1], rows[2], rows[3] };

	for (int c = 0; c < in->num_components; c++) {
		const struct plane *p = &d->picture->plane[c];
		int high = in->comp_info[c].v_samp_factor * in->comp_info[c].DCT_scaled_size;

		for (int i = 0; i < high; i++)
			rows[c][i] = p->data + ((ptrdiff_t)d->rows_done * high + i) * p->stride;
	}
	jpeg_read_raw_data(in, planes,
	                   (JDIMENSION)(in->max_v_samp_factor * in->min_DCT_scaled_size));
	d->rows_done++;
}

/* Without this a file without tables would use those of the previous file, from another upload. */
static void forget_tables(struct jpeg_decompress_struct *in)
{
	for (int i = 0; i < NUM_QUANT_TBLS; i++)
		in->quant_tbl_ptrs[i] = NULL;
	for (int i = 0; i < NUM_HUFF_TBLS; i++)
		in->dc_huff_tbl_ptrs[i] = in->ac_huff_tbl_ptrs[i] = NULL;
}

/* Decodes the file again with libjpeg's Huffman decoder, which finds its way after an error. */
static void decode_again(struct decoder *d, enum entropy_end end)
{
	static const char *const texts[] = {
		[ENTROPY_BAD_CODE] = "Corrupt JPEG data: bad Huffman code",
		[ENTROPY_CUT] = DECODER_PREMATURE_END,
		[ENTROPY_SHORT] = "Corrupt JPEG data: premature end of data segment",
		[ENTROPY_OUT_OF_ORDER] = "Corrupt JPEG data: a restart marker is out of order",
		[ENTROPY_LEFT_OVER] = NULL, /* libjpeg counts the bytes and decides */
	};

	if (texts[end])
		decoder_note_loss(d, texts[end]);
	jpeg_abort_decompress(&d->in);
	forget_tables(&d->in);
	d->has_entropy = d->has_ended_early = false;
	d->rows_done = 0;
	d->state = DECODER_HEADER;
	read_header(d);
	start(d);
}

static void output(struct decoder *d)
{
	enum entropy_end end = ENTROPY_GOOD;

	output_row(d);
	bool is_over = d->rows_done == d->in.total_iMCU_rows;

	if (d->has_entropy)
		end = entropy_check(&d->in, is_over);
	if (end)
		decode_again(d, end);
	else if (is_over)
		d->state = DECODER_FINISHED;
}

static void advance(struct decoder *d, unsigned rows)
{
	for (; rows > 0 && d->state == DECODER_INPUT; rows--)
		decoder_scans_row(d);
	for (; rows > 0 && d->state == DECODER_OUTPUT; rows--)
		output(d);
	/* All pixels are decoded. jpeg_finish_decompress() is not called: it would warn about bytes
	 * that follow, such as another picture, or about a missing EOI. */
	if (d->state != DECODER_FINISHED)
		return;
	if (!d->is_buffered)
		decoder_scans_finished(d);
	picture_pad(d->picture);
}

enum decoder_result decoder_advance(struct decoder *d, unsigned rows)
{
	assert(d->state == DECODER_INPUT || d->state == DECODER_OUTPUT);
	if (setjmp(d->errors.failed)) {
		decoder_close(d);
		return DECODER_FAILED;
	}
	advance(d, rows);
	return d->state == DECODER_FINISHED ? DECODER_DONE : DECODER_MORE;
}

uint64_t decoder_bytes_left(const struct decoder *d)
{
	return d->in.src->bytes_in_buffer;
}

struct picture *decoder_take(struct decoder *d)
{
	struct picture *p = d->picture;

	assert(d->state == DECODER_FINISHED && p);
	d->picture = NULL;
	return p;
}

void decoder_close(struct decoder *d)
{
	if (d->state == DECODER_CLOSED)
		return;
	d->state = DECODER_CLOSED;
	picture_unref(d->picture);
	d->picture = NULL;
	jpeg_abort_decompress(&d->in);
	forget_tables(&d->in);
}

/* ---- life ---- */

/* A parked image keeps its decoder, so a thread may need a second one. */
#define IDLE_MAX 2

static _Thread_local struct decoder *idle[IDLE_MAX];
static _Thread_local unsigned idle_count;

int decoder_init(struct decoder *d)
{
	static const uint8_t nothing[1];

	memset(d, 0, sizeof(*d));
	decoder_errors_init(d);
	d->in.client_data = d;
	if (setjmp(d->errors.failed)) {
		jpeg_destroy_decompress(&d->in);
		return -ENOMEM;
	}
	jpeg_create_decompress(&d->in);
	jpeg_mem_src(&d->in, nothing, sizeof(nothing)); /* makes the permanent source manager */
	jpeg_memory_init(&d->memory, (j_common_ptr)&d->in, true);
	d->realize = d->in.mem->realize_virt_arrays;
	d->in.mem->realize_virt_arrays = on_realize;
	return 0;
}

void decoder_fini(struct decoder *d)
{
	decoder_close(d);
	jpeg_destroy_decompress(&d->in);
}

struct decoder *decoder_new(void)
{
	if (idle_count > 0)
		return idle[--idle_count];
	struct decoder *d = malloc(sizeof(*d));

	if (d && decoder_init(d)) {
		free(d);
		return NULL;
	}
	return d;
}

static void destroy(struct decoder *d)
{
	decoder_fini(d);
	free(d);
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	decoder_close(d);
	if (idle_count < IDLE_MAX)
		idle[idle_count++] = d;
	else
		destroy(d);
}

void decoder_thread_fini(void)
{
	while (idle_count > 0)
		destroy(idle[--idle_count]);
}
