/* codec_fixture.c - a decoder and a resampler for all tests of a program. */
#include "codec_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jpeg_structures.h"
#include "pixel/encoder.h"
#include "pool_fixture.h"

struct decoder decoder;
struct resampler resampler;

int codec_setup(void **state)
{
	(void)state;
	resampler_init(&resampler);
	return decoder_init(&decoder);
}

int codec_teardown(void **state)
{
	(void)state;
	decoder_fini(&decoder);
	decoder_thread_fini();
	pool_forget();
	return 0;
}

struct picture *decode_to(struct decoder *d, const uint8_t *jpeg, size_t size, int width,
                          int height, unsigned scans_max, bool stop_on_loss)
{
	enum decoder_result result = decoder_open(d, jpeg, size);
	struct picture *p = NULL;

	if (result == DECODER_FAILED)
		return NULL;
	decoder_choose(d, width, height, (width + 1) / 2, (height + 1) / 2);
	result = decoder_start(d, scans_max, stop_on_loss);
	while (result == DECODER_MORE)
		result = decoder_advance(d, 3);
	if (result == DECODER_DONE)
		p = decoder_take(d);
	decoder_close(d);
	return p;
}

void assert_fault(const uint8_t *jpeg, size_t size, enum decoder_fault fault, const char *text)
{
	assert_null(decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true));
	if (decoder.fault != fault || !strstr(decoder.fault_text, text))
		fail_msg("fault %d, %s; expected %d, %s", decoder.fault, decoder.fault_text, fault,
		         text);
}
