/*
 * trace.c - the rings of all workers.
 *
 * A ring is made when its worker is first traced, and kept until the end: a worker may finish a
 * visit after the trace has ended. Main thread.
 */
#include "trace.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "log/log.h"
#include "runtime.h"
#include "trace_ring.h"

struct tracer {
	bool is_on;
	uint32_t session;
	unsigned next; /* the ring to read first */
	struct trace_ring *ring[GROUP_COUNT * CONF_THREADS_MAX];
};

/* ---- start and end ---- */

static struct trace_ring **place_of(const struct worker *w)
{
	struct tracer *t = w->group->graph->tracer;

	return &t->ring[(unsigned)w->group->id * CONF_THREADS_MAX + w->index];
}

static int start_worker(struct worker *w)
{
	struct tracer *t = w->group->graph->tracer;
	struct trace_ring **ring = place_of(w);

	if (!*ring)
		*ring = trace_ring_new();
	if (!*ring)
		return -ENOMEM;
	trace_ring_clear(*ring);
	atomic_store_explicit(&(*ring)->session, t->session, memory_order_relaxed);
	/* Release: the worker sees a complete ring. */
	atomic_store_explicit(&w->trace, *ring, memory_order_release);
	return 0;
}

void trace_attach(struct worker *w)
{
	struct tracer *t = w->group->graph->tracer;

	if (t && t->is_on && start_worker(w))
		log_warning("worker %s/%u: no memory for its trace; it is not traced",
		            w->group->name, w->index);
}

int trace_start(struct graph *g)
{
	int err = 0;

	if (!g->tracer)
		g->tracer = calloc(1, sizeof *g->tracer);
	if (!g->tracer)
		return -ENOMEM;
	g->tracer->session++;
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count && !err; k++)
			err = start_worker(&g->group[i].workers[k]);
	}
	g->tracer->is_on = !err;
	if (err)
		trace_stop(g);
	return err;
}

void trace_stop(struct graph *g)
{
	if (!g->tracer)
		return;
	g->tracer->is_on = false;
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		/* Relaxed: a worker that has begun a visit may still record it. */
		for (unsigned k = 0; k < count; k++)
			atomic_store_explicit(&g->group[i].workers[k].trace, NULL,
			                      memory_order_relaxed);
	}
}

void trace_free(struct tracer *t)
{
	for (unsigned i = 0; t && i < COUNT_OF(t->ring); i++)
		trace_ring_free(t->ring[i]);
	free(t);
}

/* ---- reading ---- */

/* Writes a record of what the ring has lost since the last one. Returns the number of cells. */
static size_t tell_lost(struct trace_ring *r, unsigned place, struct trace_record *to)
{
	uint64_t lost = atomic_load_explicit(&r->lost, memory_order_relaxed);

	if (lost == r->lost_told)
		return 0;
	*to = (struct trace_record){ .type = TRACE_LOST,
		                     .begin_ns = clock_ns(),
		                     .events = (uint32_t)(lost - r->lost_told),
		                     .group = (uint8_t)(place / CONF_THREADS_MAX),
		                     .worker = (uint8_t)(place % CONF_THREADS_MAX),
		                     .stage = TRACE_NO_STAGE };
	r->lost_told = lost;
	return 1;
}

size_t trace_read(struct graph *g, void *out, size_t size)
{
	struct tracer *t = g->tracer;
	struct trace_record *to = out;
	size_t n = 0, max = size / sizeof *to;

	assert(size >= TRACE_READ_MIN);
	for (unsigned k = 0; k < COUNT_OF(t->ring) && n < max; k++) {
		unsigned place = (t->next + k) % COUNT_OF(t->ring);
		struct trace_ring *r = t->ring[place];

		if (!r)
			continue;
		n += trace_ring_take(r, to + n, max - n);
		if (n < max)
			n += tell_lost(r, place, to + n);
	}
	/* The ring that was read first is read last the next time, if not all fitted. */
	t->next = (t->next + 1) % COUNT_OF(t->ring);
	return n * sizeof *to;
}

void trace_names(const struct graph *g, struct text *to)
{
	struct json j;

	json_init(&j, to);
	json_object(&j, NULL);
	json_array(&j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++)
		json_string(&j, NULL, graph_rows[i].class->name);
	json_array_end(&j);
	json_array(&j, "groups");
	json_string(&j, NULL, "");
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		json_string(&j, NULL, g->group[i].name);
	json_array_end(&j);
	json_array(&j, "policies");
	for (size_t i = 0; policy_at(i); i++)
		json_string(&j, NULL, policy_at(i)->name);
	json_array_end(&j);
	json_object_end(&j);
}
