/* entropy_compare.c - two libjpeg objects in lockstep, one with its own decoder. */
#include "entropy_compare.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>

#include "base/check.h"

#if LIBJPEG_HAS_PRIVATE
struct side {
	struct jpeg_decompress_struct in;
	struct jpeg_error_mgr errors;
	jmp_buf *failed;
	bool has_lost;
	JBLOCK blocks[D_MAX_BLOCKS_IN_MCU];
	JBLOCKROW rows[D_MAX_BLOCKS_IN_MCU];
};

static void on_error(j_common_ptr c)
{
	longjmp(*((struct side *)c->client_data)->failed, 1);
}

static void on_message(j_common_ptr c, int level)
{
	int code = c->err->msg_code;

	if (level < 0 &&
	    (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC))
		((struct side *)c->client_data)->has_lost = true;
}

/* Returns whether the scan can be decoded. */
static bool side_open(struct side *s, const uint8_t *jpeg, size_t size, unsigned blocks_max)
{
	uint64_t blocks = 0;

	jpeg_mem_src(&s->in, jpeg, size);
	jpeg_read_header(&s->in, TRUE);
	for (int i = 0; i < s->in.num_components; i++)
		blocks += (uint64_t)s->in.comp_info[i].width_in_blocks *
		          s->in.comp_info[i].height_in_blocks;
	if (s->in.progressive_mode || s->in.arith_code || jpeg_has_multiple_scans(&s->in) ||
	    blocks > blocks_max)
		return false;
	s->in.raw_data_out = TRUE;
	s->in.out_color_space = s->in.jpeg_color_space;
	jpeg_start_decompress(&s->in);
	for (int i = 0; i < D_MAX_BLOCKS_IN_MCU; i++)
		s->rows[i] = &s->blocks[i];
	return true;
}

static void side_decode(struct side *s)
{
	memset(s->blocks, 0, sizeof s->blocks);
	s->in.entropy->decode_mcu(&s->in, s->rows);
}

static void compare(struct side *own, struct side *theirs, struct entropy_comparison *result)
{
	uint64_t count = (uint64_t)own->in.MCUs_per_row * own->in.MCU_rows_in_scan;

	entropy_start(&own->in);
	result->is_decoded = true;
	for (uint64_t i = 0; i < count; i++) {
		side_decode(own);
		result->end = entropy_check(&own->in, false);
		if (result->end)
			return;
		side_decode(theirs);
		/* The MCU before a missing end may be wrong; the next check sees it. */
		if (memcmp(own->blocks, theirs->blocks, sizeof own->blocks) != 0) {
			side_decode(own);
			result->end = entropy_check(&own->in, i + 1 == count);
			assert(result->end);
			return;
		}
		result->blocks += (unsigned)own->in.blocks_in_MCU;
	}
	result->end = entropy_check(&own->in, true);
	result->bytes_left = own->in.src->bytes_in_buffer;
	assert(result->end || !theirs->has_lost);
}

struct entropy_comparison entropy_compare(const uint8_t *jpeg, size_t size, unsigned blocks_max)
{
	static _Thread_local struct side side[2];
	struct entropy_comparison result = { 0 };
	jmp_buf failed;

	for (int i = 0; i < 2; i++) {
		struct side *s = &side[i];

		s->failed = &failed;
		s->has_lost = false;
		s->in.err = jpeg_std_error(&s->errors);
		s->errors.error_exit = on_error;
		s->errors.emit_message = on_message;
		s->in.client_data = s;
		jpeg_create_decompress(&s->in);
	}
	if (!setjmp(failed) && side_open(&side[0], jpeg, size, blocks_max) &&
	    side_open(&side[1], jpeg, size, blocks_max))
		compare(&side[0], &side[1], &result);
	for (int i = 0; i < 2; i++)
		jpeg_destroy_decompress(&side[i].in);
	return result;
}
#else
struct entropy_comparison entropy_compare(const uint8_t *jpeg, size_t size, unsigned blocks_max)
{
	(void)jpeg;
	(void)size;
	(void)blocks_max;
	return (struct entropy_comparison){ 0 };
}
#endif
