/*
 * dbr.c - drum, buffer, rope: the stage with the slowest service rate first; back to it after every
 * visit that found work; sorted anew when a full round has found nothing (Gordon 2010, 3.1.3).
 */
#include "policy.h"

#include "base/check.h"

#define DBR_STAGES_MAX 64

struct dbr {
	const struct stage_rates *rates;
	unsigned n;
	unsigned at; /* next position in order[]; n: a round is over */
	unsigned char order[DBR_STAGES_MAX];
};

static_assert(sizeof(struct dbr) <= POLICY_STATE_MAX, "a worker keeps the state");

/* A stage that has not been measured is not known to be slow: it comes last. */
static double rate_of(const struct dbr *d, unsigned stage)
{
	double rate = d->rates[stage].service_per_s;

	return rate > 0 ? rate : 1e300;
}

/* Insertion sort: stable, so that equal rates stay in pipeline order; a handful of stages. */
static void sort(struct dbr *d)
{
	for (unsigned i = 0; i < d->n; i++) {
		unsigned k = i;

		while (k > 0 && rate_of(d, d->order[k - 1]) > rate_of(d, i)) {
			d->order[k] = d->order[k - 1];
			k--;
		}
		d->order[k] = (unsigned char)i;
	}
	d->at = 0;
}

static void dbr_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	struct dbr *d = state;

	assert(n > 0 && n <= DBR_STAGES_MAX);
	d->n = n;
	d->rates = rates;
	sort(d);
}

static unsigned dbr_next(void *state, struct policy_in in)
{
	struct dbr *d = state;

	if (in.found)
		d->at = 0;
	else if (d->at == d->n)
		sort(d);
	return d->order[d->at++];
}

const struct policy_class policy_dbr = {
	.name = "dbr",
	.help = "one thread per core; the slowest stage first, and again after every hit",
	.mechanism = POLICY_POLL,
	.reset = dbr_reset,
	.next = dbr_next,
};
