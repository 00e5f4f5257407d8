/*
 * drain.c - finish what was begun before more is begun: forward through the stages that have work,
 * from the first to the last, and again. Never a stage that has none, as Color does not visit idle
 * stages either (Gordon 2010, 3.1.4).
 *
 * The visit to the first stage begins one image, those to the others take all there is
 * (schedule.c): so the few steps of one image that are of a kind follow one another (a cohort,
 * Larus & Parkes 2002), on the core that has its pixels, and no second image waits half made. From
 * the last stage back, as SRPT has it (3.1.2), each step would be a visit of its own: the response
 * times were the same, the CPU time per image 2 % more.
 *
 * With it go stacks per worker, from which others steal: that is the group's business.
 */
#include "policy.h"

#include "base/check.h"

struct drain {
	unsigned n, at; /* at: the stage visited last */
};

static void drain_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	struct drain *d = state;

	(void)rates;
	assert(n > 0 && n <= 64);
	d->n = n;
	d->at = n - 1;
}

static unsigned drain_next(void *state, struct policy_in in)
{
	struct drain *d = state;
	uint64_t ahead = in.ready & ~(UINT64_MAX >> (63 - d->at));

	if (ahead)
		d->at = (unsigned)__builtin_ctzll(ahead);
	else
		d->at = in.ready ? (unsigned)__builtin_ctzll(in.ready) : d->n - 1;
	return d->at;
}

const struct policy_class policy_drain = {
	.name = "drain",
	.help = "one thread per core; forward over the stages that have work; an image stays on its core",
	.mechanism = POLICY_POLL,
	.wants_ready = true,
	.reset = drain_reset,
	.next = drain_next,
};
