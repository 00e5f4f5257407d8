/*
 * drain.c - finish what was begun: the last stage of the pipeline that has an event; never a stage that has none.
 *
 * SRPT's order (Gordon 2010, 3.1.2), found by looking at which queues are not empty instead of by visiting them, as
 * Color does not visit idle stages either (3.1.4). With it go stacks per worker, from which others steal, and the smallest
 * job first in front of the first stage: those are the group's and the queues' business, see schedule.c.
 */
#include "policy.h"

#include "../check.h"

struct drain {
	unsigned n;
};

static void drain_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	struct drain *d = state;

	(void)rates;
	assert(n > 0 && n <= 64);
	d->n = n;
}

static unsigned drain_next(void *state, struct policy_in in)
{
	const struct drain *d = state;

	return in.ready ? 63 - (unsigned)__builtin_clzll(in.ready) : d->n - 1;
}

const struct policy_class policy_drain = {
	.name = "drain",
	.help = "one thread per core; the last stage that has work; an image stays on its core",
	.mechanism = POLICY_POLL,
	.wants_ready = true,
	.reset = drain_reset,
	.next = drain_next,
};
