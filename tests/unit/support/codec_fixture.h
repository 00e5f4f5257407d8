/* codec_fixture.h - a decoder and a resampler for all tests of a program. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_CODEC_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_CODEC_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/decoder.h"
#include "pixel/picture_job.h"

extern struct decoder decoder;
extern struct resampler resampler;

/* For cmocka_run_group_tests(). The teardown asserts that all pool buffers have been returned. */
int codec_setup(void **state);
int codec_teardown(void **state);

/* Asserts that decoding a file of STRUCTURE_WIDTH x STRUCTURE_HEIGHT fails with this fault, and
 * that the fault text contains `text`. */
void assert_fault(const uint8_t *jpeg, size_t size, enum decoder_fault fault, const char *text);

/* Decodes to planes with at least width x height samples. Returns NULL on failure: see d->fault. */
struct picture *decode_to(struct decoder *d, const uint8_t *jpeg, size_t size, int width,
                          int height, unsigned scans_max, bool stop_on_loss);

#endif
