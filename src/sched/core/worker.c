/*
 * worker.c - the thread of a worker: its preparation for a schedule, its adoption of one, its loop.
 *
 * The loop visits a stage, and sleeps when a whole round has found nothing. The mechanism
 * determines the next stage. All groups use this loop: cores, pools, I/O and disk threads differ
 * only in visit set and binding.
 */
#include "worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/round.h"
#include "idle.h"
#include "layout/topology.h"
#include "log/log.h"
#include "mechanism.h"
#include "push.h"
#include "runtime.h"

/* ---- stages of a worker ---- */

/* Returns whether the worker visits the stage under the schedule. A retired I/O thread keeps its
 * source, to finish the connections that it has. */
static bool visits(const struct worker *w, const struct stage *s, const struct schedule *schedule)
{
	if (w->group->id == GROUP_MAIN)
		return w->index < schedule->worker_count &&
		       stage_set_has(schedule->visit_set[w->index], s->index);
	return s->group == w->group && stage_is_home(s, schedule, w->index, w->index);
}

/* Returns the stages whose handlers the worker may run: those that it visits, and those that it
 * reaches from there by direct calls. */
static stage_set reachable(const struct worker *w, const struct schedule *schedule)
{
	const struct graph *g = w->group->graph;
	stage_set set = 0, before;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (visits(w, &g->stage[i], schedule))
			set |= stage_set_of(i);
	do {
		before = set;
		for (unsigned i = 0; i < graph_row_count; i++)
			if (stage_set_has(set, i))
				set |= g->stage[i].targets & schedule->pass_through;
	} while (set != before);
	return set;
}

static int init_stage(struct worker *w, unsigned index)
{
	struct stage *s = &w->group->graph->stage[index];
	struct visit v = { .worker = w, .stage = s };
	size_t size = round_up(s->class->scratch_size, CACHE_LINE);
	int err = 0;

	if (size) {
		w->scratch[index] = aligned_alloc(CACHE_LINE, size);
		if (!w->scratch[index])
			return -ENOMEM;
		memset(w->scratch[index], 0, size);
	}
	if (s->class->worker_init)
		err = s->class->worker_init(&v, w->scratch[index]);
	if (!err) {
		w->initialised |= stage_set_of(index);
		return 0;
	}
	log_error("worker %s/%u: cannot initialise stage %s: %s", w->group->name, w->index,
	          s->class->name, strerror(-err));
	free(w->scratch[index]);
	w->scratch[index] = NULL;
	return err;
}

int worker_prepare(struct worker *w, const struct schedule *schedule)
{
	stage_set missing = reachable(w, schedule) & ~w->initialised;
	int err = 0;

	for (unsigned i = 0; i < graph_row_count && !err; i++)
		if (stage_set_has(missing, i))
			err = init_stage(w, i);
	return err;
}

void worker_fini(struct worker *w)
{
	user_threads_end(w);
	perf_close(&w->perf);
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct visit v = { .worker = w, .stage = &w->group->graph->stage[i] };

		if (stage_set_has(w->initialised, i) && v.stage->class->worker_fini)
			v.stage->class->worker_fini(&v, w->scratch[i]);
		free(w->scratch[i]);
		w->scratch[i] = NULL;
	}
	pool_thread_fini();
}

/* ---- cores ---- */

/* Binds the calling worker to the cores that the schedule has for it. If that fails, the binding
 * does not change. */
static void bind_worker(struct worker *w, const struct schedule *s)
{
	const struct topology *t = w->group->graph->topology;
	struct topology_range cores = { 0, 0 };

	if (w->group->id == GROUP_MAIN)
		cores = domains_worker_cores(s, w->index);
	if (cores.first == w->cores.first && cores.count == w->cores.count)
		return;
	int err = topology_bind(t, cores);

	if (err) {
		log_warning("worker %s/%u: cannot %s: %s; its binding stays as it was",
		            w->group->name, w->index,
		            cores.count ? "bind it to its cores" : "unbind it from its cores",
		            strerror(-err));
		return;
	}
	w->cores = cores;
	/* Buffers stay on the NUMA node of the core, if there are several. */
	bool has_home = cores.count && topology_node_count(t) > 1;

	pool_thread_set_home(has_home ? 1 + topology_core(t, cores.first)->node % (POOL_HOMES - 1)
	                              : 0);
}

/* ---- adoption ---- */

static void add_stages(struct worker *w, const struct schedule *schedule, bool is_pass_through)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &w->group->graph->stage[i];

		if (stage_set_has(schedule->pass_through, i) == is_pass_through &&
		    visits(w, s, schedule))
			w->visit_set[w->visit_set_count++] = s;
	}
}

/* Restarts the policy, with the rates of the time before. */
static void reset_policy(struct worker *w, const struct schedule *schedule)
{
	bool is_main = w->group->id == GROUP_MAIN;
	const struct stage_group *own = schedule_group_of_worker(schedule, w->index);

	/* I/O and disk threads have one stage each, so that any order is right. */
	w->mechanism = is_main ? own->mechanism : &mechanism_poll;
	w->policy = is_main && own->policy->reset ? own->policy : &policy_cohort;
	if (w->policy->wants_rates)
		rates_restart(w, schedule);
	if (w->polled_count)
		w->policy->reset(w->policy_state, w->polled_count, w->polled_rates);
}

#define SLICE_NS 100000 /* the kernel's own limit */
#define IO_NICE (-5)    /* added to that of the process */
#define NICE_MIN (-20)

struct thread_attr { /* sched_setattr(2), for which glibc has no call */
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns; /* of the usual policy: the slice */
};

static int get_attr(pid_t thread, struct thread_attr *a)
{
	return syscall(SYS_sched_getattr, thread, a, sizeof *a, 0) ? -errno : 0;
}

static int set_attr(struct thread_attr *a)
{
	return syscall(SYS_sched_setattr, 0, a, 0) ? -errno : 0;
}

/* Asks for that time slice for the calling thread, 0 being the usual one, and for a niceness, which
 * is added to that of the process. Kernels before Linux 6.12 ignore the slice (EEVDF). A lower
 * niceness needs CAP_SYS_NICE or RLIMIT_NICE; without either, the thread has that of the process.
 * Changes nothing if the thread has another scheduling policy than the usual one. Returns 0 or
 * -errno. */
static int set_priority(uint64_t slice_ns, int nice)
{
	struct thread_attr a = { .size = sizeof a }, process = { .size = sizeof process };
	int err = get_attr(0, &a);

	if (!err)
		err = get_attr(getpid(), &process);
	if (err || a.policy != SCHED_OTHER)
		return err;
	a.runtime_ns = slice_ns;
	a.nice = process.nice + nice < NICE_MIN ? NICE_MIN : process.nice + nice;
	err = set_attr(&a);
	if (err != -EPERM)
		return err;
	a.nice = process.nice;
	return set_attr(&a);
}

/* I/O and disk threads work for microseconds at a time. Without a short slice, each step of a small
 * upload waits for milliseconds behind the image work on all cores. At ten times the capacity the
 * I/O threads need more than an equal share of the cores, or refusals take seconds. Under
 * thread-per-connection the I/O threads do the image work, as usual threads. */
static void adopt_priority(const struct worker *w, const struct schedule *schedule)
{
	bool is_usual = schedule_is_thread_per_connection(schedule);

	if (w->group->id == GROUP_MAIN)
		return;
	int err = set_priority(is_usual ? 0 : SLICE_NS,
	                       is_usual || w->group->id != GROUP_IO ? 0 : IO_NICE);

	if (err)
		log_debug("worker %s/%u: cannot set its time slice: %s; it stays as it was",
		          w->group->name, w->index, strerror(-err));
}

/* A worker without performance counters works like the others. */
static void adopt_perf(struct worker *w, const struct perf_caps *caps)
{
	if (!caps->is_on) {
		perf_close(&w->perf);
		return;
	}
	int err = perf_open(&w->perf, caps);

	if (err)
		log_warning("worker %s/%u: cannot open performance counters: %s; it runs without",
		            w->group->name, w->index, strerror(-err));
}

void worker_adopt(struct worker *w, const struct schedule *schedule)
{
	user_threads_end(w);
	if (worker_schedule(w))
		push_flush_stacks(w);
	pool_thread_fini(); /* the schedule may have no work for it */
	w->domain = w->group->id == GROUP_MAIN ? schedule->domain[w->index] : 0;
	w->visit_set_count = 0;
	add_stages(w, schedule, false);
	w->polled_count = w->visit_set_count;
	add_stages(w, schedule, true);
	bind_worker(w, schedule);
	adopt_priority(w, schedule);
	adopt_perf(w, &schedule->perf);
	reset_policy(w, schedule);
	memset(w->last_visit_ns, 0, sizeof w->last_visit_ns);
	/* Release: pairs with the main thread's acquire, when it waits for all to adopt. */
	atomic_store_explicit(&w->schedule, schedule, memory_order_release);
}

#define SPIN_TURNS 32 /* checks of the queues between checks of the time */

/* ---- sleeping ---- */

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

/* S2, check() in tests/model/idle.pml. Returns true if work was seen before the spinning time had
 * passed. */
static bool search(struct worker *w)
{
	/* I/O and disk threads wait for the outside world, which takes longer than any spinning. */
	uint64_t spin_ns = w->group->id == GROUP_MAIN ? worker_schedule(w)->spin_ns : 0;

	counter_add(&w->counters.spins, 1);
	counter_add(&w->progress, 1);
	if (!spin_ns)
		return worker_sees_work(w);
	for (uint64_t until = clock_ns() + spin_ns; clock_ns() < until && !worker_is_stopping(w);)
		for (int i = 0; i < SPIN_TURNS; i++) {
			if (worker_sees_work(w))
				return true;
			cpu_relax();
		}
	return false;
}

static void read_wake_fd(struct worker *w)
{
	uint64_t value;

	while (read(w->wake_fd, &value, sizeof value) < 0 && errno == EINTR)
		continue;
}

/* S7. With a source, work from outside wakes the worker as well, and is served before this returns.
 * Returns the number of pieces of such work. */
static unsigned block(struct worker *w)
{
	unsigned served = 0;

	w->was_woken = false;
	pool_thread_rest();
	counter_add(&w->counters.sleeps, 1);
	idle_time_on(&w->counters.idle, clock_ns());
	counter_add(&w->progress, 1);
	if (w->group->source)
		served = serve_source(w, true);
	else
		read_wake_fd(w); /* it blocks */
	idle_retract(w);
	/* If nothing was served, only the eventfd can have ended a source's poll. Not reading it
	 * otherwise saves a system call for every piece of work from outside. If it is readable
	 * nevertheless, the next poll returns at once. */
	if (w->group->source && (w->was_woken || served == 0))
		read_wake_fd(w);
	/* A source's work has ended the idle time in visit_enter(). */
	idle_time_off(&w->counters.idle, clock_ns());
	return served;
}

/* Returns when there may be something to visit, or the worker is called. */
static void idle(struct worker *w)
{
	bool was_blocked = false;

	for (stage_set left = w->stacked; left; left &= left - 1) /* thieves took the rest */
		worker_note_stack(w, stage_set_first(left));
	while (!worker_is_called(w)) {
		idle_search(w);        /* S1 */
		if (search(w)) {       /* S2 */
			idle_found(w); /* S3 */
			return;
		}
		idle_announce(w); /* S4, S5 */
		/* S6 */
		if (worker_is_called(w) || worker_sees_work(w)) {
			counter_add(&w->counters.raced, 1);
			idle_retract(w);
			continue;
		}
		if (was_blocked)
			counter_add(&w->counters.wakes_spurious, 1);
		was_blocked = block(w) == 0; /* S7 */
		if (!was_blocked)
			return;
	}
}

/* ---- the loop ---- */

/* Returns the number of visits in a row that must find nothing before the worker sleeps. A wave
 * forward and backward reaches every stage within 2 n visits. Policies that take longer need no
 * more, because idle() checks every queue itself. */
static unsigned round_length(const struct worker *w)
{
	return w->polled_count < 2 ? w->polled_count : 2 * w->polled_count;
}

void worker_run(struct worker *w)
{
	const struct schedule *schedule = NULL;
	enum visit_result result = VISIT_EMPTY;
	unsigned misses = 0, round = 0;

	while (!worker_is_stopping(w)) {
		const struct schedule *current =
			atomic_load_explicit(&w->group->graph->schedule, memory_order_acquire);

		if (schedule != current) {
			schedule = current;
			if (schedule != worker_schedule(w))
				worker_adopt(w, schedule);
			round = round_length(w);
			misses = 0;
			result = VISIT_EMPTY;
		}
		if (w->visit_set_count)
			result = w->mechanism->visit(w, result == VISIT_SERVED);
		misses = result == VISIT_SERVED ? 0 : misses + 1;
		if (misses < round && result != VISIT_ALL_EMPTY)
			continue;
		if (!serve_pass_through(w) && !serve_foreign_replica(w))
			idle(w);
		misses = 0;
		result = VISIT_EMPTY;
	}
}
