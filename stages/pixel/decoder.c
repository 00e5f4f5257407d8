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

#include <jerror.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "decoder_jailed.h"
#include "entropy.h"
#include "libjpeg_private.h"
#include "mcu_rows.h"

/* A plane reduced to fewer samples than this would be blended with the padding of its blocks. */
#define REDUCED_SIDE_MIN 16
/* Memory of libjpeg other than coefficients: 4 + 4 Huffman tables of 1.5 KB, block buffers, and its
 * own chunks of memory. */
#define WORKING_BYTES (256 << 10)

/* ---- faults ---- */

#define PREMATURE_END "Premature end of JPEG file"

/* Sets the fault and returns by longjmp() to errors.failed. */
_Noreturn static void fail(struct decoder *d, enum decoder_fault fault, const char *text)
{
	d->fault = fault;
	snprintf(d->fault_text, sizeof(d->fault_text), "%s", text);
	longjmp(d->errors.failed, 1);
}

/* Notes that pixels are lost. Fails if the decoder stops on loss. */
static void note_loss(struct decoder *d, const char *text)
{
	d->has_lost = true;
	if (d->stop_on_loss)
		fail(d, DECODER_DAMAGED, text);
}

/* ---- scans: their work, and what they leave over ---- */

/*
 * A progressive scan of end-of-band runs has two bytes for 32767 blocks, and libjpeg visits each of
 * them ("Two Issues with the JPEG Standard", libjpeg-turbo.org). So the work is bounded by the
 * number of blocks, and by the data.
 *
 * libjpeg's fast Huffman decoder does not report bad codes. But a decoder that has lost its place
 * needs more or fewer bytes than there are. Fewer cause a warning. Bytes that are left over are
 * counted here.
 */

/* libjpeg's own progression visits a block at most 6 times. */
#define VISITS_PER_BLOCK 8
/* A visit with data costs more than one without: one visit for 2 bits is always granted. */
#define VISITS_PER_BYTE 4
/* Sound files leave over at most 17 bytes (a webcam's). Zeros are padding. */
#define LEFT_OVER_MAX 32

/* Returns the blocks of all components, with the padding of interleaved scans. */
static uint64_t block_count(const struct jpeg_decompress_struct *in)
{
	uint64_t blocks = 0;

	for (int c = 0; c < in->num_components; c++) {
		const jpeg_component_info *ci = &in->comp_info[c];

		blocks += round_up(ci->width_in_blocks, (uint64_t)ci->h_samp_factor) *
		          in->total_iMCU_rows * (uint64_t)ci->v_samp_factor;
	}
	return blocks;
}

/* Returns the blocks of one row in the current scan. */
static uint64_t blocks_in_row(const struct jpeg_decompress_struct *in)
{
	int high = in->comps_in_scan == 1 ? in->cur_comp_info[0]->v_samp_factor : in->blocks_in_MCU;

	return (uint64_t)in->MCUs_per_row * (uint64_t)high;
}

static void check_work(struct decoder *d)
{
	uint64_t blocks = block_count(&d->in),
		 bytes = d->bytes_before_scans - decoder_bytes_left(d);
	uint64_t max = blocks * VISITS_PER_BLOCK + bytes * VISITS_PER_BYTE;
	char text[JMSG_LENGTH_MAX];

	if ((unsigned)d->in.input_scan_number > d->scans_max) {
		snprintf(text, sizeof text, "more than %u scans", d->scans_max);
		fail(d, DECODER_TOO_MANY_SCANS, text);
	}
	if (d->visits > max) {
		snprintf(text, sizeof text,
		         "the first %d scans visit %llu blocks; %llu blocks with %llu bytes of "
		         "data may be visited %llu times",
		         d->in.input_scan_number, (unsigned long long)d->visits,
		         (unsigned long long)blocks, (unsigned long long)bytes,
		         (unsigned long long)max);
		fail(d, DECODER_TOO_MUCH_WORK, text);
	}
}

/* Returns whether a component has no data. In a file that ended early, also whether bits of a
 * coefficient are missing. */
static bool is_incomplete(const struct decoder *d)
{
	const struct jpeg_decompress_struct *in = &d->in;

	for (int c = 0; c < in->num_components; c++) {
		if (!in->comp_info[c].quant_table) /* set when its first scan starts */
			return true;
		if (!in->progressive_mode)
			continue;
		if (in->coef_bits[c][0] < 0) /* its DC scan is missing */
			return true;
		for (int k = 0; d->has_ended_early && k < DCTSIZE2; k++)
			if (in->coef_bits[c][k] != 0)
				return true;
	}
	return false;
}

static void decode_again(struct decoder *d, enum entropy_end end);

/* Reads one row of MCUs, or the markers between two scans. After the last scan the state becomes
 * DECODER_OUTPUT. Fails with DECODER_TOO_MANY_SCANS or DECODER_TOO_MUCH_WORK. */
static void read_scan_row(struct decoder *d)
{
	uint64_t blocks = blocks_in_row(&d->in);
	int reached = jpeg_consume_input(&d->in);

	if (reached == JPEG_REACHED_EOI) {
		if (is_incomplete(d))
			note_loss(d,
			          d->has_ended_early ? PREMATURE_END : "a component has no data");
		jpeg_start_output(&d->in, d->in.input_scan_number);
		d->state = DECODER_OUTPUT;
		return;
	}
	enum entropy_end end = d->has_entropy ? entropy_check(&d->in, false) : ENTROPY_GOOD;

	if (end) {
		decode_again(d, end);
		return;
	}
	if (reached == JPEG_ROW_COMPLETED || reached == JPEG_SCAN_COMPLETED)
		d->visits += blocks;
	check_work(d);
}

static void check_left_over(struct decoder *d, const uint8_t *from, const uint8_t *to)
{
	char text[JMSG_LENGTH_MAX];
	size_t n = 0;

	for (const uint8_t *p = from; p < to; p++)
		n += *p != 0;
	if (n <= LEFT_OVER_MAX)
		return;
	snprintf(text, sizeof text, "Corrupt JPEG data: %zu bytes left over in a scan", n);
	note_loss(d, text);
}

/* Notes a loss if too many of the `count` bytes before the current position, which libjpeg has
 * skipped, belong to a scan. */
static void check_skipped(struct decoder *d, size_t count)
{
	const uint8_t *at = d->in.src->next_input_byte;

	/* Bytes before the first scan are harmless. At the end of the file, which has no EOI, they
	 * are not the scan's. */
	if (d->state == DECODER_HEADER || d->has_ended_early)
		return;
	size_t read = (size_t)(at - d->source);

	check_left_over(d, at - (count < read ? count : read), at);
}

/* The same for a file that is not buffered, after its last row. */
static void check_end_of_scan(struct decoder *d)
{
	const uint8_t *begin = d->in.src->next_input_byte, *p = begin,
		      *end = p + decoder_bytes_left(d);

	/* The decoder has met a marker already, or the end of the file. */
	if (d->in.unread_marker || d->has_ended_early)
		return;
	while ((p = memchr(p, 0xff, (size_t)(end - p))) && end - p >= 2) {
		/* Only a marker that ends data counts: without an EOI anything may follow. */
		if (p[1] == JPEG_EOI || (p[1] & 0xf8) == JPEG_RST0)
			check_left_over(d, begin, p);
		if (p[1] != 0 && p[1] != 0xff)
			return;
		p += p[1] == 0 ? 2 : 1;
	}
}

/* ---- errors and warnings of libjpeg ---- */

static enum decoder_fault fault_of(int message)
{
	switch (message) {
	case JERR_OUT_OF_MEMORY:
		return DECODER_NO_MEMORY;
	case JERR_IMAGE_TOO_BIG:
		return DECODER_TOO_LARGE;
	case JERR_BAD_PRECISION:
	case JERR_SOF_UNSUPPORTED:
	case JERR_COMPONENT_COUNT:
	case JERR_BAD_MCU_SIZE:
		return DECODER_UNSUPPORTED;
	default:
		return DECODER_DAMAGED;
	}
}

static const char *unsupported_process(unsigned sof)
{
	switch (sof) {
	case 0xc3:
	case 0xc7:
	case 0xcb:
	case 0xcf:
		return "lossless JPEG is not supported";
	case 0xc5:
	case 0xc6:
	case 0xcd:
	case 0xce:
		return "hierarchical JPEG is not supported";
	default:
		return "this JPEG process is not supported";
	}
}

_Noreturn static void fail_precision(struct decoder *d, int bits)
{
	char text[JMSG_LENGTH_MAX];

	snprintf(text, sizeof text, "samples of %d bits are not supported, only of 8", bits);
	fail(d, DECODER_UNSUPPORTED, text);
}

/* Faults of a header are reworded for readers who do not know libjpeg. */
static void on_error(j_common_ptr c)
{
	struct decoder *d = c->client_data;
	const struct jpeg_error_mgr *err = c->err;
	enum decoder_fault fault = fault_of(err->msg_code);
	char text[JMSG_LENGTH_MAX];

	if (err->msg_code == JERR_BAD_PRECISION)
		fail_precision(d, err->msg_parm.i[0]);
	if (err->msg_code == JERR_SOF_UNSUPPORTED)
		fail(d, fault, unsupported_process((unsigned)err->msg_parm.i[0]));
	if (err->msg_code == JERR_EMPTY_IMAGE && d->in.num_components > 0 && d->in.image_width > 0)
		fail(d, DECODER_UNSUPPORTED,
		     "a height of 0, to be defined later (DNL), is not supported");
	if (d->state == DECODER_HEADER && d->has_ended_early && fault == DECODER_DAMAGED)
		fail(d, fault, PREMATURE_END);
	err->format_message(c, text);
	fail(d, fault, text);
}

/* Returns whether pixels are missing after this warning of libjpeg. Common mistakes of cameras do
 * not count. */
static bool is_loss(const struct decoder *d)
{
	const struct jpeg_error_mgr *err = &d->errors.mgr;

	switch (err->msg_code) {
	case JWRN_HIT_MARKER:
	case JWRN_HUFF_BAD_CODE:
	case JWRN_MUST_RESYNC:
	case JWRN_ARITH_BAD_CODE:
		return true;
	case JWRN_BOGUS_PROGRESSION:
		/* The scan overwrites bits that are known, or the ones before are missing. AC
		 * before DC is harmless, and is reported as coefficient 0 of a scan of others. */
		return err->msg_parm.i[1] != 0 || d->in.Ss == 0;
	default:
		return false;
	}
}

static void on_message(j_common_ptr c, int level)
{
	struct decoder *d = c->client_data;
	char text[JMSG_LENGTH_MAX];

	if (level >= 0)
		return;
	c->err->num_warnings++;
	if (c->err->msg_code == JWRN_JPEG_EOF)
		d->has_ended_early = true;
	if (c->err->msg_code == JWRN_EXTRANEOUS_DATA)
		check_skipped(d, (size_t)c->err->msg_parm.i[0]);
	if (!is_loss(d))
		return;
	c->err->format_message(c, text);
	note_loss(d, d->has_ended_early ? PREMATURE_END : text);
}

/* ---- DC coefficients that no picture has ---- */

/*
 * Huffman codes find their place again soon after an error. But a DC coefficient is coded as the
 * difference from the one before, so an error stays until the end of the picture or the next
 * restart. On the way it often leaves the range of 8-bit samples.
 */
#if LIBJPEG_HAS_PRIVATE
/* Samples of -128..127 have a DC coefficient of -1024..1016 (T.81 A.3.3). Encoders that overshoot
 * at edges add up to 31 to a sample. */
#define DC_MAX 1280

static boolean on_mcu(j_decompress_ptr in, JBLOCKROW *block)
{
	struct decoder *d = in->client_data;
	boolean is_done = d->decode_mcu(in, block);
	int outside = 0;

	for (int i = 0; i < in->blocks_in_MCU; i++) {
		int dc = block[i][0][0], max = d->dc_max[i];

		outside |= (max - dc) | (max + dc); /* negative if one is outside */
	}
	if (outside < 0 && !d->has_lost)
		note_loss(d, "Corrupt JPEG data: a DC coefficient is out of range");
	return is_done;
}

/* Checks the sequential scan that starts. After jpeg_start_decompress(). */
static void begin_range_check(struct decoder *d)
{
	struct jpeg_decompress_struct *in = &d->in;

	if (d->is_buffered || !libjpeg_private_is_usable())
		return;
	for (int i = 0; i < in->blocks_in_MCU; i++) {
		const jpeg_component_info *ci = in->cur_comp_info[in->MCU_membership[i]];
		int step = ci->quant_table->quantval[0];

		d->dc_max[i] = DC_MAX / (step > 0 ? step : 1) + 1;
	}
	d->decode_mcu = in->entropy->decode_mcu;
	in->entropy->decode_mcu = on_mcu;
}
#else
static void begin_range_check(struct decoder *d)
{
	(void)d;
}
#endif

/* ---- header ---- */

/* libjpeg-turbo 3 reads the headers of lossless files and of 12-bit samples, version 2 rejects
 * them. In lossless files the unit of a component is a sample and not a block. */
static void check_supported(struct decoder *d)
{
	const struct jpeg_decompress_struct *in = &d->in;
	char text[JMSG_LENGTH_MAX];

	if (in->arith_code)
		fail(d, DECODER_UNSUPPORTED, "arithmetic coding is not supported");
	if (in->comp_info[0].DCT_scaled_size != DCTSIZE)
		fail(d, DECODER_UNSUPPORTED, "lossless JPEG is not supported");
	if (in->data_precision != 8)
		fail_precision(d, in->data_precision);
	if (in->num_components == 2 || in->num_components > PLANE_MAX) {
		snprintf(text, sizeof(text), "%d components are not supported, only 1, 3 and 4",
		         in->num_components);
		fail(d, DECODER_UNSUPPORTED, text);
	}
}

static void read_header(struct decoder *d)
{
	jpeg_mem_src(&d->in, d->source, d->source_size);
	jpeg_read_header(&d->in, TRUE);
	check_supported(d);
	d->bytes_before_scans = decoder_bytes_left(d);
	d->visits = 0;
}

enum decoder_result decoder_open(struct decoder *d, const uint8_t *file, size_t size)
{
	assert(d->state == DECODER_CLOSED);
	d->fault = 0;
	d->retry_s = 0;
	d->has_lost = d->has_ended_early = d->stop_on_loss = false;
	d->rows_done = 0;
	d->state = DECODER_HEADER;
	d->source = file;
	d->source_size = size;
	file_header_read(&d->header, file, size);
	d->is_jailed = d->header.format > FILE_JPEG;
	d->job.cpu_ns = 0;
	if (d->is_jailed) {
		d->has_entropy = false;
		return decoder_jailed_open(d);
	}
	if (setjmp(d->errors.failed)) {
		decoder_close(d);
		return DECODER_FAILED;
	}
	read_header(d);
	d->is_buffered = jpeg_has_multiple_scans(&d->in);
	d->has_entropy = entropy_suits(&d->in);
	return DECODER_MORE;
}

void decoder_use_libjpeg(struct decoder *d)
{
	d->has_entropy = false;
}

bool decoder_is_cut(const struct decoder *d)
{
	uint64_t blocks = 0;

	for (int c = 0; c < d->in.num_components && !d->is_jailed; c++)
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

void decoder_choose(struct decoder *d, int width, int height, int chroma_width, int chroma_height)
{
	if (d->is_jailed)
		decoder_jailed_choose(d, width, height);
	for (int c = 0; c < d->in.num_components && !d->is_jailed; c++) {
		bool is_chroma = c > 0 && d->in.jpeg_color_space == JCS_YCbCr;
		int need_width = is_chroma ? chroma_width : width,
		    need_height = is_chroma ? chroma_height : height, size = 0;
		struct plane_shape shape;

		if (need_width < REDUCED_SIDE_MIN)
			need_width = REDUCED_SIDE_MIN;
		if (need_height < REDUCED_SIDE_MIN)
			need_height = REDUCED_SIDE_MIN;
		do {
			size = size ? 2 * size : 1;
			shape = component_shape(d, c, size);
		} while (size < DCTSIZE &&
		         (shape.width < need_width || shape.height < need_height));
		d->dct_size[c] = size;
	}
}

unsigned decoder_shapes(const struct decoder *d, struct plane_shape shape[PLANE_MAX])
{
	if (d->is_jailed)
		return decoder_jailed_shapes(d, shape);
	for (int c = 0; c < d->in.num_components; c++)
		shape[c] = component_shape(d, c, d->dct_size[c]);
	return (unsigned)d->in.num_components;
}

uint64_t decoder_working_bytes(const struct decoder *d)
{
	uint64_t bytes = 0, working = WORKING_BYTES;

	if (d->is_jailed)
		return decoder_jailed_bytes(d);
	if (d->has_entropy)
		working += entropy_bytes(&d->in);
	if (!d->is_buffered)
		return working + (d->has_entropy ? mcu_rows_bytes() : 0);
	for (int c = 0; c < d->in.num_components; c++) {
		const jpeg_component_info *ci = &d->in.comp_info[c];
		uint64_t wide = round_up(ci->width_in_blocks, (uint64_t)ci->h_samp_factor);
		uint64_t high = round_up(ci->height_in_blocks, (uint64_t)ci->v_samp_factor);

		bytes += coefficients_bytes(wide, high);
	}
	return working + pool_size(bytes);
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

	d->memory.coefficient_bytes_max = decoder_working_bytes(d);
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
	begin_range_check(d);
	if (!d->picture && !picture_make(d))
		fail(d, DECODER_NO_MEMORY, "no memory for the decoded picture");
	if (d->has_entropy && !d->is_buffered)
		d->mcus = mcu_rows_start(in, d->picture, d->dct_size);
	d->state = in->buffered_image ? DECODER_INPUT : DECODER_OUTPUT;
}

enum decoder_result decoder_start(struct decoder *d, unsigned scans_max, bool stop_on_loss)
{
	assert(d->state == DECODER_HEADER);
	d->scans_max = scans_max;
	d->stop_on_loss = stop_on_loss;
	if (d->is_jailed)
		return decoder_jailed_start(d);
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
		[ENTROPY_CUT] = PREMATURE_END,
		[ENTROPY_SHORT] = "Corrupt JPEG data: premature end of data segment",
		[ENTROPY_OUT_OF_ORDER] = "Corrupt JPEG data: a restart marker is out of order",
		[ENTROPY_LEFT_OVER] = NULL, /* libjpeg counts the bytes and decides */
	};

	if (texts[end])
		note_loss(d, texts[end]);
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

	if (d->has_entropy && !d->is_buffered)
		mcu_rows_make(d->mcus, &d->in, d->rows_done++);
	else
		output_row(d);
	bool is_over = d->rows_done == d->in.total_iMCU_rows;

	if (d->has_entropy && !d->is_buffered)
		end = entropy_check(&d->in, is_over);
	if (end)
		decode_again(d, end);
	else if (is_over)
		d->state = DECODER_FINISHED;
}

static void advance(struct decoder *d, unsigned rows)
{
	for (; rows > 0 && d->state == DECODER_INPUT; rows--)
		read_scan_row(d);
	for (; rows > 0 && d->state == DECODER_OUTPUT; rows--)
		output(d);
	/* All pixels are decoded. jpeg_finish_decompress() is not called: it would warn about bytes
	 * that follow, such as another picture, or about a missing EOI. */
	if (d->state != DECODER_FINISHED)
		return;
	if (!d->is_buffered)
		check_end_of_scan(d);
	picture_pad(d->picture);
}

enum decoder_result decoder_advance(struct decoder *d, unsigned rows)
{
	assert(d->state == DECODER_INPUT || d->state == DECODER_OUTPUT);
	if (d->is_jailed)
		return decoder_jailed_advance(d);
	if (setjmp(d->errors.failed)) {
		decoder_close(d);
		return DECODER_FAILED;
	}
	advance(d, rows);
	return d->state == DECODER_FINISHED ? DECODER_DONE : DECODER_MORE;
}

bool decoder_waits(const struct decoder *d)
{
	return d->is_jailed && !d->job.slot;
}

uint64_t decoder_bytes_left(const struct decoder *d)
{
	return d->is_jailed ? decoder_jailed_bytes_left(d) : d->in.src->bytes_in_buffer;
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
	if (d->is_jailed)
		decoder_jailed_close(d);
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
	d->in.err = jpeg_std_error(&d->errors.mgr);
	d->errors.mgr.error_exit = on_error;
	d->errors.mgr.emit_message = on_message;
	d->in.client_data = d;
	if (setjmp(d->errors.failed)) {
		jpeg_destroy_decompress(&d->in);
		return -ENOMEM;
	}
	jpeg_create_decompress(&d->in);
	jpeg_mem_src(&d->in, nothing, sizeof(nothing)); /* makes the permanent source manager */
	jpeg_memory_init(&d->memory, (j_common_ptr)&d->in);
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
