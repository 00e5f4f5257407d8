/*
 * trace.c - the rings of all workers, and the records that they write.
 *
 * A ring is made when its worker is first traced, and kept until the end: a worker may finish a
 * visit after the trace has ended. A schedule and a computed visit order are described before the
 * first visit under them. CPU time is read only for visits that find events, because each reading
 * is a system call. A visit that follows another one at once begins with the reading at the other's
 * end.
 */
#include "trace.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/round.h"
#include "base/text.h"
#include "log/log.h"
#include "runtime.h"
#include "telemetry/trace_format.h"

struct tracer {
	bool is_on;
	uint32_t session;
	unsigned next; /* the ring to read first */
	struct trace_ring *ring[GROUP_COUNT * CONF_THREADS_MAX];
};

/* ---- rings: a record and its content become visible together ---- */

#define MASK (TRACE_RING_CELLS - 1)

static_assert((TRACE_RING_CELLS & MASK) == 0, "an index is a mask");
static_assert(sizeof(struct trace_record) == 48, "the format of a trace");
static_assert(CONF_THREADS_MAX <= 256, "a worker is a byte");
static_assert(sizeof(struct trace_schedule) == sizeof(struct trace_record), "one cell");

struct trace_ring {
	/* writer */
	alignas(CACHE_LINE) _Atomic uint64_t head; /* cells written */
	_Atomic uint64_t lost;                     /* records refused, because the ring was full */
	uint64_t seen_tail;
	uint32_t seen_session, seen_schedule, seen_order; /* what was described last */
	uint64_t end_ns, end_cpu_ns; /* of the last visit that found events: both clocks */
	/* reader */
	alignas(CACHE_LINE) _Atomic uint64_t tail; /* cells read */
	uint64_t lost_told;                        /* in records of type TRACE_LOST */
	_Atomic uint32_t session;                  /* number of the trace */
	struct trace_record cell[TRACE_RING_CELLS];
};

static struct trace_ring *ring_new(void)
{
	struct trace_ring *r = aligned_alloc(CACHE_LINE, round_up(sizeof *r, CACHE_LINE));

	if (r)
		memset(r, 0, offsetof(struct trace_ring, cell));
	return r;
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

/* Adds a record and its content of record->cells cells, or counts it as lost. Returns whether it
 * was added. Writer. */
static bool put(struct trace_ring *r, const struct trace_record *record, const void *content)
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

/* Moves whole records, with their content, to at most max cells. Returns the number of cells.
 * Reader.
 */
static size_t take(struct trace_ring *r, struct trace_record *to, size_t max)
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

/* Drops everything that is in the ring. Reader. */
static void clear(struct trace_ring *r)
{
	/* Acquire: orders the load before later reads of the cells. */
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);

	atomic_store_explicit(&r->tail, head, memory_order_release);
	r->lost_told = atomic_load_explicit(&r->lost, memory_order_relaxed);
}

/* ---- start and end ---- */

static int start_worker(struct worker *w)
{
	struct tracer *t = w->group->graph->tracer;
	struct trace_ring **ring = &t->ring[(unsigned)w->group->id * CONF_THREADS_MAX + w->index];

	if (!*ring)
		*ring = ring_new();
	if (!*ring)
		return -ENOMEM;
	clear(*ring);
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
	for (struct worker *w = NULL; !err && (w = graph_next_worker(g, w));)
		err = start_worker(w);
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
	/* Relaxed: a worker that has begun a visit may still record it. */
	for (struct worker *w = NULL; (w = graph_next_worker(g, w));)
		atomic_store_explicit(&w->trace, NULL, memory_order_relaxed);
}

void trace_free(struct tracer *t)
{
	for (unsigned i = 0; t && i < COUNT_OF(t->ring); i++)
		free(t->ring[i]);
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
		n += take(r, to + n, max - n);
		if (n < max)
			n += tell_lost(r, place, to + n);
	}
	/* The ring that was read first is read last the next time, if not all fitted. */
	t->next = (t->next + 1) % COUNT_OF(t->ring);
	return n * sizeof *to;
}

static void append_names(const struct graph *g, struct text *to)
{
	struct json j = { .text = to };

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

size_t trace_header(const struct graph *g, void *out)
{
	struct trace_header header = { .magic = TRACE_MAGIC,
		                       .order = TRACE_BYTE_ORDER,
		                       .version = TRACE_VERSION,
		                       .record = sizeof(struct trace_record),
		                       .begin_ns = clock_ns() };
	struct timespec now;
	struct text names;

	text_init(&names, (char *)out + sizeof header, TRACE_HEADER_MAX - sizeof header);
	append_names(g, &names);
	clock_gettime(CLOCK_REALTIME, &now);
	header.begin_unix_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	header.names = (uint32_t)names.length;
	memcpy(out, &header, sizeof header);
	return sizeof header + names.length;
}

#define ORDER_BYTES_MAX 1024 /* a table, and the rates of its stages */
#define AT_ONCE_NS 1000      /* the largest error of a CPU time */

static struct trace_record record_of(const struct worker *w, enum trace_type type,
                                     uint64_t begin_ns)
{
	return (struct trace_record){ .type = (uint8_t)type,
		                      .begin_ns = begin_ns,
		                      .schedule = worker_schedule(w)->number,
		                      .group = (uint8_t)w->group->id,
		                      .worker = (uint8_t)w->index,
		                      .stage = TRACE_NO_STAGE,
		                      .core = (uint16_t)sched_getcpu() };
}

static bool put_schedule(struct trace_ring *ring, const struct worker *w, uint64_t now_ns)
{
	const struct schedule *schedule = worker_schedule(w);
	struct trace_record record = record_of(w, TRACE_SCHEDULE, now_ns);
	struct trace_schedule content = { .policy = (uint8_t)worker_stage_group(w)->policy_index,
		                          .polled = (uint8_t)w->polled_count,
		                          .stages = (uint8_t)w->visit_set_count,
		                          .domain = (uint8_t)w->domain,
		                          .pass_through = (uint32_t)schedule->pass_through };

	for (unsigned i = 0; i < w->visit_set_count && i < TRACE_STAGES_MAX; i++)
		content.visit_set[i] = (uint8_t)w->visit_set[i]->index;
	record.cells = 1;
	return put(ring, &record, &content);
}

static bool put_order(struct trace_ring *ring, const struct worker *w,
                      const struct policy_order *order, uint64_t now_ns)
{
	struct trace_record record = record_of(w, TRACE_ORDER, now_ns);
	char content[ORDER_BYTES_MAX] = { 0 };
	size_t table = round_up(order->length, 8), rate = sizeof(struct trace_rate),
	       size = table + w->polled_count * rate;

	assert(size + sizeof record <= sizeof content);
	memcpy(content, order->position, order->length);
	for (unsigned i = 0; i < w->polled_count; i++) {
		const struct trace_rate rates = {
			.arrival_per_s = w->polled_rates[i].arrival_per_s,
			.service_per_s = w->polled_rates[i].service_per_s,
		};

		memcpy(content + table + i * rate, &rates, rate);
	}
	record.events = order->length;
	record.queued = w->polled_count;
	record.cells = (uint16_t)div_up(size, sizeof record);
	return put(ring, &record, content);
}

/* Describes what has changed since the last record. A description that is lost is repeated. */
static void describe(struct trace_ring *ring, const struct worker *w, uint64_t now_ns)
{
	uint32_t session = atomic_load_explicit(&ring->session, memory_order_relaxed);
	uint32_t schedule = worker_schedule(w)->number;
	struct policy_order order = { 0 };

	if (session != ring->seen_session || schedule != ring->seen_schedule) {
		if (!put_schedule(ring, w, now_ns))
			return;
		ring->seen_session = session;
		ring->seen_schedule = schedule;
		ring->seen_order = 0;
	}
	if (!w->policy->order || !w->polled_count)
		return;
	w->policy->order(w->policy_state, &order);
	if (order.number != ring->seen_order && put_order(ring, w, &order, now_ns))
		ring->seen_order = order.number;
}

/* Returns whether the visit began before this trace: its schedule is not described. */
static bool is_older(const struct trace_ring *ring)
{
	return atomic_load_explicit(&ring->session, memory_order_relaxed) != ring->seen_session;
}

static struct trace_ring *ring_of(const struct worker *w)
{
	/* Acquire: pairs with the main thread's release when it starts a trace. */
	return atomic_load_explicit(&w->trace, memory_order_acquire);
}

struct trace_mark trace_begin(struct worker *w, const struct stage *s, size_t queued)
{
	struct trace_mark mark = { .ring = ring_of(w), .queued = (uint32_t)queued };

	if (!mark.ring)
		return mark;
	mark.begin_ns = clock_ns();
	describe(mark.ring, w, mark.begin_ns);
	if (queued || s->class->poll)
		mark.cpu_ns = mark.begin_ns - mark.ring->end_ns < AT_ONCE_NS ? mark.ring->end_cpu_ns
		                                                             : clock_thread_ns();
	return mark;
}

void trace_end(const struct trace_mark *mark, struct worker *w, const struct stage *s,
               unsigned queue, size_t events, unsigned flags)
{
	if (!mark->ring || is_older(mark->ring))
		return;
	struct trace_record record = record_of(w, TRACE_VISIT, mark->begin_ns);

	if (events) {
		mark->ring->end_cpu_ns = clock_thread_ns();
		mark->ring->end_ns = clock_ns();
		record.cpu_ns = mark->cpu_ns ? mark->ring->end_cpu_ns - mark->cpu_ns : 0;
		record.wall_ns = mark->ring->end_ns - mark->begin_ns;
	}
	record.stage = (uint8_t)s->index;
	record.queue = (uint8_t)queue;
	record.events = (uint32_t)events;
	record.queued = mark->queued;
	record.flags = (uint8_t)flags;
	record.thread = (uint16_t)(flags >> TRACE_THREAD_SHIFT);
	put(mark->ring, &record, NULL);
}

void trace_call(const struct visit *v, uint64_t begin_ns)
{
	struct trace_ring *ring = ring_of(v->worker);

	if (!ring || is_older(ring))
		return;
	struct trace_record record = record_of(v->worker, TRACE_CALL, begin_ns);

	record.wall_ns = v->mark_ns - begin_ns;
	record.stage = (uint8_t)v->stage->index;
	record.queue = (uint8_t)v->queue;
	record.events = 1;
	put(ring, &record, NULL);
}
