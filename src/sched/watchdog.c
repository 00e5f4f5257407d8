/*
 * watchdog.c - whether a worker is stuck, seen from outside: the watchdog's question. Main thread.
 *
 * The worker counts its steps and nothing more, without a clock. Whoever watches looks at the count
 * a few times within the time that it gives, and so knows how long the same step takes. A sleeping
 * worker is known by its bit (idle.h).
 */
#include "worker.h"

static bool is_asleep(const struct worker *w)
{
	/* Relaxed: a moment's view. Whoever is woken just now has begun to be watched anew at the
	 * look before. */
	return atomic_load_explicit(&w->group->sleepers, memory_order_relaxed) >> w->index & 1;
}

bool watchdog_is_stuck(struct worker *w, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t progress = counter_read(&w->progress);

	/* Disk threads wait for the disk for as long as it takes: a restart would not make it
	 * faster, and lose what waits. */
	if (w->group->id == GROUP_DISK)
		return false;
	if (progress != w->seen_progress || w->seen_ns == 0 || is_asleep(w)) {
		w->seen_progress = progress;
		w->seen_ns = now_ns;
	}
	return now_ns - w->seen_ns > limit_ns;
}
