/*
 * jpeg_structures.c - one small JPEG of every structure that libjpeg can decode.
 */
#include "jpeg_structures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define YCC                                                                                       \
	.width = STRUCTURE_WIDTH, .height = STRUCTURE_HEIGHT, .from = JCS_YCbCr, .in = JCS_YCbCr, \
	.components = 3
#define GREY                                                                         \
	.width = STRUCTURE_WIDTH, .height = STRUCTURE_HEIGHT, .from = JCS_GRAYSCALE, \
	.in = JCS_GRAYSCALE, .components = 1
#define CMYK .width = STRUCTURE_WIDTH, .height = STRUCTURE_HEIGHT, .from = JCS_CMYK, .components = 4
#define RGB .width = STRUCTURE_WIDTH, .height = STRUCTURE_HEIGHT, .from = JCS_RGB, .components = 3

const struct fixture structures[STRUCTURE_COUNT] = {
	{ .name = "4:2:0", YCC },
	{ .name = "4:4:4", YCC, .sampling = { { 1, 1 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "4:2:2", YCC, .sampling = { { 2, 1 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "4:4:0", YCC, .sampling = { { 1, 2 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "4:1:1", YCC, .sampling = { { 4, 1 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "4:1:0", YCC, .sampling = { { 4, 2 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "4:4:1", YCC, .sampling = { { 1, 4 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "2x4", YCC, .sampling = { { 2, 4 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "3x1", YCC, .sampling = { { 3, 1 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "1x3", YCC, .sampling = { { 1, 3 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "4:2:2 as 2x2,1x2", YCC, .sampling = { { 2, 2 }, { 1, 2 }, { 1, 2 } } },
	{ .name = "4:4:4 as 2x2",
	  YCC,
	  .sampling = { { 2, 2 }, { 2, 2 }, { 2, 2 } },
	  .is_per_component = true },
	{ .name = "4:4:0 as 2x2,2x1", YCC, .sampling = { { 2, 2 }, { 2, 1 }, { 2, 1 } } },
	{ .name = "Cb unlike Cr", YCC, .sampling = { { 2, 2 }, { 1, 1 }, { 2, 1 } } },
	{ .name = "chroma larger than luma", YCC, .sampling = { { 1, 1 }, { 2, 2 }, { 2, 2 } } },
	{ .name = "fractional 3x2,2x1",
	  YCC,
	  .sampling = { { 3, 2 }, { 2, 1 }, { 2, 1 } },
	  .is_raw = true },
	{ .name = "fractional 3x1,2x1",
	  YCC,
	  .sampling = { { 3, 1 }, { 2, 1 }, { 2, 1 } },
	  .is_raw = true },
	{ .name = "fractional 2x3,1x2",
	  YCC,
	  .sampling = { { 2, 3 }, { 1, 2 }, { 1, 2 } },
	  .is_raw = true },
	{ .name = "progressive 4:2:0", YCC, .is_progressive = true },
	{ .name = "progressive 4:4:4",
	  YCC,
	  .sampling = { { 1, 1 }, { 1, 1 }, { 1, 1 } },
	  .is_progressive = true },
	{ .name = "a scan per component", YCC, .is_per_component = true },
	{ .name = "restart markers", YCC, .restart_rows = 1 },
	{ .name = "grey", GREY },
	{ .name = "grey 2x2", GREY, .sampling = { { 2, 2 } } },
	{ .name = "grey 4x1", GREY, .sampling = { { 4, 1 } } },
	{ .name = "grey progressive", GREY, .is_progressive = true },
	{ .name = "RGB", RGB, .in = JCS_RGB },
	{ .name = "RGB subsampled",
	  RGB,
	  .in = JCS_RGB,
	  .sampling = { { 2, 2 }, { 1, 1 }, { 1, 1 } } },
	{ .name = "RGB progressive", RGB, .in = JCS_RGB, .is_progressive = true },
	{ .name = "CMYK", CMYK, .in = JCS_CMYK },
	{ .name = "CMYK without Adobe", CMYK, .in = JCS_CMYK, .no_adobe = true },
	{ .name = "YCCK", CMYK, .in = JCS_YCCK },
	{ .name = "YCCK subsampled",
	  CMYK,
	  .in = JCS_YCCK,
	  .sampling = { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } },
	{ .name = "CMYK progressive", CMYK, .in = JCS_CMYK, .is_progressive = true },
};

const struct fixture *structure(const char *name)
{
	for (size_t i = 0; i < STRUCTURE_COUNT; i++)
		if (strcmp(structures[i].name, name) == 0)
			return &structures[i];
	fail_msg("no structure \"%s\"", name);
	return NULL;
}
