/*
 * ring.h - a bounded ring of lines, with many producers and one consumer. Private to log/.
 *
 * A producer never waits, neither for another producer nor for the consumer: without room the line
 * is dropped and counted. Lines stay in place until the consumer releases them, so that the handler
 * of a crash can still write them: all functions but init and fini are safe in signal handlers.
 */
#ifndef DARKROOM_LOG_RING_H
#define DARKROOM_LOG_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

enum line_kind { LINE_MESSAGE = 0, LINE_ACCESS, LINE_KIND_COUNT };

struct ring {
	/* fixed after init */
	char *data;
	size_t size; /* a power of two */
	/* producers, atomic */
	alignas(CACHE_LINE) _Atomic uint64_t head;                       /* bytes ever claimed */
	_Atomic uint64_t put[LINE_KIND_COUNT], dropped[LINE_KIND_COUNT]; /* lines ever */
	/* consumer, atomic */
	alignas(CACHE_LINE) _Atomic uint64_t tail; /* bytes ever released */
};

/* Borrowed from the ring. */
struct line {
	const char *data;
	size_t length;
	enum line_kind kind;
};

/* size: a power of two, at least 64. Returns 0 or -ENOMEM. */
int ring_init(struct ring *r, size_t size);
void ring_fini(struct ring *r);

/*
 * Puts a line of 1 to half of the ring's bytes, and leaves spare bytes free. Returns false if there
 * was no room; the line is counted as dropped. *is_awaited: the consumer may be asleep, because it
 * has consumed everything before this line. Any thread.
 */
bool ring_put(struct ring *r, enum line_kind kind, const char *line, size_t length, size_t spare,
              bool *is_awaited);

/* Gets the line at *position, from the tail on, and moves *position behind it. Returns false if no
 * line is ready there. The line is valid until it is released. Consumer only. */
bool ring_next(const struct ring *r, uint64_t *position, struct line *line);

/* Releases everything before the position. If ring_next() then returns false at the tail, the
 * consumer may sleep: the next producer gets is_awaited. Consumer only. */
void ring_release(struct ring *r, uint64_t position);

#endif
