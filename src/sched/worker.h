/*
 * worker.h - stage groups: a set of stages, and the threads that visit them.
 *
 * Private to the framework (graph.c, visit.c, group/). A worker's thread walks its visit set in the
 * order of the policy, and sleeps only by the protocol of idle.h. What it visits, and how, is in
 * the schedule that it has adopted last.
 */
#ifndef DARKROOM_SCHED_WORKER_H
#define DARKROOM_SCHED_WORKER_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/queue.h"
#include "conf/conf.h"
#include "controllers.h"
#include "deque.h"
#include "distribution.h"
#include "graph.h"
#include "policy/policy.h"
#include "repartition.h"
#include "schedule.h"
#include "stage.h"
#include "stage_queue.h"
#include "telemetry/counter.h"
#include "telemetry/perf.h"

struct group;
struct topology;

/* What goes with one of a stage's queues. */
struct stage_gate {
	/* anyone, atomic */
	alignas(CACHE_LINE) _Atomic bool is_taken; /* exclusive: a worker is in it */
	_Atomic unsigned tokens; /* policy color: that name the queue, see mechanism_color.c */
};

struct stage {
	/* fixed after start */
	const struct stage_class *class;
	struct graph *graph;
	unsigned index; /* in the graph */
	enum stage_kind kind;
	uint32_t targets;          /* bit i: may send to stage i */
	struct group *group;       /* whose workers visit it */
	struct stage_queue *queue; /* one; if partitioned one for each worker that the group may
	                            * ever have, in use from the worker's start on; of the main
	                            * group's stages one for each replica */
	struct stage_gate *gate;   /* as many */
	unsigned queue_count;
};

/* What a worker measures of a stage over an interval, for policies that ask (rates.c). */
struct rate_sample {
	uint64_t handled, service_ns, arrived;
};

struct worker {
	/* fixed after start */
	struct group *group;
	unsigned index; /* in the group */
	int wake_fd; /* eventfd: readable while somebody wants this worker awake; blocks without a
	                source */
	pthread_t thread;
	/* under the graph's lock */
	bool has_reported; /* its first adoption is through, well or not */
	int start_error;
	/* owner only */
	struct stage *visit_set[STAGE_COUNT_MAX]; /* pipeline order */
	unsigned visit_set_count;
	unsigned domain; /* of the adopted schedule: the replica or part that it works for */
	struct topology_range cores;       /* that it is bound to */
	const struct policy_class *policy; /* with a visit order */
	void *scratch[STAGE_COUNT_MAX];
	uint32_t initialised; /* stages whose worker_init is through */
	bool is_announced; /* our bit was set in group->sleepers, and we have not looked at it since
	                    */
	bool was_woken;    /* the bit had been cleared by a waker, who writes wake_fd */
	bool is_interrupting; /* in a visit that a threshold brought about: no other may interrupt
	                         it */
	unsigned stack_turns[STAGE_COUNT_MAX]; /* events taken while the stage's events went to our
	                                          stack */
	uint64_t last_visit_ns[STAGE_COUNT_MAX];
	struct stage_rates rates[STAGE_COUNT_MAX]; /* by position in the visit set */
	struct rate_sample sample[STAGE_COUNT_MAX];
	uint64_t rates_ns; /* when they were taken */
	alignas(16) char policy_state[POLICY_STATE_MAX];
	/* owner writes, anyone reads */
	alignas(CACHE_LINE) _Atomic(const struct schedule *)
		schedule; /* adopted: what it says is done */
	struct worker_counters counters;
	struct stage_counters stage[STAGE_COUNT_MAX];
	_Atomic uint64_t edge[STAGE_COUNT_MAX][STAGE_COUNT_MAX]; /* events sent, [from][to] */
	_Atomic unsigned connections;                            /* that its source says it has */
	_Atomic uint64_t
		progress; /* changes with every step of its work, and with every look for some */
	struct perf_thread counting;
	struct perf_total counted[STAGE_COUNT_MAX];
	/* the owner pushes and pops, others may steal */
	struct deque stack[STAGE_COUNT_MAX];
	/* main thread only: watchdog.c */
	uint64_t seen_progress, seen_ns;
};

struct group {
	/* fixed after start */
	enum group_id id;
	const char *name;
	struct graph *graph;
	struct stage *source;                  /* the stage that looks outside, or NULL */
	struct worker *workers;                /* room for CONF_THREADS_MAX */
	struct queue tokens[CONF_THREADS_MAX]; /* policy color: for each domain, stages in the order
	                                        * of their turns, see mechanism_color.c; made when
	                                        * first wanted */
	/* main thread writes, anyone reads */
	_Atomic unsigned worker_count;
	/* anyone, atomic: see idle.h; only the owner writes its searcher bit */
	alignas(CACHE_LINE) _Atomic uint64_t searchers;
	alignas(CACHE_LINE) _Atomic uint64_t sleepers;
	alignas(CACHE_LINE) _Atomic bool is_stopping;
};

struct graph {
	/* fixed after start */
	void *app;
	size_t queue_capacity;
	unsigned replica_count;
	bool has_profile;
	struct partition_weights weights; /* of the profile, if there is one */
	struct topology *topology;
	unsigned port_count; /* instances of the source that the first schedule had: they have
	                        listeners */
	struct stage stage[STAGE_COUNT_MAX];
	struct group group[GROUP_COUNT];
	/* main thread writes, anyone reads: pairs release and acquire */
	alignas(CACHE_LINE) _Atomic(const struct schedule *) schedule;
	/* main thread only */
	const struct schedule
		*retired; /* the one before, as long as a worker may go by it; else NULL */
	struct control control;
	struct repartition repartition;
	/* anyone, atomic */
	_Atomic unsigned readers; /* that may go by the schedule, or by the one retired: see
	                             schedule_read_lock() */
	struct distribution distribution;
	/* start-up of workers, one after the other */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a worker's has_reported */
};

/* One call of a handler, or of a source's poll(), on one worker; nested for pass-through targets.
 */
struct visit {
	struct worker *worker;
	struct stage *stage;
	uint64_t mark_ns; /* service is charged up to here: the event in hand has been served since
	                   */
	uint64_t service_ns; /* of this call, without nested ones */
	unsigned queue; /* index of the stage's queue that its events come from; the caller's, if it
	                   is called directly */
	bool is_direct; /* called by visit_send() or visit_call(), not from a queue */
	bool has_replied;           /* to the caller */
	const struct visit *caller; /* its visit_call() waits for the reply; or NULL */
	unsigned handled, unparked, sent, parked;
};

/*
 * A worker knows that no schedule is freed in the middle of a visit of its own. Threads that adopt
 * none look at the graph's between these two. Any thread; briefly.
 */
static inline void schedule_read_lock(struct graph *g)
{
	atomic_fetch_add_explicit(&g->readers, 1, memory_order_relaxed);
	/* Between that and our look at the schedule; with publish(), between its change and the
	 * look for readers. */
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void schedule_read_unlock(struct graph *g)
{
	/* Release: we have looked at it, before the main thread frees it. */
	atomic_fetch_sub_explicit(&g->readers, 1, memory_order_release);
}

/* The schedule that the worker goes by. Owner's thread. */
static inline const struct schedule *worker_schedule(const struct worker *w)
{
	return atomic_load_explicit(&w->schedule, memory_order_relaxed);
}

/* Something other than an event asks for attention: a stop, or another schedule. Owner's thread. */
static inline bool worker_is_called(const struct worker *w)
{
	/* Relaxed: whoever changes either wakes us afterwards, and the schedule is loaded again
	 * before it is adopted. */
	return atomic_load_explicit(&w->group->is_stopping, memory_order_relaxed) ||
	       atomic_load_explicit(&w->group->graph->schedule, memory_order_relaxed) !=
	               worker_schedule(w);
}

/* Whether it works for a replica or part, w->domain, and not for all of them. */
static inline bool worker_has_domain(const struct worker *w)
{
	return w->group->id == GROUP_MAIN ||
	       (w->group->id == GROUP_IO && worker_schedule(w)->thread_per_connection);
}

static inline unsigned group_worker_count(const struct group *g)
{
	/* Acquire: with the main thread's release when a worker is complete. */
	return atomic_load_explicit(&g->worker_count, memory_order_acquire);
}

/* Index of the stage's queue that the worker visits. */
static inline unsigned stage_own_queue(const struct stage *s, const struct worker *w)
{
	if (s->queue_count == 1)
		return 0;
	return s->kind == STAGE_PARTITIONED ? w->index : w->domain;
}

static inline struct stage_queue *stage_queue(const struct stage *s, const struct worker *w)
{
	return &s->queue[stage_own_queue(s, w)];
}

/* Whether the stage has a queue for each replica. */
static inline bool stage_is_replicated(const struct stage *s)
{
	return s->queue_count > 1 && s->kind != STAGE_PARTITIONED;
}

/* Events in all of the stage's queues; a moment's sum. Any thread. */
static inline size_t stage_queued(const struct stage *s)
{
	size_t n = 0;

	for (unsigned i = 0; i < s->queue_count; i++)
		n += stage_queue_length(&s->queue[i]);
	return n;
}

/* Whether the group's workers go by tokens. */
static inline bool group_is_central(const struct group *g, const struct schedule *schedule)
{
	return schedule->policy->mechanism == POLICY_CENTRAL && g->id == GROUP_MAIN;
}

/* Workers that the stage's queue of that index belongs to. */
static inline uint64_t stage_home(const struct stage *s, const struct schedule *schedule,
                                  unsigned queue)
{
	if (s->kind == STAGE_PARTITIONED)
		return UINT64_C(1) << queue;
	if (s->group->id == GROUP_IO)
		return UINT64_MAX;
	return schedule->stage[s->index].may_visit &
	       (stage_is_replicated(s) ? schedule->domain_workers[queue] : UINT64_MAX);
}

/* Workers that may visit it: if replicas help each other, those of all. */
static inline uint64_t stage_may_visit(const struct stage *s, const struct schedule *schedule,
                                       unsigned queue)
{
	return schedule->steals_across_replicas && stage_is_replicated(s)
	               ? schedule->stage[s->index].may_visit
	               : stage_home(s, schedule, queue);
}

/* Whether the worker may take from the other's stacks what its own visit set has. */
static inline bool worker_may_steal(const struct worker *w, const struct worker *from)
{
	const struct schedule *schedule = worker_schedule(w);

	return w->group->graph->replica_count == 1 || schedule->steals_across_replicas ||
	       schedule->domain[from->index] == w->domain;
}

/* visit.c: true if something waits there that the worker could serve now: a moment's view. If an
 * exclusive stage is taken, there is not: its holder looks at the queue after letting go, and wakes
 * (idle_note). */
bool stage_offers_work(const struct stage *s, const struct worker *w);

/* visit.c: the same of another replica's queue, which the worker is to help with. */
bool stage_can_be_helped(const struct stage *s, unsigned queue);

/* visit.c: serves the stage as its regime says; true if it handled an event. */
bool visit_stage(struct worker *w, struct stage *s);

/* visit.c: serves one event of the stage's queue of that index, whatever its regime. */
bool visit_once(struct worker *w, struct stage *s, unsigned queue);

/* visit.c: serves one event from another worker's stack, if there is one. */
bool visit_stolen(struct worker *w);

/* visit.c: serves one event of another replica, if they help each other and there is one. */
bool visit_foreign_replica(struct worker *w);

/* visit.c: lets the worker's source look outside; the number of pieces served. */
unsigned visit_source(struct worker *w, bool may_block);

/* visit.c: moves what is on the worker's stacks to the stages' queues. */
void visit_flush_stacks(struct worker *w);

/* sched/mechanism_color.c: gives the stage's queue of that index a turn; takes the domain's oldest
 * turn, NULL if there is none. Any thread. */
void central_give(struct stage *s, const struct schedule *schedule, unsigned queue);
struct stage *central_take(struct group *g, unsigned domain);

/* sched/mechanism_color.c: takes all tokens away; and gives those that fit the schedule, which all
 * workers have adopted: those of policies or parts before are of no use. Main thread. */
void central_drop(struct group *g);
void central_renew(struct group *g, const struct schedule *schedule);

/* sched/mechanism_color.c: serves one event of the stage whose turn it is; true if it did. */
bool central_visit(struct worker *w, bool *had_token);

/* sched/worker_loop.c: the body of a worker's thread, from its first visit until the group stops.
 */
void worker_run(struct worker *w);

/* sched/watchdog.c: the worker, if it is one that may not block, is in one step of its work for
 * longer than limit_ns, as far as the calls for it tell: for that long it was awake at all of them,
 * and its progress the same. Main thread. */
bool watchdog_is_stuck(struct worker *w, uint64_t now_ns, uint64_t limit_ns);

/* sched/rates.c: takes the rates of the visit set anew if the interval is over. */
void rates_refresh(struct worker *w, uint64_t now_ns);

/* sched/worker.c: makes one more worker and starts its thread. 0 or -errno, logged: then there is
 * none more. Main thread. */
int group_add_worker(struct group *g);

/* sched/affinity.c: the cores that the schedule binds the worker to. */
struct topology_range affinity_cores(const struct worker *w, const struct schedule *schedule);

/* sched/affinity.c: binds the worker to the cores, if it is not. If that fails, which is logged, it
 * runs where it did. Owner's thread. */
void affinity_bind(struct worker *w, struct topology_range cores);

/* sched/affinity.c: binds it to the cores of the stage's part, if it is to go there for calling the
 * stage; else does nothing. */
void affinity_enter_part(struct worker *w, const struct stage *s);

/* sched/affinity.c, for assertions: an event that is about to be handled is in its replica, or with
 * a worker that helps it out, and in the part that the stage is of, and the worker runs where it is
 * bound to. */
bool affinity_is_right(const struct visit *v, const struct event *ev);

/* sched/worker.c: goes by the schedule from now on. Owner's thread. 0 or -errno (a stage could not
 * be initialised). */
int worker_adopt(struct worker *w, const struct schedule *schedule);

#endif
