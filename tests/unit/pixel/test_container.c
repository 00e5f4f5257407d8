/*
 * test_container.c - what encloses a stream, and streams that are not of the picture. What the
 * boxes of an AVIF say is in test_avif_file.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "jail/file_header.h"
#include "pixel/container.h"

#define WIDTH 301
#define HEIGHT 77

/* A sequence header of a still picture of 301 x 77 in 4:2:0: 9 and 7 bits for its sides. */
static const uint8_t av1[16] = { 0x0a, 6, 0x18, 0x21, 0xa5, 0x93, 0x00 };
static const uint8_t vp8[16] = { 0, 0, 0, 0x9d, 1, 0x2a, WIDTH & 255, WIDTH >> 8, HEIGHT };

static struct container container(enum file_format format)
{
	return (struct container){
		.format = format, .width = WIDTH, .height = HEIGHT, .chroma = CHROMA_420
	};
}

static const uint8_t *stream_of(enum file_format format)
{
	return format == FILE_AVIF ? av1 : vp8;
}

static void a_stream_of_another_picture_does_not_fit(void **state)
{
	(void)state;
	for (unsigned format = FILE_AVIF; format <= FILE_WEBP; format++) {
		struct container c = container(format);

		assert_true(container_fits(&c, stream_of(format), sizeof av1));
		c.width++;
		assert_false(container_fits(&c, stream_of(format), sizeof av1));
		c.width -= 2;
		assert_false(container_fits(&c, stream_of(format), sizeof av1));
		c.width++;
		c.height--;
		assert_false(container_fits(&c, stream_of(format), sizeof av1));
	}
	struct container full = container(FILE_AVIF);

	full.chroma = CHROMA_444; /* needs another profile */
	assert_false(container_fits(&full, av1, sizeof av1));
}

/* Each changed bit of what is looked at is noticed, and no byte beyond the stream is read. */
static void a_changed_or_cut_stream_does_not_fit(void **state)
{
	/* But for level, tier and length of an AV1, and the kind and length of a VP8. */
	static const unsigned looked_at[FILE_FORMATS] = { [FILE_AVIF] = 7, [FILE_WEBP] = 10 },
			      ignored[FILE_FORMATS] = { [FILE_AVIF] = 17, [FILE_WEBP] = 23 };

	(void)state;
	for (unsigned format = FILE_AVIF; format <= FILE_WEBP; format++) {
		struct container c = container(format);
		unsigned noticed = 0;

		for (size_t size = 0; size < (format == FILE_AVIF ? 16U : 10U); size++) {
			uint8_t *copy = malloc(size ? size : 1);

			assert_non_null(copy);
			memcpy(copy, stream_of(format), size);
			assert_false(container_fits(&c, copy, size));
			free(copy);
		}
		for (unsigned bit = 0; bit < 8 * looked_at[format]; bit++) {
			uint8_t copy[sizeof av1];

			memcpy(copy, stream_of(format), sizeof copy);
			copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
			noticed += !container_fits(&c, copy, sizeof copy);
		}
		assert_int_equal(noticed, 8 * looked_at[format] - ignored[format]);
	}
}

static void a_webp_is_read_back(void **state)
{
	static const uint8_t icc[131] = { 7 };

	(void)state;
	for (size_t icc_size = 0; icc_size <= sizeof icc; icc_size += sizeof icc)
		for (size_t size = sizeof vp8 - 1; size <= sizeof vp8; size++) {
			struct container c = container(FILE_WEBP);
			uint8_t file[1024] = { 0 };
			struct file_header h;

			c.icc = icc;
			c.icc_size = icc_size;
			size_t head = container_head(&c, file, vp8, size),
			       pad = container_pad(&c, size), all = head + size + pad;

			assert_true(head <= container_bytes(icc_size));
			memcpy(file + head, vp8, size);
			assert_int_equal(all % 2, 0);
			assert_int_equal(file[4] | file[5] << 8, all - 8);
			file_header_read(&h, file, all);
			assert_int_equal(h.format, FILE_WEBP);
			assert_int_equal(h.width, WIDTH);
			assert_int_equal(h.height, HEIGHT);
			assert_false(h.has_alpha || h.refused || h.is_whole);
			assert_int_equal(h.icc.size, icc_size);
			assert_true(!icc_size || memcmp(h.icc.data, icc, icc_size) == 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_of_another_picture_does_not_fit),
		cmocka_unit_test(a_changed_or_cut_stream_does_not_fit),
		cmocka_unit_test(a_webp_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
