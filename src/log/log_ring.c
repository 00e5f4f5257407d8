/*
 * log_ring.c - records in a circle of bytes: a word that says how long and of which kind, then the
 * line.
 *
 * A producer claims room by moving the head, fills it, and writes the word last. All room that
 * nobody has claimed is zero: so a word of zero is a record whose producer is not ready. The
 * consumer makes it so again before it moves the tail. Records begin at multiples of eight and do
 * not wrap: what is too short at the end is claimed with the record, as one of its own.
 */
#include "log_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READY (UINT32_C(1) << 31)
#define PADDING (UINT32_C(1) << 30) /* no line: the rest of the circle */
#define KIND_SHIFT 28
#define LENGTH_MASK ((UINT32_C(1) << KIND_SHIFT) - 1)
#define WORD_SIZE ((size_t)8) /* and the alignment */

static_assert(LOG_KIND_COUNT <= 1 << (30 - KIND_SHIFT), "a kind must fit into the word");

int log_ring_init(struct log_ring *r, size_t size)
{
	assert(size >= 64 && (size & (size - 1)) == 0 && size <= LENGTH_MASK);
	memset(r, 0, sizeof *r);
	r->data = aligned_alloc(CACHE_LINE, size);
	if (!r->data)
		return -ENOMEM;
	memset(r->data, 0, size);
	r->size = size;
	return 0;
}

void log_ring_fini(struct log_ring *r)
{
	free(r->data);
	r->data = NULL;
}

static _Atomic uint32_t *word_at(const struct log_ring *r, uint64_t position)
{
	return (_Atomic uint32_t *)(void *)(r->data + (position & (r->size - 1)));
}

/* Of the record that begins there. */
static char *line_at(const struct log_ring *r, uint64_t position)
{
	return r->data + (position & (r->size - 1)) + WORD_SIZE;
}

static size_t record_size(size_t length)
{
	return (WORD_SIZE + length + WORD_SIZE - 1) & ~(WORD_SIZE - 1);
}

/* The bytes between the position and the end of the circle, if a record of that size does not fit
 * there. */
static size_t padding(const struct log_ring *r, uint64_t position, size_t size)
{
	size_t left = r->size - (size_t)(position & (r->size - 1));

	return left < size ? left : 0;
}

/* Claims room for a record, with the padding before it. False: there is none. */
static bool claim(struct log_ring *r, size_t size, size_t spare, uint64_t *position)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	for (;;) {
		/* Acquire: what the consumer has let go of is zero. */
		uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
		uint64_t next = head + padding(r, head, size) + size;

		if (tail <= head && next - tail > r->size - spare)
			return false;
		/* If the tail has overtaken what we know of the head, this fails. */
		if (atomic_compare_exchange_weak_explicit(
			    &r->head, &head, next, memory_order_relaxed, memory_order_relaxed)) {
			*position = head;
			return true;
		}
	}
}

bool log_ring_put(struct log_ring *r, enum log_kind kind, const char *line, size_t length,
                  size_t spare)
{
	size_t size = record_size(length);
	uint64_t at;

	assert(length > 0 && size <= r->size / 2 && spare < r->size);
	if (!claim(r, size, spare, &at)) {
		atomic_fetch_add_explicit(&r->dropped[kind], 1, memory_order_relaxed);
		return false;
	}
	size_t pad = padding(r, at, size);

	if (pad) /* release, as below: nothing comes with it, but the consumer will clear it */
		atomic_store_explicit(word_at(r, at), READY | PADDING | (uint32_t)pad,
		                      memory_order_release);
	at += pad;
	memcpy(line_at(r, at), line, length);
	/* Release: with the line. */
	atomic_store_explicit(word_at(r, at),
	                      READY | (uint32_t)kind << KIND_SHIFT | (uint32_t)length,
	                      memory_order_release);
	atomic_fetch_add_explicit(&r->put[kind], 1, memory_order_relaxed);
	return true;
}

bool log_ring_next(struct log_ring *r, uint64_t *position, struct log_line *line)
{
	uint64_t end = atomic_load_explicit(&r->tail, memory_order_relaxed) +
	               r->size; /* of what can have been put */

	while (*position < end) {
		uint32_t word = atomic_load_explicit(word_at(r, *position), memory_order_acquire);

		if (!(word & READY))
			return false;
		if (word & PADDING) {
			*position += word & LENGTH_MASK;
			continue;
		}
		line->data = line_at(r, *position);
		line->length = word & LENGTH_MASK;
		line->kind = (enum log_kind)((word & ~(READY | PADDING)) >> KIND_SHIFT);
		*position += record_size(line->length);
		return true;
	}
	return false;
}

void log_ring_let_go(struct log_ring *r, uint64_t position)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t at = (size_t)(tail & (r->size - 1)), size = (size_t)(position - tail);
	size_t first = size < r->size - at ? size : r->size - at;

	assert(size <= r->size);
	memset(r->data + at, 0, first);
	memset(r->data, 0, size - first);
	atomic_store_explicit(&r->tail, position, memory_order_release);
}

size_t log_ring_used(const struct log_ring *r)
{
	/* The tail first: then it is not ahead of the head. */
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	return (size_t)(atomic_load_explicit(&r->head, memory_order_acquire) - tail);
}
