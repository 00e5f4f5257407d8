/*
 * log_ring.h - a bounded ring of lines, many producers, one consumer. Lock-free: who puts a line
 * never waits, neither for another producer nor for the consumer; if there is no room the line is
 * dropped, and counted.
 *
 * A line is kept where it was put until the consumer lets go of it, so that what was not written
 * yet can still be written when the process is about to die: all but init and fini may be called
 * from a signal handler.
 */
#ifndef DARKROOM_LOG_LOG_RING_H
#define DARKROOM_LOG_LOG_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

enum log_kind { LOG_KIND_MESSAGE = 0, LOG_KIND_ACCESS, LOG_KIND_COUNT };

struct log_ring {
	/* fixed after init */
	char *data;
	size_t size; /* a power of two */
	/* producers, atomic */
	alignas(CACHE_LINE) _Atomic uint64_t head;                     /* bytes ever claimed */
	_Atomic uint64_t put[LOG_KIND_COUNT], dropped[LOG_KIND_COUNT]; /* lines ever */
	/* the consumer, atomic */
	alignas(CACHE_LINE) _Atomic uint64_t tail; /* bytes ever let go of */
};

/* Borrowed from the ring. */
struct log_line {
	const char *data;
	size_t length;
	enum log_kind kind;
};

/* size: a power of two, 64 at least. 0 or -ENOMEM. */
int log_ring_init(struct log_ring *r, size_t size);
void log_ring_fini(struct log_ring *r);

/* Any thread. length: 1 to half of the ring's size. Leaves spare bytes free. False: there is no
 * room, and it is counted as dropped. */
bool log_ring_put(struct log_ring *r, enum log_kind kind, const char *line, size_t length,
                  size_t spare);

/* The consumer. The line at *position, which begins at r->tail and is moved behind it. False: there
 * is none, or its producer is not ready yet. The line stays valid until it is let go of. */
bool log_ring_next(struct log_ring *r, uint64_t *position, struct log_line *line);

/* The consumer: lets go of everything before position. */
void log_ring_let_go(struct log_ring *r, uint64_t position);

/* Any thread; a moment's view. Bytes that are in use. */
size_t log_ring_used(const struct log_ring *r);

#endif
