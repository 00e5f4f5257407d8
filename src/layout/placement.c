/*
 * placement.c - the assignment of cores to workers.
 *
 * Cores form a row in which neighbours share most. Every domain gets a piece of the row, and the
 * order of domains is chosen so that pieces end where caches, nodes and packages end. Pure.
 */
#include "placement.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

struct request {
	const struct topology *topology;
	unsigned core_count, worker_count, domain_count;
	const unsigned *workers; /* by domain */
};

/* The boundary between two neighbours in the row. Each step weighs more than all boundaries of
 * the smaller steps together, of which there are fewer than PLACEMENT_WORKERS_MAX. */
#define STEP_BITS 8
enum step { STEP_CORE, STEP_L2, STEP_L3, STEP_NODE, STEP_PACKAGE, STEP_MACHINE };

static bool is_shared(unsigned a, unsigned b)
{
	return a == b && a != TOPOLOGY_NONE;
}

static enum step step_between(const struct topology *t, unsigned left, unsigned right)
{
	const struct topology_core *a = topology_core(t, left), *b = topology_core(t, right);

	if (left == right)
		return STEP_CORE;
	if (is_shared(a->l2, b->l2))
		return STEP_L2;
	if (is_shared(a->l3, b->l3))
		return STEP_L3;
	if (a->node == b->node && a->package == b->package)
		return STEP_NODE;
	return a->package == b->package ? STEP_PACKAGE : STEP_MACHINE;
}

/* Returns the worth of a boundary between domains at this place. */
static uint64_t worth(const struct topology *t, unsigned left, unsigned right)
{
	enum step step = step_between(t, left, right);

	return step ? UINT64_C(1) << (STEP_BITS * step) : 0;
}

static_assert(PLACEMENT_WORKERS_MAX <= 1 << STEP_BITS, "no step is outweighed by smaller ones");

/* Returns the first core of the piece that follows workers_before workers. */
static unsigned first_core(const struct request *r, unsigned workers_before)
{
	return workers_before * r->core_count / r->worker_count;
}

/* Returns the worth of all boundaries between domains in this order. */
static uint64_t worth_of_order(const struct request *r, const unsigned *order)
{
	uint64_t sum = 0;
	unsigned before = 0;

	for (unsigned i = 0; i + 1 < r->domain_count; i++) {
		before += r->workers[order[i]];
		unsigned right = first_core(r, before);
		unsigned left =
			r->worker_count < r->core_count ? right - 1 : first_core(r, before - 1);

		sum += worth(r->topology, left, right);
	}
	return sum;
}

static void swap(unsigned *a, unsigned *b)
{
	unsigned was = *a;

	*a = *b;
	*b = was;
}

/* Exchanges domains of different size in the row while that helps. */
static void choose_order(const struct request *r, unsigned *order)
{
	uint64_t best;
	bool has_changed = true;

	for (unsigned i = 0; i < r->domain_count; i++)
		order[i] = i;
	best = worth_of_order(r, order);
	while (has_changed) {
		has_changed = false;
		for (unsigned i = 0; i < r->domain_count; i++)
			for (unsigned k = i + 1; k < r->domain_count; k++) {
				if (r->workers[order[i]] == r->workers[order[k]])
					continue;
				swap(&order[i], &order[k]);
				uint64_t now = worth_of_order(r, order);

				if (now > best) {
					best = now;
					has_changed = true;
				} else {
					swap(&order[i], &order[k]);
				}
			}
	}
}

/* Returns the first of `count` cores in [first, end) that cross the fewest boundaries. For a
 * piece with more cores than workers. */
static unsigned most_compact(const struct topology *t, unsigned first, unsigned end, unsigned count)
{
	uint64_t least = UINT64_MAX;
	unsigned best = first;

	for (unsigned start = first; start + count <= end; start++) {
		uint64_t crossed = 0;

		for (unsigned i = start + 1; i < start + count; i++)
			crossed += worth(t, i - 1, i);
		if (crossed < least) {
			least = crossed;
			best = start;
		}
	}
	return best;
}

/* Returns the index of the domain's first worker. */
static unsigned first_worker(const struct request *r, unsigned domain)
{
	unsigned first = 0;

	while (domain > 0)
		first += r->workers[--domain];
	return first;
}

/* Places the domain's workers. `before` workers precede them in the row. */
static void place_domain(struct placement *p, const struct request *r, unsigned domain,
                         unsigned before)
{
	struct placement_worker *to = &p->worker[first_worker(r, domain)];
	unsigned count = r->workers[domain], first = first_core(r, before);
	bool is_spacious = r->worker_count < r->core_count;

	if (is_spacious)
		first = most_compact(r->topology, first, first_core(r, before + count), count);
	for (unsigned i = 0; i < count; i++) {
		unsigned core = is_spacious ? first + i : first_core(r, before + i);

		to[i] = (struct placement_worker){ .core = core, .domain = domain };
	}
	p->domain[domain] = (struct topology_range){ first, to[count - 1].core - first + 1 };
}

int placement_domains(struct placement *p, const struct topology *t, const unsigned *workers,
                      unsigned domain_count)
{
	struct request r = { .topology = t,
		             .core_count = topology_core_count(t),
		             .domain_count = domain_count,
		             .workers = workers };
	unsigned order[PLACEMENT_WORKERS_MAX], before = 0;

	*p = (struct placement){ 0 };
	if (domain_count == 0 || domain_count > PLACEMENT_WORKERS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < domain_count; i++) {
		if (workers[i] == 0 || workers[i] > PLACEMENT_WORKERS_MAX)
			return -EINVAL;
		r.worker_count += workers[i];
	}
	if (r.worker_count > PLACEMENT_WORKERS_MAX)
		return -EINVAL;
	choose_order(&r, order);
	for (unsigned i = 0; i < domain_count; i++) {
		place_domain(p, &r, order[i], before);
		before += workers[order[i]];
	}
	p->worker_count = r.worker_count;
	p->domain_count = domain_count;
	return 0;
}
