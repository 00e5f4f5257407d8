/*
 * srpt.c - policy srpt: from the end of the pipeline backward, and back to the end after every
 * visit that found work (Gordon 2010, 3.1.2). Images that are nearly done are finished first.
 */
#include "policy.h"

#include "base/check.h"

struct srpt {
	unsigned n;
	unsigned at;
};

static_assert(sizeof(struct srpt) <= POLICY_STATE_MAX, "a worker keeps the state");

static void srpt_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	struct srpt *s = state;

	(void)rates;
	assert(n > 0);
	s->n = n;
	s->at = 0;
}

static unsigned srpt_next(void *state, struct policy_in in)
{
	struct srpt *s = state;

	s->at = in.found || s->at == 0 ? s->n - 1 : s->at - 1;
	return s->at;
}

const struct policy_class policy_srpt = {
	.name = "srpt",
	.help = "one thread per core; from the end of the pipeline backward, "
		"and again from the end after every hit",
	.mechanism = POLICY_POLL,
	.reset = srpt_reset,
	.next = srpt_next,
};
