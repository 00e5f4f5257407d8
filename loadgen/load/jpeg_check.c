/*
 * jpeg_check.c - decodes with the system's libjpeg.
 *
 * Shares no code with the server whose output it checks.
 */
#include "jpeg_check.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

struct checker {
	struct jpeg_error_mgr errors;
	jmp_buf back;
	char message[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr cinfo)
{
	struct checker *c = (struct checker *)(void *)cinfo->err;

	cinfo->err->format_message(cinfo, c->message);
	longjmp(c->back, 1);
}

/* Warnings end the check: a server must not write what decoders have to guess. */
static void on_message(j_common_ptr cinfo, int level)
{
	if (level < 0)
		on_error(cinfo);
}

int jpeg_check(const void *data, size_t length, uint64_t width, uint64_t height, char *problem,
               size_t problem_size)
{
	struct jpeg_decompress_struct cinfo;
	struct checker checker;
	JSAMPARRAY row;

	cinfo.err = jpeg_std_error(&checker.errors);
	checker.errors.error_exit = on_error;
	checker.errors.emit_message = on_message;
	if (setjmp(checker.back)) {
		jpeg_destroy_decompress(&cinfo);
		snprintf(problem, problem_size, "%s", checker.message);
		return -1;
	}
	jpeg_create_decompress(&cinfo);
	jpeg_mem_src(&cinfo, data, length);
	jpeg_read_header(&cinfo, TRUE);
	/* checked before memory is reserved for it */
	if (cinfo.image_width != width || cinfo.image_height != height) {
		snprintf(checker.message, sizeof checker.message,
		         "%ux%u pixels, announced as %llux%llu pixels", cinfo.image_width,
		         cinfo.image_height, (unsigned long long)width, (unsigned long long)height);
		longjmp(checker.back, 1);
	}
	jpeg_start_decompress(&cinfo);
	row = cinfo.mem->alloc_sarray((j_common_ptr)&cinfo, JPOOL_IMAGE,
	                              cinfo.output_width * (JDIMENSION)cinfo.output_components, 1);
	while (cinfo.output_scanline < cinfo.output_height)
		jpeg_read_scanlines(&cinfo, row, 1);
	jpeg_finish_decompress(&cinfo);
	jpeg_destroy_decompress(&cinfo);
	return 0;
}
