/* codec_fixture.h - what tests of pixels share: a decoder and a resampler for the whole group, and
 * the pool's end behind them. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_CODEC_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_CODEC_FIXTURE_H

/* After cmocka.h. */
#include "pixel/decoder.h"
#include "pixel/encoder.h"
#include "pixel/resample.h"
#include "pool_fixture.h"

static struct decoder decoder;
static struct resampler resampler;

/* For cmocka_run_group_tests(). */
static inline int codec_setup(void **state)
{
	(void)state;
	resampler_init(&resampler);
	return decoder_init(&decoder);
}

static inline int codec_teardown(void **state)
{
	(void)state;
	decoder_fini(&decoder);
	decoder_thread_fini();
	encoder_thread_fini();
	pool_forget();
	return 0;
}

#endif
