/*
 * worker_loop.c - a worker's thread: asks the policy for the next stage, visits it, and sleeps when
 * a whole round has found nothing. Serves all groups: cores, pools, ports and disk threads differ
 * in visit set and binding only.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "idle.h"
#include "log/log.h"
#include "worker.h"

#define BACKOFF_MS_MAX 64
#define RATES_TURNS 64 /* visits between looks at the clock for the rates' sake */
#define SPIN_TURNS 32  /* looks at the queues between those at the clock */

static bool is_stopping(const struct worker *w)
{
	/* Relaxed: whoever sets it wakes us afterwards. */
	return atomic_load_explicit(&w->group->is_stopping, memory_order_relaxed);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

/* S2: true if work was seen before the time to spin was over. */
static bool search(struct worker *w)
{
	/* Ports and disk threads wait for the world outside: it takes longer than any spinning. */
	uint64_t spin_ns = w->group->id == GROUP_MAIN ? worker_schedule(w)->spin_ns : 0;

	counter_add(&w->counters.spins, 1);
	counter_add(&w->progress, 1);
	if (!spin_ns)
		return idle_sees_work(w);
	for (uint64_t until = clock_ns() + spin_ns; clock_ns() < until && !is_stopping(w);)
		for (int i = 0; i < SPIN_TURNS; i++) {
			if (idle_sees_work(w))
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

/* S7. With a source, the outside world wakes us as well; what it brings is served within. */
static unsigned block(struct worker *w, int timeout_ms)
{
	unsigned served = 0;

	w->was_woken = false;
	pool_thread_rest();
	counter_add(&w->counters.sleeps, 1);
	idle_time_on(&w->counters.idle, clock_ns());
	counter_add(&w->progress, 1);
	if (w->group->source)
		served = visit_source(w, true);
	else if (timeout_ms < 0 || is_readable(w->wake_fd, timeout_ms))
		read_wake_fd(w); /* it blocks */
	idle_retract(w);
	/* Nothing served: only the eventfd can have ended a source's poll. Not reading it otherwise
	 * saves a call for every piece from outside; if it is readable all the same, the next poll
	 * says so. */
	if (w->group->source && (w->was_woken || served == 0))
		read_wake_fd(w);
	idle_time_off(
		&w->counters.idle,
		clock_ns()); /* if no piece that the source found has done so: visit_enter() */
	return served;
}

/* idle = backoff, for comparison: sleeps for twice as long each time nothing is found (Gordon
 * 2010, 2.4.2). Nobody wakes it but a stop or a new schedule. */
static void idle_backoff(struct worker *w)
{
	for (int ms = 1; !worker_is_called(w) && !idle_sees_work(w);
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
		idle_search(w);
		if (search(w)) {
			idle_found(w);
			return;
		}
		idle_announce(w);
		if (worker_is_called(w) || idle_sees_work(w)) {
			counter_add(&w->counters.raced, 1);
			idle_retract(w);
			continue;
		}
		if (was_blocked)
			counter_add(&w->counters.wakes_spurious, 1);
		was_blocked = block(w, -1) == 0;
		if (!was_blocked)
			return;
	}
}

/* Which stages of the visit set seem to have something for us. */
static uint64_t ready_stages(const struct worker *w)
{
	uint64_t ready = 0;

	for (unsigned i = 0; i < w->visit_set_count; i++)
		if (stage_offers_work(w->visit_set[i], w))
			ready |= UINT64_C(1) << i;
	return ready;
}

/* One visit, in the policy's order; *misses is set beyond any round if it is known that there is
 * nothing. */
static bool visit_next(struct worker *w, bool found, unsigned *misses)
{
	struct policy_in in = { .found = found };

	if (w->policy->wants_ready) {
		in.ready = ready_stages(w);
		if (!in.ready) {
			*misses = UINT32_MAX;
			return visit_stolen(w);
		}
	}
	return visit_stage(w, w->visit_set[w->policy->next(w->policy_state, in)]);
}

/* Policy color: the stage whose turn it is. */
static bool visit_by_token(struct worker *w, unsigned *misses)
{
	bool had_token, found = central_visit(w, &had_token);

	if (!found && !had_token)
		*misses = UINT32_MAX;
	return found;
}

/* At a switch there is no way back: events are on their way to stages that this worker must be able
 * to run. */
static void adopt_or_die(struct worker *w, const struct schedule *schedule)
{
	int err = worker_adopt(w, schedule);

	if (!err)
		return;
	log_error("worker %s/%u cannot take up the new schedule: %s", w->group->name, w->index,
	          strerror(-err));
	abort();
}

void worker_run(struct worker *w)
{
	const struct schedule *schedule = NULL;
	unsigned misses = 0, round = 0, turns = 0;
	bool found = false, is_central = false;

	while (!is_stopping(w)) {
		const struct schedule *current =
			atomic_load_explicit(&w->group->graph->schedule, memory_order_acquire);

		if (schedule != current) {
			schedule = current;
			if (schedule != worker_schedule(w))
				adopt_or_die(w, schedule);
			is_central = group_is_central(w->group, schedule);
			/* A wave forward and backward passes every stage within 2 n visits; other
			 * policies may take longer, and need not be waited for: idle() looks at
			 * every queue itself. */
			round = w->visit_set_count < 2 ? w->visit_set_count
			                               : 2 * w->visit_set_count;
			misses = 0;
			found = false;
		}
		if (w->visit_set_count)
			found = is_central ? visit_by_token(w, &misses)
			                   : visit_next(w, found, &misses);
		if (found)
			misses = 0;
		else if (misses < UINT32_MAX)
			misses++;
		if (++turns % RATES_TURNS == 0)
			rates_refresh(w, clock_ns());
		if (misses >= round) {
			if (!visit_foreign_replica(w))
				idle(w);
			misses = 0;
			found = false;
		}
	}
}
