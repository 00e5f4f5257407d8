/*
 * cohort.c - policy cohort: a wavefront, forward over the pipeline and then backward (Larus &
 * Parkes 2002, 4.1; Gordon 2010, 2.4.2).
 *
 * Four stages are visited in the order 0 1 2 3 3 2 1 0, repeatedly. The stage at the turn is
 * visited twice, because the output of the first visit may have come back to it.
 */
#include "policy.h"

#include "base/check.h"

struct cohort {
	unsigned n;
	unsigned at; /* position in the wave of 2 n visits */
};

static_assert(sizeof(struct cohort) <= POLICY_STATE_MAX, "a worker keeps the state");

static void cohort_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	struct cohort *c = state;

	(void)rates;
	assert(n > 0);
	c->n = n;
	c->at = 2 * n - 1;
}

static unsigned cohort_next(void *state, struct policy_in in)
{
	struct cohort *c = state;

	(void)in;
	c->at = (c->at + 1) % (2 * c->n);
	return c->at < c->n ? c->at : 2 * c->n - 1 - c->at;
}

const struct policy_class policy_cohort = {
	.name = "cohort",
	.help = "one thread per core; a wave forward and backward over the stages",
	.mechanism = POLICY_POLL,
	.reset = cohort_reset,
	.next = cohort_next,
};
