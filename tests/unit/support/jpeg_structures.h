/*
 * jpeg_structures.h - one small JPEG of every structure that libjpeg can decode, and the way to
 * decode it in a test.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_JPEG_STRUCTURES_H
#define DARKROOM_TESTS_UNIT_SUPPORT_JPEG_STRUCTURES_H

#include "jpeg_fixture.h"
#include "pixel/decoder.h"

#define W 117
#define H 83

#define YCC .width = W, .height = H, .from = JCS_YCbCr, .in = JCS_YCbCr, .components = 3
#define GREY .width = W, .height = H, .from = JCS_GRAYSCALE, .in = JCS_GRAYSCALE, .components = 1
#define CMYK .width = W, .height = H, .from = JCS_CMYK, .components = 4
#define RGB .width = W, .height = H, .from = JCS_RGB, .components = 3

static const struct fixture structures[] = {
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

/* Decodes to planes that serve width x height; NULL: d->fault. Not inlined: the compiler would then
 * see that NULL is possible where a test knows better. */
__attribute__((unused, noinline)) static struct picture *decode_to(struct decoder *d,
                                                                   const uint8_t *jpeg, size_t size,
                                                                   int width, int height,
                                                                   unsigned scans, bool stop)
{
	enum decoder_result result = decoder_open(d, jpeg, size);
	struct picture *p = NULL;

	if (result == DECODER_FAILED)
		return NULL;
	decoder_choose(d, width, height, (width + 1) / 2, (height + 1) / 2);
	result = decoder_start(d, scans, stop);
	while (result == DECODER_MORE)
		result = decoder_advance(d, 3);
	if (result == DECODER_DONE)
		p = decoder_take(d);
	decoder_close(d);
	return p;
}

static inline size_t find_marker(const uint8_t *jpeg, size_t size, unsigned marker)
{
	for (size_t i = 2; i + 1 < size; i++)
		if (jpeg[i] == 0xff && jpeg[i + 1] == marker)
			return i;
	return 0;
}

#endif
