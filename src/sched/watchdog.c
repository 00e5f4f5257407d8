/*
 * watchdog.c - the detection of stuck workers, from outside.
 *
 * A worker only counts its steps, without a clock. The main thread checks the count several times
 * within the limit, and so knows how long one step takes. A sleeping worker is known by its bit
 * (idle.h). Main thread.
 */
#include "watchdog.h"

#include "runtime.h"

static bool is_asleep(const struct worker *w)
{
	/* Relaxed: a snapshot. For a worker that is being woken, the time restarted at the
	 * previous check. */
	return atomic_load_explicit(&w->group->sleepers, memory_order_relaxed) >> w->index & 1;
}

bool watchdog_is_stuck(struct worker *w, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t progress = counter_read(&w->progress);

	/* Disk threads may wait for the disk. A restart would not make it faster, and would lose
	 * the images that wait. */
	if (w->group->id == GROUP_DISK)
		return false;
	if (progress != w->seen_progress || w->seen_ns == 0 || is_asleep(w)) {
		w->seen_progress = progress;
		w->seen_ns = now_ns;
	}
	return now_ns - w->seen_ns > limit_ns;
}
