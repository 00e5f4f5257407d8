/*
 * encoder_pass.c - runs the passes of libjpeg-turbo 2 as its jpeg_finish_compress() does.
 *
 * The second pass of an optimised baseline file is coded by huffman.c. A unit test compares the
 * files with those of jpeg_finish_compress().
 */
#include "encoder_pass.h"

#if LIBJPEG_HAS_PRIVATE

#include <jerror.h>

#include "encoder.h"
#include "huffman.h"

bool encoder_pass_is_left(const struct encoder *e)
{
	if (!e->uses_private)
		return false;
	return e->huffman ? e->pass == 0 : !e->out.master->is_last_pass;
}

void encoder_pass_begin(struct encoder *e)
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

void encoder_pass_row(struct encoder *e)
{
	if (e->huffman)
		huffman_code(e->huffman, &e->out, e->out.total_iMCU_rows - e->row);
	else if (!e->out.coef->compress_data(&e->out, NULL))
		ERREXIT(&e->out, JERR_CANT_SUSPEND);
}

#else

typedef int encoder_pass_is_empty; /* ISO C requires a declaration in every file */

#endif
