/*
 * ring.c - a circle of bytes. A record is a word with length and kind, then the line.
 *
 * A producer claims room by moving the head, fills it, and stores the word last. All free room is
 * zero, so a zero word means that the record is not ready. The consumer clears a record before it
 * moves the tail. Records begin at multiples of eight bytes and do not wrap: too little room before
 * the end of the circle is claimed together with the record, as padding.
 *
 * Waking: a producer stores its word and then loads the tail. The consumer stores the tail, and
 * sleeps if the word that it then loads is zero. All four are sequentially consistent. So either
 * the consumer sees the record, or the producer sees the tail at its record.
 */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/round.h"

#define READY (UINT32_C(1) << 31)
#define PADDING (UINT32_C(1) << 30) /* not a line: the rest of the circle */
#define KIND_SHIFT 28
#define LENGTH_MASK ((UINT32_C(1) << KIND_SHIFT) - 1)
#define WORD_SIZE ((size_t)8) /* also the alignment */

static_assert(LINE_KIND_COUNT <= 1 << (30 - KIND_SHIFT), "a kind must fit into the word");

int ring_init(struct ring *r, size_t size)
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

void ring_fini(struct ring *r)
{
	free(r->data);
	r->data = NULL;
}

static _Atomic uint32_t *word_at(const struct ring *r, uint64_t position)
{
	return (_Atomic uint32_t *)(void *)(r->data + (position & (r->size - 1)));
}

/* The line of the record that begins at the position. */
static char *line_at(const struct ring *r, uint64_t position)
{
	return r->data + (position & (r->size - 1)) + WORD_SIZE;
}

/* The bytes before the end of the circle if a record of that size does not fit there, otherwise 0.
 */
static size_t padding(const struct ring *r, uint64_t position, size_t size)
{
	size_t left = r->size - (size_t)(position & (r->size - 1));

	return left < size ? left : 0;
}

/* Claims room for a record and the padding before it. False: there is not enough. */
static bool ring_claim(struct ring *r, size_t size, size_t spare, uint64_t *position)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	for (;;) {
		/* Acquire: released room is zero. */
		uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
		uint64_t next = head + padding(r, head, size) + size;

		if (tail <= head && next - tail > r->size - spare)
			return false;
		/* Fails if the head has moved, also past a tail that was ahead of it. */
		if (atomic_compare_exchange_weak_explicit(
			    &r->head, &head, next, memory_order_relaxed, memory_order_relaxed)) {
			*position = head;
			return true;
		}
	}
}

bool ring_put(struct ring *r, enum line_kind kind, const char *line, size_t length, size_t spare,
              bool *is_awaited)
{
	size_t size = round_up(WORD_SIZE + length, WORD_SIZE);
	uint64_t start;

	*is_awaited = false;
	assert(length > 0 && size <= r->size / 2 && spare < r->size);
	if (!ring_claim(r, size, spare, &start)) {
		atomic_fetch_add_explicit(&r->dropped[kind], 1, memory_order_relaxed);
		return false;
	}
	size_t pad = padding(r, start, size);

	if (pad)
		atomic_store(word_at(r, start), READY | PADDING | (uint32_t)pad);
	memcpy(line_at(r, start + pad), line, length);
	/* Publishes the line; with the load of the tail: see Waking above. */
	atomic_store(word_at(r, start + pad),
	             READY | (uint32_t)kind << KIND_SHIFT | (uint32_t)length);
	*is_awaited = atomic_load(&r->tail) - start <= pad;
	atomic_fetch_add_explicit(&r->put[kind], 1, memory_order_relaxed);
	return true;
}

bool ring_next(const struct ring *r, uint64_t *position, struct line *line)
{
	uint64_t end = atomic_load_explicit(&r->tail, memory_order_relaxed) + r->size;

	for (uint64_t at = *position; at < end;) {
		uint32_t word = atomic_load(word_at(r, at));

		if (!(word & READY))
			return false;
		if (word & PADDING) {
			at += word & LENGTH_MASK;
			continue;
		}
		line->data = line_at(r, at);
		line->length = word & LENGTH_MASK;
		line->kind = (enum line_kind)((word & ~(READY | PADDING)) >> KIND_SHIFT);
		*position = at + round_up(WORD_SIZE + line->length, WORD_SIZE);
		return true;
	}
	return false;
}

void ring_release(struct ring *r, uint64_t position)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t at = (size_t)(tail & (r->size - 1)), size = (size_t)(position - tail);
	size_t first = size < r->size - at ? size : r->size - at;

	assert(size <= r->size);
	memset(r->data + at, 0, first);
	memset(r->data, 0, size - first);
	atomic_store(&r->tail, position);
}
