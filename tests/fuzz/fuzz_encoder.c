/*
 * fuzz_encoder.c - the own encoder against libjpeg: the same file, byte by byte, with the same
 * Huffman tables.
 */
#include <stdio.h>

#include "base/pool.h"
#include "pixel/baseline.h"
#include "support/encoder_compare.h"
#include "support/picture_fixture.h"
#include "target.h"

#define SIDE_MAX 80
#define HEAD 4 /* bytes before the samples: width, height, chroma and steps, quality */

const unsigned target_mutants = 60;

static unsigned long files, bytes;

void target_report(void)
{
	printf("%lu equal files of %lu bytes\n", files, bytes);
}

/* Fills the planes from the samples, which begin again at their end. */
static struct picture *picture_of(enum chroma chroma, int width, int height, const uint8_t *from,
                                  size_t size)
{
	struct picture *p = empty_picture(chroma, width, height);
	size_t at = 0;

	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++)
				p->plane[c].data[y * p->plane[c].stride + x] = from[at++ % size];
	picture_pad(p);
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= HEAD)
		return 0;
	enum chroma chroma = (enum chroma)(CHROMA_NONE + data[2] % 3);
	unsigned quality = 1 + data[3] % 100;
	struct picture *p = picture_of(chroma, 1 + data[0] % SIDE_MAX, 1 + data[1] % SIDE_MAX,
	                               data + HEAD, size - HEAD);
	struct baseline *b = baseline_new(quality, chroma, p, NULL, 0, 1);
	bool is_good = b != NULL;

	for (unsigned row = 0; is_good && row < baseline_rows(b); row++)
		is_good = baseline_note(b, row);
	is_good = is_good && baseline_tables(b);
	for (unsigned parts = 1 + data[2] / 3 % 4; is_good && parts > 0; parts--)
		is_good = baseline_code(b, parts);
	assert(is_good);
	uint8_t *file;
	size_t file_size;

	baseline_take(b, &file, &file_size);
	baseline_free(b);
	assert(is_file_of_libjpeg(file, file_size, quality, chroma, p, NULL, 0));
	files++;
	bytes += file_size;
	pool_put(file);
	picture_unref(p);
	return 0;
}

/* Each seed is another kind of samples: flat, slopes, edges, noise. */
void target_seeds(void (*emit)(const void *data, size_t size))
{
	uint8_t data[HEAD + 4096];
	uint32_t state = 1;

	for (unsigned i = 0; i < 48; i++) {
		data[0] = (uint8_t)target_random(&state);
		data[1] = (uint8_t)target_random(&state);
		data[2] = (uint8_t)i;
		data[3] = (uint8_t)(i < 40 ? 2 * i + 20 : 99);
		for (unsigned k = 0; k < sizeof(data) - HEAD; k++) {
			uint32_t r = target_random(&state);

			data[HEAD + k] = (uint8_t)(i % 4 == 0   ? 200
			                           : i % 4 == 1 ? k / 3
			                           : i % 4 == 2 ? (r % 50 ? 0 : 255)
			                                        : r);
		}
		emit(data, i < 40 ? sizeof(data) : HEAD + 1 + i);
	}
}
