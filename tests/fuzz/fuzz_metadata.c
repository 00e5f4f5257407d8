/*
 * fuzz_metadata.c - EXIF and ICC segments: everything found is within the file, and a profile is
 * copied as its chunks are.
 */
#include "base/pool.h"
#include "pixel/metadata.h"
#include "support/jpeg_fixture.h"
#include "target.h"

const unsigned target_mutants = 500;

static void check_slices(const struct metadata *m, const uint8_t *jpeg, size_t size)
{
	size_t sum = 0;

	assert(m->orientation >= 1 && m->orientation <= 8);
	assert(m->icc_bytes <= ICC_BYTES_MAX && m->icc_chunk_count <= ICC_CHUNK_MAX);
	for (unsigned i = 0; i < m->icc_chunk_count; i++) {
		const uint8_t *data = m->icc_chunk[i].data;

		assert(data >= jpeg && data <= jpeg + size);
		assert(m->icc_chunk[i].size <= (size_t)(jpeg + size - data));
		sum += m->icc_chunk[i].size;
	}
	assert(sum == m->icc_bytes);
}

static void check_copy(const struct metadata *m, enum icc_space space)
{
	uint8_t *icc;
	size_t size, at = 0;

	assert(metadata_copy_icc(m, space, &icc, &size) == 0);
	assert(icc ? size == m->icc_bytes : size == 0);
	for (unsigned i = 0; icc && i < m->icc_chunk_count; i++) {
		assert(memcmp(icc + at, m->icc_chunk[i].data, m->icc_chunk[i].size) == 0);
		at += m->icc_chunk[i].size;
	}
	pool_put(icc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = target_copy(data, size);
	struct metadata m;

	metadata_read(&m, copy, size);
	check_slices(&m, copy, size);
	check_copy(&m, ICC_RGB);
	check_copy(&m, ICC_GRAY);
	assert(exif_orientation(copy, size) <= 8);
	free(copy);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	uint8_t exif[64], icc[400] = { [2] = 1, [3] = 144,  [16] = 'R', 'G', 'B',
		                       ' ',     [36] = 'a', 'c',        's', 'p' };
	struct fixture f = { .width = 8,
		             .height = 8,
		             .from = JCS_YCbCr,
		             .in = JCS_YCbCr,
		             .components = 3,
		             .app1 = exif,
		             .icc = icc,
		             .icc_size = sizeof icc };

	for (unsigned i = 0; i < 4; i++) {
		size_t size;

		f.app1_size = fixture_exif(exif, 3 * i, i % 2);
		if (i == 0)
			emit(exif, f.app1_size);
		uint8_t *jpeg = fixture_make(&f, &size);

		emit(jpeg, size);
		free(jpeg);
		memcpy(icc + 16, "GRAY", 4);
	}
}
