/*
 * dbr.c - policy dbr: drum, buffer, rope (Gordon 2010, 3.1.3).
 *
 * The stage with the slowest service rate is visited first, and again after every visit that found
 * work. The stages are sorted again when a full round has found nothing. They are also sorted when
 * there are new rates, because under load every round finds something.
 */
#include "policy.h"

#include "base/check.h"

#define DBR_STAGES_MAX 64

struct dbr {
	const struct stage_rates *rates;
	unsigned n;
	unsigned at;     /* next position in order[]; n: the round has ended */
	uint32_t number; /* of the order */
	unsigned char order[DBR_STAGES_MAX];
};

static_assert(sizeof(struct dbr) <= POLICY_STATE_MAX, "a worker keeps the state");

/* Returns the rate to sort by. A stage without a measurement comes last. */
static double rate_of(const struct dbr *d, unsigned stage)
{
	double rate = d->rates[stage].service_per_s;

	return rate > 0 ? rate : 1e300;
}

/* Sorts by insertion, which is stable: equal rates stay in pipeline order. There are few stages. */
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
	d->number++;
}

static void dbr_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	struct dbr *d = state;

	assert(n > 0 && n <= DBR_STAGES_MAX);
	d->n = n;
	d->rates = rates;
	d->number = 0;
	sort(d);
}

static unsigned dbr_next(void *state, struct policy_in in)
{
	struct dbr *d = state;

	if (in.has_new_rates || (!in.found && d->at == d->n))
		sort(d);
	else if (in.found)
		d->at = 0;
	return d->order[d->at++];
}

static void dbr_order(const void *state, struct policy_order *out)
{
	const struct dbr *d = state;

	*out = (struct policy_order){ .position = d->order, .length = d->n, .number = d->number };
}

const struct policy_class policy_dbr = {
	.name = "dbr",
	.help = "one thread per core; the slowest stage first, and again after every hit",
	.mechanism = POLICY_POLL,
	.wants_rates = true,
	.reset = dbr_reset,
	.next = dbr_next,
	.order = dbr_order,
};
