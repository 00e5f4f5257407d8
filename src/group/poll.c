/*
 * poll.c - a worker's thread: asks the policy for the next stage, visits it, and sleeps when a whole round has
 * found nothing. Serves all three groups: cores, ports and disk threads differ in visit set and binding only.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "../clock.h"
#include "../log.h"
#include "group.h"
#include "idle.h"

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
	uint64_t spin_ns = w->group->spin_ns;
	uint64_t until = spin_ns ? clock_ns() + spin_ns : 0;

	counter_add(&w->counters.spins, 1);
	do {
		for (int i = 0; i < 32; i++) {
			if (idle_sees_work(w))
				return true;
			cpu_relax();
		}
	} while (spin_ns && clock_ns() < until && !is_stopping(w));
	return false;
}

static void read_wake_fd(struct worker *w)
{
	uint64_t value;

	while (read(w->wake_fd, &value, sizeof value) < 0 && errno == EINTR)
		continue;
}

/* S7. With a source, the outside world wakes us as well; what it brings is served within. */
static unsigned block(struct worker *w)
{
	uint64_t since = clock_ns();
	unsigned served = 0;

	w->was_woken = false;
	counter_add(&w->counters.sleeps, 1);
	if (w->group->source) {
		served = visit_source(w, true);
	} else {
		struct pollfd p = { .fd = w->wake_fd, .events = POLLIN };

		while (poll(&p, 1, -1) < 0 && errno == EINTR)
			continue;
	}
	idle_retract(w);
	/* Nothing served: only the eventfd can have ended a source's poll. Not reading it otherwise saves a call for
	 * every piece from outside; if it is readable all the same, the next poll says so. */
	if (w->was_woken || served == 0)
		read_wake_fd(w);
	/* A source counts its own pieces' time as service: idle is the rest, near enough. */
	if (served == 0)
		counter_add(&w->counters.idle_ns, clock_ns() - since);
	return served;
}

/* Returns when there may be something to visit. */
static void idle(struct worker *w)
{
	bool was_blocked = false;

	while (!is_stopping(w)) {
		idle_search(w);
		if (search(w)) {
			idle_found(w);
			return;
		}
		idle_announce(w);
		if (is_stopping(w) || idle_sees_work(w)) {
			counter_add(&w->counters.raced, 1);
			idle_retract(w);
			continue;
		}
		if (was_blocked)
			counter_add(&w->counters.wakes_spurious, 1);
		was_blocked = block(w) == 0;
	}
}

void worker_run(struct worker *w)
{
	struct group *g = w->group;
	/* A wave forward and backward passes every stage within 2 n visits; other policies may take longer, and need not
	 * be waited for: idle() looks at every queue itself. */
	unsigned misses = 0, round = g->visit_set_count == 1 ? 1 : 2 * g->visit_set_count;

	g->policy->reset(w->policy_state, g->visit_set_count);
	bool found = false;

	while (!is_stopping(w)) {
		found = visit_stage(w, g->visit_set[g->policy->next(w->policy_state, found)]);
		misses = found ? 0 : misses + 1;
		if (misses >= round) {
			idle(w);
			misses = 0;
			found = false;
		}
	}
}
