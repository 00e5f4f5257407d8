/*
 * mechanism_user_threads.c - policy user-threads: a user-level thread for each event that comes to
 * a core, scheduled by a blocking graph (Capriccio: von Behren et al. 2003).
 *
 * A thread takes an event of a queue and carries it on: where its handler sends an event to another
 * stage of the core, the thread itself waits, and then calls the next handler on the same stack. It
 * stays on its core. Where a handler parks its event - for memory, its client's turn, a process or
 * the disk - the thread ends, so that no stack waits with it. Neither does an idle connection have
 * one. A core has at most THREADS_MAX stacks; beyond them, an event is served without a thread, and
 * what it sends is queued.
 *
 * A node of the blocking graph is a stage that threads wait to enter. An edge leads to the next
 * such stage, or to the end. It has an average of the CPU time from one to the other, and the share
 * of the threads that take it. The order is by the CPU time to the end: threads that soon release
 * their core, stack and memory come first, and then the events for new ones. A core begins no
 * thread while another waits, so that an idle core finds the event in its queue. Urgent events are
 * an exception. So are scarce memory and descriptors: then the stages that release most come first,
 * whether a thread or an event is there (resources.h). So that no event starves, every
 * TURN_EVERY-th choice goes to the next stage in pipeline order.
 */
#include "mechanism.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/coroutine.h"
#include "base/text.h"
#include "resources.h"
#include "runtime.h"
#include "telemetry/trace_format.h"
#include "trace.h"
#include "worker.h"

#define THREADS_MAX 16
/* A thread was seen to need 21 KB at the most, from HTTP to libjpeg. Less may be left than a
 * handler needs: then the thread does not call it, but queues the event. Sanitizers need several
 * times as much. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(DARKROOM_DEBUG)
#define STACK_BYTES ((size_t)256 << 10)
#else
#define STACK_BYTES ((size_t)64 << 10)
#endif
#define STACK_LEFT_MIN (STACK_BYTES / 2)

#define TURN_EVERY 8
#define ORDER_EVERY 64           /* choices between two computations of the order */
#define NEWEST_WEIGHT (1.0 / 16) /* of a thread in the averages of an edge */

enum {
	END = STAGE_COUNT_MAX,   /* a node: the thread ends */
	URGENT = STAGE_COUNT_MAX /* the line of threads whose event is urgent, whatever the stage */
};

struct user_thread {
	struct coroutine coroutine;
	struct user_threads *of;
	struct user_thread *next; /* of those that wait for the same stage, or are idle */
	unsigned number;          /* for the trace, from 1 */
	bool waits;               /* for a stage; otherwise it has ended */
	unsigned stage;           /* the one that it waits for */
};

/* The threads that wait to enter a stage, oldest first. */
struct line {
	struct user_thread *first, *last;
};

struct edge {
	double share; /* of the threads that leave the node */
	double cpu_ns;
};

struct user_threads {
	struct worker *worker;
	struct coroutine own; /* the worker's thread itself */
	struct user_thread *idle;
	unsigned made; /* threads */
	bool is_ending;
	struct stage *entered;                 /* where the next thread begins */
	unsigned served;                       /* events that it found there */
	struct line line[STAGE_COUNT_MAX + 1]; /* by stage, and URGENT */
	struct edge edge[STAGE_COUNT_MAX][STAGE_COUNT_MAX + 1];
	double left_ns[STAGE_COUNT_MAX]; /* CPU time to the end */
	unsigned choices, turn;
	unsigned char order[STAGE_COUNT_MAX]; /* positions in the visit set */
	uint32_t order_number;
};

/* ---- switches ---- */

static void switch_to(struct coroutine *from, struct coroutine *to)
{
	coroutine_release(to);
	coroutine_switch(from, to, false);
	coroutine_acquire(from);
}

static void run(struct user_threads *u, struct user_thread *t)
{
	u->worker->user_thread = t;
	t->waits = false;
	switch_to(&u->own, &t->coroutine);
	u->worker->user_thread = NULL;
	if (t->waits)
		return;
	t->next = u->idle;
	u->idle = t;
}

/* The life of a thread: one event after the other. */
static void live(void *arg)
{
	struct user_thread *t = arg;
	struct user_threads *u = t->of;

	for (;;) {
		u->served = serve_batch(u->worker, u->entered,
		                        stage_own_queue(u->entered, u->worker), 1);
		switch_to(&t->coroutine, &u->own);
	}
}

bool user_thread_may_call(const struct user_thread *t, const struct stage *s, unsigned queue)
{
	const struct worker *w = t->of->worker;
	uintptr_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)t->coroutine.stack;

	return !t->of->is_ending && s->kind == STAGE_SHARED && s->group == w->group &&
	       stage_set_has(worker_schedule(w)->visit_set[w->index], s->index) &&
	       queue == stage_own_queue(s, w) && left >= STACK_LEFT_MIN;
}

bool user_thread_wait(struct user_thread *t, const struct stage *s, bool is_urgent)
{
	struct line *line = &t->of->line[is_urgent ? URGENT : s->index];

	t->waits = true;
	t->stage = s->index;
	t->next = NULL;
	if (line->first)
		line->last->next = t;
	else
		line->first = t;
	line->last = t;
	switch_to(&t->coroutine, &t->of->own);
	return !t->of->is_ending;
}

static struct user_thread *first_of(struct user_threads *u, unsigned index)
{
	struct line *line = &u->line[index];
	struct user_thread *t = line->first;

	if (t)
		line->first = t->next;
	return t;
}

/* ---- stacks ---- */

/* Returns a thread that is idle, or NULL. */
static struct user_thread *lend(struct user_threads *u)
{
	static _Atomic unsigned numbers;
	struct user_thread *t = u->idle;

	if (t) {
		u->idle = t->next;
	} else {
		t = u->made < THREADS_MAX ? calloc(1, sizeof *t) : NULL;
		if (t && coroutine_init(&t->coroutine, STACK_BYTES, live, t)) {
			free(t);
			t = NULL;
		}
		if (!t)
			return NULL;
		t->of = u;
		u->made++;
	}
	t->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) % UINT16_MAX + 1;
	return t;
}

void user_threads_end(struct worker *w)
{
	struct user_threads *u = w->user_threads;
	struct user_thread *t;

	if (!u)
		return;
	u->is_ending = true;
	for (unsigned i = 0; i <= URGENT; i++)
		while ((t = first_of(u, i)))
			run(u, t);
	while ((t = u->idle)) {
		u->idle = t->next;
		coroutine_fini(&t->coroutine);
		free(t);
	}
	free(u);
	w->user_threads = NULL;
}

/* Returns the worker's threads, or NULL without memory. */
static struct user_threads *threads_of(struct worker *w)
{
	if (!w->user_threads && (w->user_threads = calloc(1, sizeof *w->user_threads))) {
		w->user_threads->worker = w;
		coroutine_init_self(&w->user_threads->own);
	}
	return w->user_threads;
}

/* ---- the blocking graph ---- */

/* A thread came from one node to the next in that time. */
static void learn(struct user_threads *u, unsigned from, unsigned to, uint64_t cpu_ns)
{
	struct edge *edge = u->edge[from];
	bool is_first = edge[to].cpu_ns <= 0;
	double weight = is_first ? 1 : NEWEST_WEIGHT;

	edge[to].cpu_ns += weight * ((double)cpu_ns - edge[to].cpu_ns);
	for (unsigned i = 0; i <= END; i++)
		edge[i].share += NEWEST_WEIGHT * ((i == to) - edge[i].share);
}

/* Sets the CPU time from the node to the end. Its edges may lead back to it. */
static void set_left(struct user_threads *u, unsigned node)
{
	double all = 0, sum = 0;

	for (unsigned i = 0; i <= END; i++) {
		const struct edge *e = &u->edge[node][i];

		all += e->share;
		sum += e->share * (e->cpu_ns + (i < END ? u->left_ns[i] : 0));
	}
	u->left_ns[node] = all > 0 ? sum / all : 0;
}

/* Computes the order, and shows it to traces. Nodes that no thread has passed come first, from the
 * last stage on. */
static void set_order(struct user_threads *u)
{
	struct worker *w = u->worker;
	unsigned n = w->polled_count;

	for (unsigned turn = 0; turn < n; turn++)
		for (unsigned i = n; i-- > 0;)
			set_left(u, w->visit_set[i]->index);
	for (unsigned i = 0; i < n; i++) {
		unsigned position = n - 1 - i, k = i;
		double left_ns = u->left_ns[w->visit_set[position]->index];

		for (; k > 0 && u->left_ns[w->visit_set[u->order[k - 1]]->index] > left_ns; k--)
			u->order[k] = u->order[k - 1];
		u->order[k] = (unsigned char)position;
		w->polled_rates[position] = (struct stage_rates){
			.service_per_s = left_ns > 0 ? (double)NS_PER_S / left_ns : 0
		};
	}
	struct policy_order shown = { .position = u->order,
		                      .length = n,
		                      .number = ++u->order_number };

	memcpy(w->policy_state, &shown, sizeof shown);
}

/* ---- choices ---- */

/* Returns the positions of the stages that threads wait for. */
static stage_set awaited(const struct user_threads *u)
{
	const struct worker *w = u->worker;
	stage_set set = 0;

	for (unsigned i = 0; i < w->polled_count; i++)
		if (u->line[w->visit_set[i]->index].first)
			set |= stage_set_of(i);
	return set;
}

/* Returns the next stage of the set in pipeline order. */
static struct stage *next_turn(struct user_threads *u, stage_set set)
{
	do
		u->turn = (u->turn + 1) % u->worker->polled_count;
	while (!stage_set_has(set, u->turn));
	return u->worker->visit_set[u->turn];
}

/* Returns the stage to serve, of those that threads wait for or events. One of both exists. */
static struct stage *choose(struct user_threads *u, stage_set waiting, stage_set queued)
{
	struct worker *w = u->worker;
	struct stage *s = resources_choose_of(w, waiting | queued);
	stage_set set = waiting ? waiting : queued;
	unsigned i = 0;

	if (s) {
		counter_add(&w->counters.by_resource, 1);
		return s;
	}
	if (u->choices++ % ORDER_EVERY == 0)
		set_order(u);
	if (u->choices % TURN_EVERY == 0)
		return next_turn(u, set);
	while (!stage_set_has(set, u->order[i]))
		i++;
	return w->visit_set[u->order[i]];
}

/* ---- visits ---- */

/* Lets the thread enter the stage, and run until it waits or ends. Returns whether it found an
 * event. flags: for the trace. */
static bool visit_by(struct worker *w, struct user_thread *t, struct stage *s, size_t queued,
                     unsigned flags)
{
	struct user_threads *u = t->of;
	struct trace_mark mark = trace_begin(w, s, queued);
	uint64_t begin_ns = clock_thread_ns();

	u->entered = s;
	u->served = 1;
	run(u, t);
	if (u->served)
		learn(u, s->index, t->waits ? t->stage : END, clock_thread_ns() - begin_ns);
	count_visit(w, s, u->served, queued);
	trace_end(&mark, w, s, stage_own_queue(s, w), u->served,
	          TRACE_ONE | flags | t->number << TRACE_THREAD_SHIFT);
	return u->served > 0;
}

static enum visit_result resume(struct worker *w, struct user_thread *t)
{
	visit_by(w, t, &w->group->graph->stage[t->stage], 1, TRACE_RESUMED);
	return VISIT_SERVED;
}

/* Serves an event of the stage's queue, by a new thread if there is one. */
static bool begin(struct worker *w, struct stage *s)
{
	unsigned queue = stage_own_queue(s, w);
	struct user_thread *t = s->kind == STAGE_SHARED ? lend(w->user_threads) : NULL;

	return t ? visit_by(w, t, s, stage_queue_length(&s->queue[queue]), 0)
	         : serve_one(w, s, queue);
}

/* Without memory for threads: serves an event of the last stage that has one. */
static enum visit_result visit_without(struct worker *w)
{
	for (unsigned i = w->visit_set_count; i-- > 0;)
		if (serve_one(w, w->visit_set[i], stage_own_queue(w->visit_set[i], w)))
			return VISIT_SERVED;
	return VISIT_ALL_EMPTY;
}

/* While threads wait, the result is VISIT_SERVED: the worker does not sleep. */
static enum visit_result visit(struct worker *w, bool has_served)
{
	struct user_threads *u = threads_of(w);
	struct user_thread *t;
	struct stage *s;

	(void)has_served;
	if (!u)
		return visit_without(w);
	if ((t = first_of(u, URGENT)))
		return resume(w, t);
	if (++w->visits % CHECK_VISITS == 0 && serve_pass_through(w))
		return VISIT_SERVED;
	stage_set waiting = awaited(u), queued = waiting_ready(w);

	s = waiting_urgent(w);
	if (!s && !waiting && !queued)
		return VISIT_ALL_EMPTY;
	if (!s) {
		s = choose(u, waiting, queued);
		if ((t = first_of(u, s->index)))
			return resume(w, t);
	}
	if (begin(w, s))
		return VISIT_SERVED;
	return waiting ? resume(w, first_of(u, choose(u, waiting, 0)->index)) : VISIT_EMPTY;
}

/* ---- the mechanism ---- */

static int assign(struct schedule *s, const struct schedule_input *input, unsigned group)
{
	if (!coroutine_is_possible())
		return text_refuse(input->error,
		                   "user-threads cannot switch stacks while the processor keeps a "
		                   "shadow stack: expected another policy");
	return poll_assign(s, input, group);
}

/* No stacks of events: a thread carries its event itself. No thresholds: a visit ends wherever its
 * thread waits. */
const struct mechanism mechanism_user_threads = {
	.has_core_per_worker = true,
	.assign = assign,
	.visit = visit,
};
