/*
 * runtime.h - the private structs of a running graph: stages, workers, groups and visits.
 *
 * Private to sched/ and its tests. The inline functions below are the questions that most files
 * ask. Fields are grouped by the threads that use them.
 */
#ifndef DARKROOM_SCHED_CORE_RUNTIME_H
#define DARKROOM_SCHED_CORE_RUNTIME_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/queue.h"
#include "deque.h"
#include "graph_table.h"
#include "policy/policy.h"
#include "resources.h"
#include "schedule.h"
#include "stage_queue.h"
#include "telemetry/counter.h"
#include "telemetry/perf.h"

#define SCHEDULE_RETIRED_MAX 16 /* schedules that may be published before a worker adopts one */

struct controllers;
struct graph;
struct group;
struct topology;
struct trace_ring;
struct tracer;
struct user_thread;
struct user_threads;

/* The state beside one of a stage's queues. */
struct stage_gate {
	/* any thread, atomic */
	alignas(CACHE_LINE) _Atomic bool is_taken; /* exclusive: a worker is in the stage */
	_Atomic unsigned turns; /* policy color: turns that name the queue, see mechanism_color.c */
};

struct stage {
	/* fixed after start */
	const struct stage_class *class;
	struct graph *graph;
	unsigned index; /* in graph_rows */
	enum stage_kind kind;
	stage_set targets;   /* it may send to them */
	struct group *group; /* its workers visit the stage */
	/* queue_count of each. A partitioned stage has one per possible worker, in use from the
	 * worker's start on. A stage of the main group has one per replica. Others have one. */
	struct stage_queue *queue;
	struct stage_gate *gate;
	unsigned queue_count;
	/* any thread, relaxed: graph_full_stage() */
	_Atomic uint64_t bucket_full_ns, refusals;
};

/* What a worker knows of the stages, by stage. Kept over switches of schedules. All zero: nothing
 * is measured. */
struct rates {
	double arrival_per_s[STAGE_COUNT_MAX], service_per_s[STAGE_COUNT_MAX];
	/* sums at the beginning of the interval */
	struct rate_sample {
		uint64_t handled, cpu_ns, arrived;
	} sample[STAGE_COUNT_MAX];
	uint64_t begin_ns, interval_ns;
};

struct worker {
	/* fixed after start */
	struct group *group;
	unsigned index; /* in the group */
	int wake_fd;    /* eventfd, readable while the worker should wake up; blocks unless the
	                 * group has a source */
	pthread_t thread;
	/* the main thread writes them until the worker's end, for stages that no schedule has given
	 * to the worker before */
	void *scratch[STAGE_COUNT_MAX];
	stage_set initialised; /* their worker_init has succeeded */
	/* owner only */
	/* In pipeline order: first the stages that the policy visits, then the stages that are
	 * called directly. The latter have events only from outside, or from an earlier schedule.
	 */
	struct stage *visit_set[STAGE_COUNT_MAX];
	unsigned polled_count; /* the stages that the policy visits */
	unsigned visit_set_count;
	unsigned domain;             /* its replica or part, by the adopted schedule */
	struct topology_range cores; /* to which it is bound */
	const struct mechanism *mechanism;
	const struct policy_class *policy; /* has a visit order */
	unsigned visits;                   /* in the order of the policy */
	bool is_announced;    /* its sleeper bit was set, and has not been checked since */
	bool was_woken;       /* a waker had cleared the bit, and writes wake_fd */
	bool is_interrupting; /* in a visit that a threshold started, which none may interrupt */
	stage_set stacked;    /* stages whose stack may have events */
	unsigned stack_turns[STAGE_COUNT_MAX]; /* events taken while the stage used its stack */
	uint64_t last_visit_ns[STAGE_COUNT_MAX];
	struct rates rates;
	struct stage_rates polled_rates[STAGE_COUNT_MAX]; /* by position, for the policy */
	uint64_t cpu_mark_ns; /* CPU time is charged up to here, under policies that want rates */
	alignas(16) char policy_state[POLICY_STATE_MAX];
	/* owner writes, any thread reads */
	alignas(CACHE_LINE) _Atomic(const struct schedule *) schedule; /* adopted */
	struct worker_counters counters;
	struct stage_counters stage[STAGE_COUNT_MAX];
	struct stage_use use[STAGE_COUNT_MAX];
	_Atomic uint64_t edge[STAGE_COUNT_MAX][STAGE_COUNT_MAX]; /* events sent, [from][to] */
	_Atomic uint64_t progress; /* changes with each step of work, and each search for work */
	struct perf_thread perf;
	struct perf_total perf_total[STAGE_COUNT_MAX];
	/* owner writes, thieves read: any of its stacks may have events. In a line that seldom
	 * changes otherwise. */
	alignas(CACHE_LINE) _Atomic bool is_stacked;
	/* main thread writes, owner reads */
	_Atomic(struct trace_ring *) trace; /* NULL: no trace is on; trace.h */
	/* owner pushes and pops, other workers steal */
	struct deque stack[STAGE_COUNT_MAX];
	/* main thread only: graph_is_alive() */
	uint64_t seen_progress, seen_ns;
	/* owner only: mechanism_user_threads.c */
	struct user_threads *user_threads; /* NULL: none was needed */
	struct user_thread *user_thread;   /* the one that runs, or NULL */
	/* any thread, under the graph's lock: visit_renew_thread() */
	bool has_former;
	pthread_t former; /* the thread that ran the worker before, and ends */
};

struct group {
	/* fixed after start */
	enum group_id id;
	const char *name;
	struct graph *graph;
	struct stage *source;                 /* the stage with poll(), or NULL */
	struct worker *workers;               /* room for CONF_THREADS_MAX */
	struct queue turns[CONF_THREADS_MAX]; /* policy color, by domain: stages in the order in
	                                       * which they are served; made when first needed */
	/* main thread writes, any thread reads */
	_Atomic unsigned worker_count;
	/* any thread, atomic: see idle.h; only the owner sets its bits; as in struct worker_set */
	alignas(CACHE_LINE) _Atomic uint64_t searchers[WORKER_WORDS];
	alignas(CACHE_LINE) _Atomic uint64_t sleepers[WORKER_WORDS];
	alignas(CACHE_LINE) _Atomic bool is_stopping;
};

/* What a replica got: replicas.h. Any thread, atomic. */
struct replica {
	alignas(CACHE_LINE) _Atomic uint64_t bytes; /* of unfinished images */
	_Atomic uint64_t requests;                  /* since the start */
};

/* Threads that read the schedule and are no workers, by schedule_read_lock(). There are two
 * counters, and new readers use one of them. So the other one becomes zero, however many come. */
struct schedule_readers {
	_Atomic unsigned slot; /* for new readers; the main thread writes it */
	_Atomic unsigned count[2];
	unsigned
		unseen; /* bit i: count[i] was never zero since the last publication; main thread */
};

struct graph {
	/* fixed after start */
	void *app;
	size_t queue_capacity;
	unsigned replica_count;
	bool has_profile;
	struct partition_weights weights; /* from the profile */
	struct topology *topology;
	unsigned io_count; /* I/O threads of the first schedule, each of which has listeners */
	struct stage stage[STAGE_COUNT_MAX];
	struct group group[GROUP_COUNT];
	struct controllers *controllers; /* main thread; control/controllers.c makes it */
	struct tracer *tracer;           /* main thread; trace.h; NULL before the first trace */
	/* main thread writes, any thread reads: release and acquire */
	alignas(CACHE_LINE) _Atomic(const struct schedule *) schedule;
	/* main thread only */
	const struct schedule *retired[SCHEDULE_RETIRED_MAX]; /* a worker may still use them */
	unsigned retired_count;
	/* any thread, atomic */
	struct schedule_readers readers;
	struct replica replica[CONF_THREADS_MAX];
	alignas(CACHE_LINE) _Atomic unsigned replica_turn;
	_Atomic bool is_growing;       /* a pool may get more threads (experiment.dynamic) */
	_Atomic uint64_t repartitions; /* changes of the parts (layout.online) */
	/* policy thread-per-connection: direct calls with urgent events, see visit.c; and the
	 * renewal of threads, see graph.c */
	_Atomic unsigned urgent_calls;
	pthread_mutex_t lock;
	pthread_cond_t urgent_over; /* no such call is left; signalled under the lock */
	alignas(CACHE_LINE) struct scarcity scarcity;
};

/* One call of a handler, or of a source's poll(). Calls of pass-through stages nest. */
struct visit {
	struct worker *worker;
	struct stage *stage;
	uint64_t begin_ns;   /* a source: of its first piece of work; 0: none */
	uint64_t mark_ns;    /* service is charged up to here */
	uint64_t service_ns; /* of this call, without nested calls; as is the next */
	struct thread_use use;
	unsigned queue; /* index of the stage's queue that its events come from; for a direct call,
	                 * the caller's */
	bool is_direct; /* called by visit_send() or visit_call(), not from a queue */
	const struct visit *caller; /* the visit_call() that waits for a reply, or NULL */
	bool has_replied;           /* to the caller */
	unsigned handled, unparked, sent, parked;
};

/* ---- readers of the schedule ---- */

/* Workers adopt schedules between visits, so that none is freed during a visit. Other threads
 * must access the graph's schedule between these two. Returns the slot to unlock. Any thread, for a
 * short time. */
static inline unsigned schedule_read_lock(struct graph *g)
{
	/* Relaxed: either slot is right. */
	unsigned slot = atomic_load_explicit(&g->readers.slot, memory_order_relaxed);

	atomic_fetch_add_explicit(&g->readers.count[slot], 1, memory_order_relaxed);
	/* Orders the increment before the load of the schedule. Pairs with the fence in
	 * publish(), between the change of the schedule and the load of the counters. */
	atomic_thread_fence(memory_order_seq_cst);
	return slot;
}

static inline void schedule_read_unlock(struct graph *g, unsigned slot)
{
	/* Release: the schedule has been read before the main thread frees it. */
	atomic_fetch_sub_explicit(&g->readers.count[slot], 1, memory_order_release);
}

/* ---- workers ---- */

/* Returns the schedule that the worker has adopted. Owner's thread. */
static inline const struct schedule *worker_schedule(const struct worker *w)
{
	return atomic_load_explicit(&w->schedule, memory_order_relaxed);
}

/* Returns the rules of the stage in that schedule. Owner's thread. */
static inline const struct stage_schedule *worker_rule(const struct worker *w,
                                                       const struct stage *s)
{
	return &worker_schedule(w)->stage[s->index];
}

/* Returns the worker's stage group in that schedule. Workers of the I/O and disk threads have none,
 * and the first stands for it. Owner's thread. */
static inline const struct stage_group *worker_stage_group(const struct worker *w)
{
	const struct schedule *schedule = worker_schedule(w);

	return w->group->id == GROUP_MAIN ? schedule_group_of_worker(schedule, w->index)
	                                  : &schedule->group[0];
}

static inline bool worker_is_stopping(const struct worker *w)
{
	/* Relaxed: the thread that sets it wakes the worker afterwards. */
	return atomic_load_explicit(&w->group->is_stopping, memory_order_relaxed);
}

/* Returns whether the worker must stop or adopt another schedule. Owner's thread. */
static inline bool worker_is_called(const struct worker *w)
{
	/* Relaxed: the thread that changes either wakes the worker afterwards, and the schedule
	 * is loaded again before it is adopted. */
	return worker_is_stopping(w) ||
	       atomic_load_explicit(&w->group->graph->schedule, memory_order_relaxed) !=
	               worker_schedule(w);
}

static inline unsigned group_worker_count(const struct group *g)
{
	/* Acquire: pairs with the main thread's release when a worker is complete. */
	return atomic_load_explicit(&g->worker_count, memory_order_acquire);
}

/* Returns the worker after w in the order of groups, or the first one if w is NULL; NULL after the
 * last. Any thread. */
static inline struct worker *graph_next_worker(const struct graph *g, const struct worker *w)
{
	unsigned index = w ? w->index + 1 : 0;

	for (unsigned id = w ? w->group->id : GROUP_IO; id < GROUP_COUNT; id++, index = 0)
		if (index < group_worker_count(&g->group[id]))
			return &g->group[id].workers[index];
	return NULL;
}

/* Returns whether the worker may take events of its visit set from the other worker's stacks. */
static inline bool worker_may_steal(const struct worker *w, const struct worker *from)
{
	const struct schedule *schedule = worker_schedule(w);

	return w->group->graph->replica_count == 1 || schedule->steals_across_replicas ||
	       schedule->domain[from->index] == w->domain;
}

/* Notes whether the worker's stack of that stage has events. Thieves look at a worker's stacks only
 * if one has. Owner's thread, after each push and pop. */
static inline void worker_note_stack(struct worker *w, unsigned stage)
{
	stage_set bit = stage_set_of(stage), before = w->stacked;

	w->stacked = deque_length(&w->stack[stage]) ? before | bit : before & ~bit;
	/* Relaxed: the fences of idle_note order it, as they order the lengths of stacks. */
	if (!before != !w->stacked)
		atomic_store_explicit(&w->is_stacked, w->stacked != 0, memory_order_relaxed);
}

/* Returns whether the worker should look for events on the other worker's stacks. */
static inline bool worker_wants_stacks_of(const struct worker *w, const struct worker *from)
{
	return atomic_load_explicit(&from->is_stacked, memory_order_relaxed) &&
	       worker_may_steal(w, from);
}

/* ---- queues of a stage ---- */

/* Returns the index of the stage's queue that the worker visits. */
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

/* Returns whether the stage has a queue per replica. */
static inline bool stage_is_replicated(const struct stage *s)
{
	return s->queue_count > 1 && s->kind != STAGE_PARTITIONED;
}

/* Returns word k of the set of workers that own the stage's queue of that index. */
static inline uint64_t stage_home(const struct stage *s, const struct schedule *schedule,
                                  unsigned queue, unsigned k)
{
	if (s->kind == STAGE_PARTITIONED)
		return worker_bit(queue, k);
	if (s->group->id == GROUP_IO)
		return UINT64_MAX;
	return schedule->stage[s->index].may_visit.word[k] &
	       (stage_is_replicated(s) ? schedule->domain_workers[queue].word[k] : UINT64_MAX);
}

/* The same for the workers that may visit that queue: its owners, or all if replicas help each
 * other. */
static inline uint64_t stage_may_visit(const struct stage *s, const struct schedule *schedule,
                                       unsigned queue, unsigned k)
{
	return schedule->steals_across_replicas && stage_is_replicated(s)
	               ? schedule->stage[s->index].may_visit.word[k]
	               : stage_home(s, schedule, queue, k);
}

/* Returns whether the worker of that index owns the queue. */
static inline bool stage_is_home(const struct stage *s, const struct schedule *schedule,
                                 unsigned queue, unsigned worker)
{
	return stage_home(s, schedule, queue, worker / WORKER_WORD_BITS) >>
	               worker % WORKER_WORD_BITS &
	       1;
}

#endif
