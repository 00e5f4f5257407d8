/*
 * test_encoder_jailed.c - files that a process makes, and a process that somebody has taken over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/pool.h"
#include "jail/jail.c"
#include "pixel/encoder.h"
#include "support/codec_fixture.h"
#include "support/picture_fixture.h"
#include "support/program_path.h"

#define WIDTH 61
#define HEIGHT 47
#define CPU_MS 300
#define BOTH (JAIL_ENCODES(FILE_AVIF) | JAIL_ENCODES(FILE_WEBP))
#define READ_ALSO (1U << FILE_AVIF | 1U << FILE_WEBP)
#define ACTS 42
#define ACT_OTHER_PIXELS 42 /* a file of this size, whose pixels nobody can know */

static void start(const char *name, uint32_t formats)
{
	assert_int_equal(jail_start(program_path(name), formats, 2), 0);
	for (unsigned f = FILE_AVIF; f <= FILE_WEBP; f++)
		assert_true(jail_can_encode(f));
}

/* Encodes by steps, as the stage does. Returns what the last one gave; a file is pool memory. */
static int encode(enum file_format format, const struct picture *p, uint8_t **file, size_t *size)
{
	const struct encoding how = { .format = format, .quality = 100 };
	struct encoder *e = encoder_new(&how, p, NULL, 0);
	uint64_t end_ns = clock_ns() + 20 * NS_PER_S;
	int result;

	assert_non_null(e);
	e->cpu_ms = CPU_MS;
	while ((result = encoder_advance(e, 1)) > 0)
		assert_true(clock_ns() < end_ns);
	assert_true(e->job.cpu_ns < 2 * CPU_MS * NS_PER_MS);
	if (result == 0) {
		encoder_take(e, file, size);
		assert_true(*size <= encoder_bytes(&how, picture_chroma(p), WIDTH, HEIGHT, 0));
	}
	encoder_free(e);
	return result;
}

/* ---- files ---- */

static int difference(const struct picture *a, const struct picture *b)
{
	int most = 0;

	assert_int_equal(a->plane_count, b->plane_count);
	assert_int_equal(a->width, b->width);
	assert_int_equal(a->height, b->height);
	for (unsigned c = 0; c < a->plane_count; c++)
		for (int y = 0; y < a->height; y++)
			for (int x = 0; x < a->width; x++) {
				int d = abs(sample(a, c, x, y) - sample(b, c, x, y));

				most = d > most ? d : most;
			}
	return most;
}

/* Grey samples come back as they were. */
static void a_file_has_the_samples_of_its_picture(void **state)
{
	struct picture *p = sloped_picture(CHROMA_NONE, WIDTH, HEIGHT), *back;
	uint8_t *file;
	size_t size;

	(void)state;
	start("darkroom-decode", BOTH | READ_ALSO);
	assert_int_equal(encode(FILE_AVIF, p, &file, &size), 0);
	decoder.background = 0xffffff;
	decoder.cpu_ms = 10 * CPU_MS;
	back = decode_to(&decoder, file, size, WIDTH, HEIGHT, 1, true);
	if (!back)
		fail_msg("%s", decoder.fault_text);
	assert_in_range(difference(p, back), 0, 1);
	picture_unref(back);
	picture_unref(p);
	pool_put(file);
	jail_stop();
}

static void a_size_that_webp_lacks_is_told(void **state)
{
	struct picture *p = sloped_picture(CHROMA_420, 16384, 1);
	uint8_t *file;
	size_t size;

	(void)state;
	start("darkroom-decode", BOTH);
	assert_int_equal(encode(FILE_WEBP, p, &file, &size), -EFBIG);
	picture_unref(p);
	jail_stop();
	p = sloped_picture(CHROMA_420, WIDTH, HEIGHT);
	assert_int_equal(encode(FILE_WEBP, p, &file, &size), -ENOSYS);
	picture_unref(p);
}

/* ---- a process that somebody has taken over ---- */

/* The last samples of the picture name the act. */
static struct picture *order(int act)
{
	struct picture *p = sloped_picture(CHROMA_420, WIDTH, HEIGHT);
	const struct plane *last = &p->plane[2];
	char text[8];

	snprintf(text, sizeof text, "ACT%02d", act);
	memcpy(last->data + (last->height - 1) * last->stride + last->width - 5, text, 5);
	return p;
}

static bool is_every_slot_empty(void)
{
	for (unsigned k = 0; k < jail.slot_count; k++) {
		while (!is_fit(&jail.slot[k]))
			take_notices();
		if (lseek(jail.slot[k].memfd, 0, SEEK_DATA) >= 0)
			return false;
	}
	return true;
}

/* Whatever it does, there is no file, or one of this size; and the next file is right. */
static void hostile_acts_cost_their_file_only(void **state)
{
	struct picture *honest = sloped_picture(CHROMA_420, WIDTH, HEIGHT);
	uint8_t *good, *file;
	size_t good_size, size;

	(void)state;
	start("tests/tools/hostile_decode", BOTH);
	assert_int_equal(encode(FILE_AVIF, honest, &good, &good_size), 0);
	for (int act = 1; act <= ACTS; act++) {
		struct picture *p = order(act);
		int result = encode(FILE_AVIF, p, &file, &size);

		if (result != (act == ACT_OTHER_PIXELS ? 0 : -EPROTO))
			fail_msg("act %d: %d", act, result);
		if (result == 0)
			pool_put(file);
		picture_unref(p);
		memset(jail.crashes, 0, sizeof jail.crashes);
		assert_int_equal(encode(FILE_AVIF, honest, &file, &size), 0);
		assert_int_equal(size, good_size);
		assert_memory_equal(file, good, size);
		pool_put(file);
	}
	assert_true(is_every_slot_empty());
	pool_put(good);
	picture_unref(honest);
	jail_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_has_the_samples_of_its_picture),
		cmocka_unit_test(a_size_that_webp_lacks_is_told),
		cmocka_unit_test(hostile_acts_cost_their_file_only),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
