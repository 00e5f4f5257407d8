/* trace_ring.c - a ring of trace records. A record and its content become visible together. */
#include "trace_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define MASK (TRACE_RING_CELLS - 1)

static_assert((TRACE_RING_CELLS & MASK) == 0, "an index is a mask");
static_assert(sizeof(struct trace_record) == 48, "the format of a trace");
static_assert(sizeof(struct trace_schedule) == sizeof(struct trace_record), "one cell");

struct trace_ring *trace_ring_new(void)
{
	struct trace_ring *r = aligned_alloc(CACHE_LINE, sizeof *r);

	if (!r)
		return NULL;
	memset(r, 0, sizeof *r);
	r->cell = malloc(TRACE_RING_CELLS * sizeof *r->cell);
	if (r->cell)
		return r;
	free(r);
	return NULL;
}

void trace_ring_free(struct trace_ring *r)
{
	if (r)
		free(r->cell);
	free(r);
}

/* Returns whether n more cells fit. Reads the reader's cache line only if they seem not to. */
static bool has_room(struct trace_ring *r, uint64_t head, unsigned n)
{
	if (head + n - r->seen_tail <= TRACE_RING_CELLS)
		return true;
	/* Acquire: the reader has copied the cells that are overwritten next. */
	r->seen_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	return head + n - r->seen_tail <= TRACE_RING_CELLS;
}

bool trace_ring_put(struct trace_ring *r, const struct trace_record *record, const void *content)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (!has_room(r, head, 1u + record->cells)) {
		atomic_store_explicit(&r->lost,
		                      atomic_load_explicit(&r->lost, memory_order_relaxed) + 1,
		                      memory_order_relaxed);
		return false;
	}
	r->cell[head & MASK] = *record;
	for (unsigned i = 0; i < record->cells; i++)
		memcpy(&r->cell[(head + 1 + i) & MASK], (const char *)content + i * sizeof *r->cell,
		       sizeof *r->cell);
	/* Release: the cells are complete. */
	atomic_store_explicit(&r->head, head + 1 + record->cells, memory_order_release);
	return true;
}

size_t trace_ring_take(struct trace_ring *r, struct trace_record *to, size_t max)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed),
		 head = atomic_load_explicit(&r->head, memory_order_acquire);
	size_t n = 0;

	while (tail < head) {
		size_t cells = 1u + r->cell[tail & MASK].cells;

		if (n + cells > max)
			break;
		for (; cells > 0; cells--)
			to[n++] = r->cell[tail++ & MASK];
	}
	atomic_store_explicit(&r->tail, tail, memory_order_release);
	return n;
}

void trace_ring_clear(struct trace_ring *r)
{
	/* Acquire: orders the load before later reads of the cells. */
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);

	atomic_store_explicit(&r->tail, head, memory_order_release);
	r->lost_told = atomic_load_explicit(&r->lost, memory_order_relaxed);
}
