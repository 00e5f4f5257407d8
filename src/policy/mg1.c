/*
 * mg1.c - policy mg1: stages are visited in proportion to their load, by a polling table.
 *
 * The table is that of efficient visit orders (Gordon 2010, 3.1.1; Boxma, Levy & Weststrate 1993).
 * A worker rebuilds its table when it has reached the end. It also does so when there are new
 * rates, because under load a table lasts for seconds.
 */
#include <math.h>

#include "base/check.h"
#include "policy.h"

#define MG1_TABLE_MAX 144 /* slots; golden-ratio placement needs a Fibonacci number */
#define LOAD_MIN 0.005
#define LOAD_MAX 0.99
#define STAGES_MAX 64
#define GOLDEN 0.6180339887498949 /* 1 / phi */

struct mg1 {
	const struct stage_rates *rates;
	unsigned n;
	unsigned at;
	uint32_t number; /* of the table */
	unsigned char table[MG1_TABLE_MAX];
};

static_assert(sizeof(struct mg1) <= POLICY_STATE_MAX, "a worker keeps the state");

/* Returns the load of a stage, rho: arrival rate / service rate, per core, within bounds. */
static double mg1_load(const struct stage_rates *r)
{
	double load = r->service_per_s > 0
	                      ? r->arrival_per_s / r->service_per_s / (r->cores ? r->cores : 1)
	                      : 0;

	return load < LOAD_MIN ? LOAD_MIN : load > LOAD_MAX ? LOAD_MAX : load;
}

/* Returns the weight that the number of visits is proportional to: sqrt(rho (1 - rho)) with
 * exhaustive service, sqrt(rho (1 + rho)) with gated service (Boxma, Levy & Weststrate 1993). */
static double mg1_weight(const struct stage_rates *r)
{
	double load = mg1_load(r);

	return sqrt(load * (r->is_gated ? 1 + load : 1 - load));
}

/* Sets the number of visits of each stage; their sum is slots. */
static void visit_counts(unsigned *count, unsigned slots, unsigned n, const double *weight)
{
	double sum = 0;
	unsigned used = 0, most = 0;

	for (unsigned i = 0; i < n; i++)
		sum += weight[i];
	for (unsigned i = 0; i < n; i++) {
		/* Slightly more than the product, so that 0.2 * 35 is 7 and not 6. */
		count[i] = (unsigned)floor(weight[i] / sum * slots + 1e-9);
		if (count[i] == 0)
			count[i] = 1;
		if (count[i] > count[most])
			most = i;
		used += count[i];
	}
	/* Stages raised to one visit may have made the sum too large. */
	for (; used > slots; used--) {
		for (unsigned i = 0; i < n; i++)
			if (count[i] > count[most])
				most = i;
		count[most]--;
	}
	count[most] += slots - used;
}

/* Fills table[slots] with stage numbers. Stage i gets floor(weight_i / sum * slots) visits, at
 * least one, spread by the golden ratio. Remaining slots go to the most frequent stage. n <= slots
 * <= MG1_TABLE_MAX.
 */
static void mg1_table(unsigned char *table, unsigned slots, unsigned n, const double *weight)
{
	unsigned count[STAGES_MAX];
	unsigned k = 0;

	assert(n > 0 && n <= STAGES_MAX && n <= slots && slots <= MG1_TABLE_MAX);
	visit_counts(count, slots, n, weight);
	for (unsigned stage = 0; stage < n; stage++)
		for (unsigned i = 0; i < count[stage]; i++, k++) {
			/* The slot of point k is its rank among all points frac(k / phi) on the
			 * unit circle. */
			double point = fmod(k * GOLDEN, 1);
			unsigned rank = 0;

			for (unsigned other = 0; other < slots; other++)
				rank += fmod(other * GOLDEN, 1) < point;
			table[rank] = (unsigned char)stage;
		}
}

static void rebuild(struct mg1 *m)
{
	double weight[STAGES_MAX];

	for (unsigned i = 0; i < m->n; i++)
		weight[i] = mg1_weight(&m->rates[i]);
	mg1_table(m->table, MG1_TABLE_MAX, m->n, weight);
	m->at = 0;
	m->number++;
}

static void mg1_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	struct mg1 *m = state;

	m->rates = rates;
	m->n = n;
	m->number = 0;
	rebuild(m);
}

static unsigned mg1_next(void *state, struct policy_in in)
{
	struct mg1 *m = state;

	if (m->at == MG1_TABLE_MAX || in.has_new_rates)
		rebuild(m);
	return m->table[m->at++];
}

static void mg1_order(const void *state, struct policy_order *out)
{
	const struct mg1 *m = state;

	*out = (struct policy_order){ .position = m->table,
		                      .length = MG1_TABLE_MAX,
		                      .number = m->number };
}

const struct policy_class policy_mg1 = {
	.name = "mg1",
	.help = "one thread per core; stages visited in proportion to their load, "
		"by a polling table",
	.mechanism = POLICY_POLL,
	.wants_rates = true,
	.reset = mg1_reset,
	.next = mg1_next,
	.order = mg1_order,
};
