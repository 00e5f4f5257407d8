/*
 * fuzz_encoder.c - the own encoder against libjpeg: the same file, byte by byte, with the same
 * Huffman tables. Planes of knots, which libjpeg does not know: the same file with all kernels.
 */
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "pixel/baseline.c" /* NOLINT(bugprone-suspicious-include): for struct baseline */
#include "pixel/picture_job.h"
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
static void fill(struct picture *p, const uint8_t *from, size_t size)
{
	size_t at = 0;

	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++)
				p->plane[c].data[y * p->plane[c].stride + x] = from[at++ % size];
	picture_pad(p);
}

/* Returns the file, pool memory, that a kernel makes. */
static uint8_t *file_of(const struct mcu_kernel *kernel, unsigned quality, enum chroma chroma,
                        const struct picture *p, unsigned parts, size_t *size)
{
	struct baseline *b = baseline_new(quality, chroma, p, NULL, 0, 1);
	bool is_good = b != NULL;
	uint8_t *file;

	if (b)
		b->kernel = kernel;
	for (unsigned row = 0; is_good && row < baseline_rows(b); row++)
		is_good = baseline_note(b, row);
	is_good = is_good && baseline_tables(b);
	for (; is_good && parts > 0; parts--)
		is_good = baseline_code(b, parts);
	assert(is_good);
	baseline_take(b, &file, size);
	baseline_free(b);
	return file;
}

/* Encodes a picture like p whose samples are knots, or nothing if p is too small. */
static void compare_kernels(const struct picture *p, unsigned quality, enum chroma chroma,
                            const uint8_t *data, size_t size)
{
	struct picture_job *job = picture_blur_begin(p, chroma, 4 << quality % 2, true);
	const struct mcu_kernel *kernel;
	uint8_t *first = NULL;
	size_t first_size = 0, file_size;

	assert(job);
	fill(job->result, data, size);
	for (unsigned k = 0; job->result->plane[0].step && (kernel = mcu_kernel_at(k)); k++) {
		uint8_t *file = file_of(kernel, quality, chroma, job->result, 1 + k, &file_size);

		if (k == 0) {
			first = file;
			first_size = file_size;
			continue;
		}
		assert(file_size == first_size && memcmp(file, first, file_size) == 0);
		pool_put(file);
	}
	pool_put(first);
	picture_job_free(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= HEAD)
		return 0;
	enum chroma chroma = (enum chroma)(CHROMA_NONE + data[2] % 3);
	unsigned quality = 1 + data[3] % 100;
	struct picture *p = empty_picture(chroma, 1 + data[0] % SIDE_MAX, 1 + data[1] % SIDE_MAX);
	size_t file_size;

	fill(p, data + HEAD, size - HEAD);
	uint8_t *file =
		file_of(mcu_kernel_at(0), quality, chroma, p, 1 + data[2] / 3 % 4, &file_size);

	assert(is_file_of_libjpeg(file, file_size, quality, chroma, p, NULL, 0));
	files++;
	bytes += file_size;
	pool_put(file);
	compare_kernels(p, quality, chroma, data + HEAD, size - HEAD);
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
