/*
 * group.h - stage groups: a set of stages, and the threads that visit them.
 *
 * Private to the framework (graph.c, visit.c, group/). A worker's thread walks its group's visit set in the order of the
 * policy, and sleeps only by the protocol of idle.h.
 */
#ifndef DARKROOM_GROUP_H
#define DARKROOM_GROUP_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../conf.h"
#include "../policy/policy.h"
#include "../queue.h"
#include "../stage.h"
#include "../telemetry/counter.h"

struct graph;
struct group;

struct stage {
	/* fixed after start */
	const struct stage_class *class;
	struct graph *graph;
	unsigned index;       /* in the graph */
	enum stage_kind kind;
	bool is_pass_through; /* visit_send() calls it; it may have a queue all the same, see returns_later */
	uint32_t targets;     /* bit i: may send to stage i */
	struct group *group;
	struct queue *queue;  /* one, or if partitioned one per worker of the group; none if never queued */
	unsigned queue_count;
	/* anyone, atomic */
	alignas(CACHE_LINE) _Atomic bool is_taken; /* exclusive: a worker is in it */
};

struct worker {
	/* fixed after start */
	struct group *group;
	unsigned index;       /* in the group */
	int core;             /* bound to it, or -1 */
	int wake_fd;          /* eventfd: readable while somebody wants this worker awake */
	pthread_t thread;
	void *scratch[STAGE_COUNT_MAX];
	/* owner only */
	bool is_announced;    /* our bit was set in group->sleepers, and we have not looked at it since */
	bool was_woken;       /* the bit had been cleared by a waker, who writes wake_fd */
	unsigned initialised; /* stages whose worker_init is through, for undoing */
	char policy_state[POLICY_STATE_MAX] __attribute__((aligned(16)));
	/* owner writes, anyone reads */
	alignas(CACHE_LINE) struct worker_counters counters;
	struct stage_counters stage[STAGE_COUNT_MAX];
};

struct group {
	/* fixed after start */
	const char *name;
	struct graph *graph;
	const struct policy_class *policy;
	struct stage *visit_set[STAGE_COUNT_MAX]; /* pipeline order */
	unsigned visit_set_count;
	struct stage *source;  /* the stage in the visit set that looks outside, or NULL */
	uint64_t spin_ns;
	struct worker *workers;
	unsigned worker_count; /* <= CONF_THREADS_MAX */
	/* anyone, atomic: see idle.h; only the owner writes its searcher bit */
	alignas(CACHE_LINE) _Atomic uint64_t searchers;
	alignas(CACHE_LINE) _Atomic uint64_t sleepers;
	alignas(CACHE_LINE) _Atomic bool is_stopping;
};

/* One call of a handler, or of a source's poll(), on one worker; nested for pass-through targets. */
struct visit {
	struct worker *worker;
	struct stage *stage;
	uint64_t mark_ns;      /* service is charged up to here */
	uint64_t service_ns;   /* of this call, without nested ones */
	unsigned handled, resumed, sent, aside;
};

/* Workers that may visit the stage's queue of that instance. */
static inline uint64_t stage_may_visit(const struct stage *s, unsigned instance)
{
	unsigned n = s->group->worker_count;

	if (s->kind == STAGE_PARTITIONED)
		return UINT64_C(1) << instance;
	return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

static inline struct queue *stage_queue(const struct stage *s, unsigned instance)
{
	return &s->queue[s->kind == STAGE_PARTITIONED ? instance : 0];
}

/* visit.c: serves the stage until its queue is empty (exhaustive service); true if it handled an event. */
bool visit_stage(struct worker *w, struct stage *s);

/* visit.c: lets the worker's source look outside; the number of pieces served. */
unsigned visit_source(struct worker *w, bool may_block);

/* group/poll.c: the body of a worker's thread, from its first visit until the group stops. */
void worker_run(struct worker *w);

#endif
