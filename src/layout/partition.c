/*
 * partition.c - the division of the stage graph into parts.
 *
 * METIS bisects the graph with several seeds, and each result is improved by moving and exchanging
 * stages. METIS alone often misses the best parts, because it takes the sizes of parts as given.
 * Here the sizes follow from the contents, and in a small graph one stage may have half of the
 * weight. Of random graphs with 9 stages METIS alone found the best parts for 27 %, with
 * improvement for 79 %. All partitions of 9 stages can be examined in 1 ms, of 11 stages in 25 ms.
 * Small graphs are therefore also searched completely.
 *
 * METIS prints to standard output if it is asked for several parts at once and one of them comes
 * out empty. So each half is bisected separately. Main thread.
 */
#include "partition.h"

#include <errno.h>
#include <metis.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

/* Seeds of METIS's random choices. Fixed, so that the same weights give the same parts. */
#define SEEDS 8
#define WEIGHT_TOTAL 1000000 /* sum of METIS's vertex or edge weights, which have 32 bits */
/* Largest number of stages whose partitions are searched completely: at most 7770 with any
 * number of parts. */
#define SEARCH_MAX 9
#define DIFFERENCE 1e-9 /* imbalances that differ by less are equal */

/* ---- quality of a partition ---- */

/* Gives each next core to the part with the most load per core. No other distribution has a
 * smaller maximum. */
static void deal_cores(struct partition *p, unsigned cores)
{
	for (unsigned i = 0; i < p->part_count; i++)
		p->cores[i] = 1;
	for (unsigned dealt = p->part_count; dealt < cores; dealt++) {
		unsigned most = 0;

		for (unsigned i = 1; i < p->part_count; i++)
			if ((double)p->load_ns[i] * p->cores[most] >
			    (double)p->load_ns[most] * p->cores[i])
				most = i;
		p->cores[most]++;
	}
}

static void add_up(struct partition *p, const struct partition_weights *w)
{
	memset(p->load_ns, 0, sizeof p->load_ns);
	p->cut = 0;
	for (unsigned i = 0; i < p->stage_count; i++) {
		if (p->part[i] == PARTITION_NONE || !stage_set_has(w->stages, i))
			continue;
		p->load_ns[p->part[i]] += w->stage_ns[i];
		for (unsigned k = 0; k < p->stage_count; k++)
			if (p->part[k] != PARTITION_NONE && stage_set_has(w->stages, k) &&
			    p->part[k] != p->part[i])
				p->cut += w->edge_events[i][k];
	}
}

static void set_imbalance(struct partition *p)
{
	double most = 0, total = 0;
	unsigned cores = 0;

	for (unsigned i = 0; i < p->part_count; i++) {
		double per_core = (double)p->load_ns[i] / p->cores[i];

		most = per_core > most ? per_core : most;
		total += (double)p->load_ns[i];
		cores += p->cores[i];
	}
	p->imbalance = total > 0 ? most * cores / total : 1;
}

void partition_measure(struct partition *p, const struct partition_weights *w)
{
	add_up(p, w);
	set_imbalance(p);
}

/* Measures the parts with the best distribution of cores for them. */
static void evaluate(struct partition *p, const struct partition_weights *w, unsigned cores)
{
	add_up(p, w);
	deal_cores(p, cores);
	set_imbalance(p);
}

static double at_least(double value, double least)
{
	return value > least ? value : least;
}

static bool is_better(const struct partition *a, const struct partition *b)
{
	double excess = at_least(a->imbalance, PARTITION_TOLERANCE) -
	                at_least(b->imbalance, PARTITION_TOLERANCE);

	if (excess < -DIFFERENCE || excess > DIFFERENCE)
		return excess < 0;
	if (a->cut != b->cut)
		return a->cut < b->cut;
	return a->imbalance < b->imbalance - DIFFERENCE;
}

/* ---- METIS ---- */

/* The stages to bisect, in METIS's form. */
struct metis_graph {
	idx_t count;
	unsigned stage[STAGE_COUNT_MAX]; /* by vertex */
	idx_t first[STAGE_COUNT_MAX + 1];
	idx_t neighbour[STAGE_COUNT_MAX * STAGE_COUNT_MAX];
	idx_t edge_weight[STAGE_COUNT_MAX * STAGE_COUNT_MAX];
	idx_t weight[STAGE_COUNT_MAX];
};

/* Returns a weight for METIS, >= 1: it refuses edges of weight 0 and misplaces such vertices. */
static idx_t scaled(uint64_t weight, double total)
{
	return 1 + (idx_t)((double)weight / total * WEIGHT_TOTAL);
}

static void make_graph(struct metis_graph *g, const struct partition_weights *w, stage_set stages)
{
	double load = 1, events = 1;
	idx_t edges = 0;

	g->count = 0;
	for (unsigned i = 0; i < w->stage_count; i++) {
		if (!stage_set_has(stages, i))
			continue;
		g->stage[g->count++] = i;
		load += (double)w->stage_ns[i];
		for (unsigned k = 0; k < w->stage_count; k++)
			events += stage_set_has(stages, k) ? (double)w->edge_events[i][k] : 0;
	}
	for (idx_t i = 0; i < g->count; i++) {
		unsigned from = g->stage[i];

		g->first[i] = edges;
		g->weight[i] = scaled(w->stage_ns[from], load);
		for (idx_t k = 0; k < g->count; k++) {
			uint64_t passed = w->edge_events[from][g->stage[k]] +
			                  w->edge_events[g->stage[k]][from];

			if (i == k || passed == 0)
				continue;
			g->neighbour[edges] = k;
			g->edge_weight[edges++] = scaled(passed, events);
		}
	}
	g->first[g->count] = edges;
}

/* Returns half with at least as many stages as it has parts: the lightest of the other half are
 * moved to it. */
static stage_set fill_up(stage_set half, stage_set other, unsigned parts,
                         const struct partition_weights *w)
{
	while (stage_set_count(half) < parts) {
		unsigned lightest = STAGE_COUNT_MAX;

		for (unsigned i = 0; i < w->stage_count; i++)
			if (stage_set_has(other, i) &&
			    (lightest == STAGE_COUNT_MAX || w->stage_ns[i] < w->stage_ns[lightest]))
				lightest = i;
		assert(lightest < STAGE_COUNT_MAX);
		half |= stage_set_of(lightest);
		other &= ~half;
	}
	return half;
}

/* Blocks SIGTERM. METIS handles it as an error of its own, so that one from the service manager
 * would be lost. */
static void hold_termination(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, before);
}

/* Returns the stages of the first half, which should have `share` of the load; 0 if METIS
 * failed. */
static stage_set ask_metis(const struct partition_weights *w, stage_set stages, float share,
                           int seed)
{
	struct metis_graph g;
	idx_t constraints = 1, halves = 2, cut, half[STAGE_COUNT_MAX], options[METIS_NOPTIONS];
	real_t shares[2] = { share, 1 - share }, tolerance = (real_t)PARTITION_TOLERANCE;
	stage_set first = 0;
	sigset_t mask;

	make_graph(&g, w, stages);
	METIS_SetDefaultOptions(options);
	options[METIS_OPTION_SEED] = seed;
	hold_termination(&mask);
	int status = METIS_PartGraphRecursive(&g.count, &constraints, g.first, g.neighbour,
	                                      g.weight, NULL, g.edge_weight, &halves, shares,
	                                      &tolerance, options, &cut, half);

	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (status != METIS_OK)
		return 0;
	for (idx_t i = 0; i < g.count; i++)
		if (half[i] == 0)
			first |= stage_set_of(g.stage[i]);
	return first;
}

/* Divides the stages into the parts [first, end), in proportion to p->cores. */
static void bisect(struct partition *p, const struct partition_weights *w, stage_set stages,
                   unsigned first, unsigned end, int seed)
{
	unsigned middle = first + (end - first) / 2;
	float left = 0, right = 0;

	if (end - first == 1) {
		for (unsigned i = 0; i < w->stage_count; i++)
			if (stage_set_has(stages, i))
				p->part[i] = first;
		return;
	}
	for (unsigned i = first; i < end; i++)
		*(i < middle ? &left : &right) += (float)p->cores[i];
	stage_set half = ask_metis(w, stages, left / (left + right), seed);

	half = fill_up(half, stages & ~half, middle - first, w);
	half = stages & ~fill_up(stages & ~half, half, end - middle, w);
	bisect(p, w, half, first, middle, seed);
	bisect(p, w, stages & ~half, middle, end, seed);
}

/* ---- improvement ---- */

static bool try_change(struct partition *p, const struct partition_weights *w, unsigned cores,
                       const struct partition *changed)
{
	struct partition next = *changed;

	evaluate(&next, w, cores);
	if (!is_better(&next, p))
		return false;
	*p = next;
	return true;
}

static unsigned stages_of(const struct partition *p, unsigned part)
{
	unsigned count = 0;

	for (unsigned i = 0; i < p->stage_count; i++)
		count += p->part[i] == part;
	return count;
}

/* Moves the stage to another part, or exchanges it with another stage, if that is better. */
static bool improve_stage(struct partition *p, const struct partition_weights *w, unsigned cores,
                          unsigned stage)
{
	bool has_improved = false;

	for (unsigned to = 0; to < p->part_count; to++) {
		struct partition next = *p;

		if (to == p->part[stage] || stages_of(p, p->part[stage]) == 1)
			continue;
		next.part[stage] = to;
		has_improved |= try_change(p, w, cores, &next);
	}
	for (unsigned other = stage + 1; other < p->stage_count; other++) {
		struct partition next = *p;

		if (p->part[other] == PARTITION_NONE || p->part[other] == p->part[stage])
			continue;
		next.part[stage] = p->part[other];
		next.part[other] = p->part[stage];
		has_improved |= try_change(p, w, cores, &next);
	}
	return has_improved;
}

/* Improves all stages until nothing helps. Each step is better than all before, so the loop
 * ends. */
static void improve(struct partition *p, const struct partition_weights *w, unsigned cores)
{
	bool has_improved = true;

	while (has_improved) {
		has_improved = false;
		for (unsigned i = 0; i < p->stage_count; i++)
			if (p->part[i] != PARTITION_NONE)
				has_improved |= improve_stage(p, w, cores, i);
	}
}

/* ---- all partitions ---- */

struct search {
	const struct partition_weights *weights;
	unsigned cores, stage_count;
	unsigned stage[STAGE_COUNT_MAX]; /* stages that are in parts */
	struct partition at, *best;
};

/* Puts the stages from `position` on into one of the parts in use, or into a new one. */
static void search_from(struct search *s, unsigned position, unsigned used)
{
	unsigned parts = s->at.part_count, left = s->stage_count - position;

	if (used + left < parts)
		return;
	if (left == 0) {
		try_change(s->best, s->weights, s->cores, &s->at);
		return;
	}
	for (unsigned k = 0; k <= used && k < parts; k++) {
		s->at.part[s->stage[position]] = k;
		search_from(s, position + 1, k == used ? used + 1 : used);
	}
}

static void search(struct partition *best, const struct partition_weights *w, unsigned cores)
{
	struct search s = { .weights = w, .cores = cores, .at = *best, .best = best };

	for (unsigned i = 0; i < w->stage_count; i++)
		if (stage_set_has(w->stages, i))
			s.stage[s.stage_count++] = i;
	if (s.stage_count <= SEARCH_MAX)
		search_from(&s, 0, 0);
}

/* ---- building ---- */

static int check(const struct partition_weights *w, unsigned parts, unsigned cores,
                 struct text *error)
{
	unsigned stages = stage_set_count(w->stages);

	if (parts >= 1 && parts <= stages && parts <= cores)
		return 0;
	if (error && parts > stages)
		text_printf(
			error,
			"%u parts of %u stages that have queues: expected a stage for each part",
			parts, stages);
	else if (error)
		text_printf(error,
		            "%u parts on %u cores: expected 1 part at least, and a core for each",
		            parts, cores);
	return -EINVAL;
}

/* Numbers parts in the order of their first stages. */
static void number_parts(struct partition *p)
{
	unsigned number[STAGE_COUNT_MAX], next = 0;

	for (unsigned i = 0; i < p->part_count; i++)
		number[i] = PARTITION_NONE;
	for (unsigned i = 0; i < p->stage_count; i++) {
		if (p->part[i] == PARTITION_NONE)
			continue;
		if (number[p->part[i]] == PARTITION_NONE)
			number[p->part[i]] = next++;
		p->part[i] = number[p->part[i]];
	}
	assert(next == p->part_count);
}

int partition_build(struct partition *p, const struct partition_weights *w, unsigned parts,
                    unsigned cores, struct text *error)
{
	struct partition start = { .stage_count = w->stage_count, .part_count = parts };
	int err = check(w, parts, cores, error);

	*p = start;
	if (err)
		return err;
	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++) {
		start.part[i] = PARTITION_NONE;
		start.cores[i] = 1; /* initially, parts of equal size */
	}
	for (int seed = 0; seed < SEEDS; seed++) {
		bisect(&start, w, w->stages, 0, parts, seed);
		evaluate(&start, w, cores); /* the next sizes follow from this result */
		struct partition improved = start;

		improve(&improved, w, cores);
		if (seed == 0 || is_better(&improved, p))
			*p = improved;
	}
	search(p, w, cores);
	number_parts(p);
	evaluate(p, w, cores);
	return 0;
}

void partition_weights_subtract(struct partition_weights *w, const struct partition_weights *before)
{
	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++) {
		w->stage_ns[i] -= before->stage_ns[i];
		w->stage_events[i] -= before->stage_events[i];
		for (unsigned k = 0; k < STAGE_COUNT_MAX; k++)
			w->edge_events[i][k] -= before->edge_events[i][k];
	}
}
