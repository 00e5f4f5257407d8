/*
 * kernel_compare.c - compares two kernels on random inputs, function by function.
 */
#include "kernel_compare.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/round.h"
#include "pixel/kernel.h"
#include "pixel/mcu.h"
#include "pixel/weights.h"

struct fenced {
	void *data, *map;
	size_t size, map_size;
};

static size_t up_to(int n, int multiple)
{
	return (size_t)((n + multiple - 1) / multiple * multiple);
}

static uint32_t seed = 2463534242U;

/* Returns random bytes. One byte in four is 0 and one in four is 255, to test the limits. */
static struct fenced fenced_new(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + page - 1) / page * page;
	struct fenced f = { .size = size, .map_size = room + page };
	uint8_t *data;

	f.map = mmap(NULL, f.map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f.map == MAP_FAILED || mprotect((uint8_t *)f.map + room, page, PROT_NONE)) {
		perror("kernel_compare: mmap");
		abort();
	}
	f.data = data = (uint8_t *)f.map + room - size;
	for (size_t i = 0; i < size; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 17;
		seed ^= seed << 5;
		data[i] = (uint8_t)(seed >> 30 == 0 ? 0 : seed >> 30 == 1 ? 255 : seed >> 8);
	}
	return f;
}

static struct fenced fenced_copy(const struct fenced *of)
{
	struct fenced f = fenced_new(of->size);

	memcpy(f.data, of->data, of->size);
	return f;
}

static void fenced_free(struct fenced *f)
{
	munmap(f->map, f->map_size);
}

/* Returns random weights without -32768, for which NEON saturates. */
static struct fenced fenced_weights(size_t count)
{
	struct fenced f = fenced_new(count * sizeof(int16_t));
	int16_t *w = f.data;

	for (size_t i = 0; i < count; i++)
		w[i] = w[i] == INT16_MIN ? INT16_MAX : w[i];
	return f;
}

static const int compared_widths[] = { 1,  2,  7,  8,  9,   15,  16,  17,  31,  32,
	                               33, 63, 64, 65, 127, 128, 129, 255, 256, 257 };

static bool vertical_agrees(const struct kernel *a, const struct kernel *b, int width, int taps)
{
	size_t room = up_to(width, KERNEL_COLUMNS), stride = room + 64;
	struct fenced src = fenced_new((size_t)(taps - 1) * stride + room),
		      w = fenced_weights((size_t)taps);
	struct fenced out = fenced_new(room * sizeof(int16_t)), want = fenced_copy(&out);
	bool agree;

	a->vertical(src.data, (ptrdiff_t)stride, width, w.data, taps, out.data);
	b->vertical(src.data, (ptrdiff_t)stride, width, w.data, taps, want.data);
	agree = !memcmp(out.data, want.data, (size_t)width * sizeof(int16_t));
	fenced_free(&src);
	fenced_free(&w);
	fenced_free(&out);
	fenced_free(&want);
	return agree;
}

/* Uses the weights of the filter, or random ones in their place. */
static bool horizontal_agrees(const struct kernel *a, const struct kernel *b,
                              const struct filter *filter, bool random)
{
	static struct curves curves;
	struct fenced table = fenced_new((size_t)weights_bytes(filter)), w = { 0 };
	struct fenced tile = fenced_new((size_t)filter->in * KERNEL_TILE * sizeof(int16_t));
	struct fenced out = fenced_new((size_t)filter->out * KERNEL_TILE), want = fenced_copy(&out);
	struct weights t;
	bool agree;

	if (curves.lanczos[0] == 0)
		curves_init(&curves);
	weights_make(&t, filter, &curves, table.data);
	w = fenced_weights((size_t)t.out * (size_t)t.taps);
	if (!random)
		memcpy(w.data, t.w, w.size);
	t.w = w.data;
	a->horizontal(tile.data, &t, out.data);
	b->horizontal(tile.data, &t, want.data);
	agree = !memcmp(out.data, want.data, out.size);
	fenced_free(&table);
	fenced_free(&w);
	fenced_free(&tile);
	fenced_free(&out);
	fenced_free(&want);
	return agree;
}

static bool into_tile_is_right(int width, int row_count)
{
	size_t columns = up_to(width, 8), pitch = columns + 32, high = up_to(row_count, 8);
	struct fenced rows = fenced_new(((high - 1) * pitch + columns) * sizeof(int16_t));
	struct fenced tile = fenced_new(((columns - 1) * KERNEL_TILE + high) * sizeof(int16_t)),
		      want = fenced_copy(&tile);
	const int16_t *p = tile.data, *from = rows.data;
	int16_t *q = want.data;
	bool agree = true;

	kernel_into_tile(rows.data, (ptrdiff_t)pitch, width, row_count, tile.data);
	for (int x = 0; x < width; x++)
		for (int i = 0; i < row_count; i++)
			q[x * KERNEL_TILE + i] = from[(size_t)i * pitch + (size_t)x];
	for (int x = 0; x < width; x++)
		agree = agree && !memcmp(p + x * KERNEL_TILE, q + x * KERNEL_TILE,
		                         (size_t)row_count * sizeof(int16_t));
	fenced_free(&rows);
	fenced_free(&tile);
	fenced_free(&want);
	return agree;
}

/* Samples between the rows must not change, except those up to a multiple of 16. */
static bool out_of_tile_is_right(int width, int row_count)
{
	size_t wide = up_to(width, 16), stride = wide + 16;
	struct fenced columns = fenced_new((wide - 1) * KERNEL_TILE + up_to(row_count, 16));
	struct fenced dst = fenced_new((size_t)(row_count - 1) * stride + wide),
		      want = fenced_copy(&dst);
	uint8_t *p = dst.data, *q = want.data;
	const uint8_t *from = columns.data;
	bool agree;

	kernel_out_of_tile(columns.data, width, row_count, p, (ptrdiff_t)stride);
	for (int i = 0; i < row_count; i++)
		for (int x = 0; x < width; x++)
			q[(size_t)i * stride + (size_t)x] = from[x * KERNEL_TILE + i];
	for (int y = 0; y < row_count; y++)
		for (size_t x = (size_t)width; x < wide; x++)
			p[(size_t)y * stride + x] = q[(size_t)y * stride + x] = 0;
	agree = !memcmp(p, q, dst.size);
	fenced_free(&columns);
	fenced_free(&dst);
	fenced_free(&want);
	return agree;
}

static bool verticals_agree(const struct kernel *a, const struct kernel *b)
{
	static const int taps[] = { 1, 2, 3, 4, 5, 6, 7, 8, 13, 64, 257, WEIGHTS_TAPS_MAX };

	for (size_t i = 0; i < COUNT_OF(compared_widths); i++)
		for (size_t k = 0; k < COUNT_OF(taps); k++)
			if (!vertical_agrees(a, b, compared_widths[i], taps[k])) {
				printf("vertical of %s and %s: width %d, %d taps\n", a->name,
				       b->name, compared_widths[i], taps[k]);
				return false;
			}
	return true;
}

/* Scaling only reduces; the spline enlarges. */
static bool horizontals_agree(const struct kernel *a, const struct kernel *b)
{
	static const int outs[] = { 1, 2, 5, 32, 100, 257 };

	for (size_t i = 0; i < COUNT_OF(compared_widths); i++)
		for (size_t k = 0; k < COUNT_OF(outs) && outs[k] <= compared_widths[i]; k++) {
			int in = compared_widths[i], out = outs[k];
			double step = (double)in / out;
			const struct filter filters[] = {
				filter_lanczos(in, out, in, out, 1, 0, false),
				filter_lanczos(in, out, in, out, 1, 0, true),
				filter_gauss(in, out, 0, step, .7),
				filter_gauss(in, out, 0, step, 20),
				filter_spline(out, in, 0, step),
			};

			for (size_t f = 0; f < 2 * COUNT_OF(filters); f++)
				if (!horizontal_agrees(a, b, &filters[f / 2], f % 2)) {
					printf("horizontal of %s and %s: filter %zu, %d and %d, %s weights\n",
					       a->name, b->name, f / 2, in, out,
					       f % 2 ? "random" : "its");
					return false;
				}
		}
	return true;
}

static bool tiles_are_right(void)
{
	for (size_t i = 0; i < COUNT_OF(compared_widths); i++)
		for (int n = 1; n <= KERNEL_TILE; n++) {
			bool into = into_tile_is_right(compared_widths[i], n),
			     out = out_of_tile_is_right(compared_widths[i], n);

			if (!into || !out) {
				printf("%s: width %d, %d rows\n",
				       into ? "out_of_tile" : "into_tile", compared_widths[i], n);
				return false;
			}
		}
	return true;
}

bool kernels_agree(const struct kernel *a, const struct kernel *b)
{
	bool vertical = verticals_agree(a, b), horizontal = horizontals_agree(a, b),
	     tiles = tiles_are_right();

	return vertical && horizontal && tiles;
}

/* ---- notes ---- */

#define NOTED_BLOCKS 19 /* in a row */
#define HASH_BEGIN UINT64_C(14695981039346656037)

static uint64_t hash_bytes(const void *data, size_t size, uint64_t hash)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * UINT64_C(1099511628211); /* FNV-1a */
	return hash;
}

static uint64_t notes_hash(const struct mcu_kernel *kernel, struct mcu_row *m, uint64_t hash)
{
	static uint32_t note[6 * NOTED_BLOCKS * MCU_COEFFICIENTS + MCU_NOTE_SLACK];
	int all = m->chroma == CHROMA_420 ? (m->wide + 1) / 2 : m->wide;
	uint32_t *end = kernel->note(m, 0, all / 2, note);

	end = kernel->note(m, all / 2, all, end);
	return hash_bytes(note, (size_t)(end - note) * sizeof(*note), hash);
}

/* Hashes the notes of a row of MCUs that are made from the knots of splines. */
static uint64_t knots_hash(const struct mcu_kernel *kernel, struct mcu_row *m, int step,
                           bool is_low, uint64_t hash)
{
	struct mcu_blocks *row[] = { &m->luma[0], &m->luma[1], &m->cb, &m->cr };
	const struct mcu_spline *spline = mcu_spline_of(step);
	int width = mcu_knots(spline, m->wide * MCU_BLOCK);
	size_t pitch = round_up((uint64_t)width, MCU_COLUMNS);
	struct fenced columns[COUNT_OF(row)];

	for (size_t i = 0; i < COUNT_OF(row); i++) {
		struct fenced knots = fenced_new((size_t)spline->knots * pitch);

		columns[i] = fenced_new(MCU_BLOCK * sizeof(int16_t) * pitch);
		row[i]->spline = spline;
		row[i]->columns = columns[i].data;
		row[i]->is_low = is_low;
		kernel->transform(row[i], knots.data, (ptrdiff_t)pitch, width);
		fenced_free(&knots);
	}
	hash = notes_hash(kernel, m, hash);
	for (size_t i = 0; i < COUNT_OF(row); i++)
		fenced_free(&columns[i]);
	return hash;
}

/* Hashes the notes of a row of MCUs. Its lines are smoother with a larger shift. */
static uint64_t row_hash(const struct mcu_kernel *kernel, struct mcu_row *m, int shift,
                         uint64_t hash)
{
	size_t stride = (size_t)(m->chroma == CHROMA_420 ? (m->wide + 1) / 2 : m->wide) * MCU_BLOCK,
	       wide = (size_t)m->wide * MCU_BLOCK, high = 2 * MCU_BLOCK;
	struct fenced luma = fenced_new(wide * high), cb = fenced_new(stride * MCU_BLOCK),
		      cr = fenced_new(stride * MCU_BLOCK);

	for (size_t i = 0; i < luma.size; i++)
		((uint8_t *)luma.data)[i] = (uint8_t)(((uint8_t *)luma.data)[i] >> shift);
	for (size_t i = 0; i < high; i++)
		m->luma[i / MCU_BLOCK].line[i % MCU_BLOCK] = (uint8_t *)luma.data + i * wide;
	for (size_t i = 0; i < MCU_BLOCK; i++) {
		m->cb.line[i] = (uint8_t *)cb.data + i * stride;
		m->cr.line[i] = (uint8_t *)cr.data + i * stride;
	}
	hash = notes_hash(kernel, m, hash);
	fenced_free(&luma);
	fenced_free(&cb);
	fenced_free(&cr);
	return hash;
}

uint64_t mcu_notes_hash(const struct mcu_kernel *kernel)
{
	uint64_t hash = HASH_BEGIN;

	seed = 2463534242U;
	for (unsigned i = 0; i < 400; i++) {
		static struct mcu_divisors luma, chroma;
		uint8_t quantum[MCU_COEFFICIENTS];

		for (unsigned k = 0; k < MCU_COEFFICIENTS; k++)
			quantum[k] = (uint8_t)(1 + (i * i + 7 * k) % (i % 2 ? 255 : 1 + i % 40));
		mcu_divisors_make(&luma, quantum);
		quantum[0] = 1;
		mcu_divisors_make(&chroma, quantum);
		struct mcu_row m = {
			.chroma = (enum chroma)(CHROMA_NONE + i % 3),
			.luma_divisors = &luma,
			.chroma_divisors = &chroma,
			.wide = 1 + (int)i % NOTED_BLOCKS,
			.is_cut = i % 5 == 0,
		};

		hash = row_hash(kernel, &m, (int)i % 8, hash);
		hash = knots_hash(kernel, &m, 2 << i % 3, i % 7 < 3, hash);
	}
	return hash;
}

/* Coefficients as far from 0 as those of 8-bit samples. */
uint64_t mcu_samples_hash(const struct mcu_kernel *kernel)
{
	uint64_t hash = HASH_BEGIN;

	seed = 2463534242U;
	for (unsigned i = 0; i < 2000; i++) {
		struct fenced from = fenced_new(2 * MCU_COEFFICIENTS * sizeof(int16_t)),
			      by = fenced_new(MCU_COEFFICIENTS * sizeof(int16_t));
		unsigned log = i % 4, size = 1U << log;
		struct fenced to = fenced_new((size_t)size * 2 * size);
		int16_t *c = from.data, *q = by.data;

		for (unsigned k = 0; k < MCU_COEFFICIENTS; k++) {
			q[k] = (int16_t)(1 + (q[k] & 15));
			for (unsigned b = 0; b < 2; b++) {
				int16_t *at = &c[b * MCU_COEFFICIENTS + k];

				*at = (int16_t)(*at %
				                (k ? 1 + (int)(i % 90) / q[k] : 1 + 1024 / q[k]));
			}
		}
		kernel->inverse[log](c, c + MCU_COEFFICIENTS, q, to.data, 2 * (ptrdiff_t)size);
		hash = hash_bytes(to.data, to.size, hash);
		fenced_free(&from);
		fenced_free(&by);
		fenced_free(&to);
	}
	return hash;
}
