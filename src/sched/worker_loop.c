/*
 * worker_loop.c - the loop of a worker's thread.
 *
 * It visits a stage, and sleeps when a whole round has found nothing. The mechanism determines the
 * next stage. All groups use this loop: cores, pools, I/O and disk threads differ only in visit set
 * and binding. Owner's thread.
 */
#include "worker_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "idle.h"
#include "log/log.h"
#include "mechanism.h"
#include "runtime.h"
#include "serve.h"
#include "waiting.h"
#include "worker.h"

#define BACKOFF_MS_MAX 64
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

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	while ((n = poll(&p, 1, timeout_ms)) < 0 && errno == EINTR)
		continue;
	return n > 0;
}

/* S7. timeout_ms: -1 without limit. With a source, work from outside wakes the worker as well,
 * and is served before this returns. Returns the number of pieces of such work. */
static unsigned block(struct worker *w, int timeout_ms)
{
	unsigned served = 0;

	w->was_woken = false;
	pool_thread_rest();
	counter_add(&w->counters.sleeps, 1);
	idle_time_on(&w->counters.idle, clock_ns());
	counter_add(&w->progress, 1);
	if (w->group->source)
		served = serve_source(w, true);
	else if (timeout_ms < 0 || is_readable(w->wake_fd, timeout_ms))
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

/* idle = backoff, for comparison: sleeps twice as long each time nothing is found (Gordon 2010,
 * 2.4.2). Only a stop or a new schedule wakes the worker. */
static void idle_backoff(struct worker *w)
{
	for (int ms = 1; !worker_is_called(w) && !worker_sees_work(w);
	     ms = ms < BACKOFF_MS_MAX ? 2 * ms : ms)
		block(w, ms);
}

/* Returns when there may be something to visit, or the worker is called. */
static void idle(struct worker *w)
{
	bool was_blocked = false;

	if (worker_schedule(w)->is_backoff && !w->group->source) {
		idle_backoff(w);
		return;
	}
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
		was_blocked = block(w, -1) == 0; /* S7 */
		if (!was_blocked)
			return;
	}
}

/* ---- the loop ---- */

/* Events may already be queued for stages that this worker must be able to run, so that a failed
 * adoption cannot be undone. */
static void adopt_or_die(struct worker *w, const struct schedule *schedule)
{
	int err = worker_adopt(w, schedule);

	if (!err)
		return;
	log_error("worker %s/%u: cannot apply the new schedule: %s; aborting", w->group->name,
	          w->index, strerror(-err));
	abort();
}

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
				adopt_or_die(w, schedule);
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
