/*
 * partition.c - the division of the stage graph into parts: all partitions are examined.
 *
 * 9 stages have at most 7770 partitions into the same number of parts, which takes 1 ms; 11 stages
 * have 246730. Pure.
 */
#include "partition.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"

#define EVENTS_MIN 100  /* fewer events are not significant */
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

/* ---- all partitions ---- */

struct search {
	const struct partition_weights *weights;
	unsigned cores, stage_count;
	unsigned stage[STAGE_COUNT_MAX]; /* stages that are in parts */
	struct partition at, *best;
};

/* Puts the stages from `position` on into one of the parts in use, or into a new one. So parts are
 * numbered by their first stages, and no partition is examined twice. */
static void search(struct search *s, unsigned position, unsigned used)
{
	unsigned parts = s->at.part_count, left = s->stage_count - position;

	if (used + left < parts)
		return;
	if (left == 0) {
		/* With the best distribution of cores for these parts. */
		add_up(&s->at, s->weights);
		deal_cores(&s->at, s->cores);
		set_imbalance(&s->at);
		if (!s->best->part_count || is_better(&s->at, s->best))
			*s->best = s->at;
		return;
	}
	for (unsigned k = 0; k <= used && k < parts; k++) {
		s->at.part[s->stage[position]] = k;
		search(s, position + 1, k == used ? used + 1 : used);
	}
}

/* ---- building ---- */

static int check(const struct partition_weights *w, unsigned parts, unsigned cores,
                 struct text *error)
{
	unsigned stages = stage_set_count(w->stages);

	if (parts >= 1 && parts <= stages && parts <= cores)
		return 0;
	if (parts > stages)
		return text_refuse(
			error,
			"%u parts of %u stages that have queues: expected a stage for each part",
			parts, stages);
	return text_refuse(error,
	                   "%u parts on %u cores: expected 1 part at least, and a core for each",
	                   parts, cores);
}

int partition_build(struct partition *p, const struct partition_weights *w, unsigned parts,
                    unsigned cores, struct text *error)
{
	struct search s = { .weights = w,
		            .cores = cores,
		            .at = { .stage_count = w->stage_count, .part_count = parts },
		            .best = p };
	int err = check(w, parts, cores, error);

	if (err)
		return err;
	*p = (struct partition){ .part_count = 0 };
	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++) {
		s.at.part[i] = PARTITION_NONE;
		if (i < w->stage_count && stage_set_has(w->stages, i))
			s.stage[s.stage_count++] = i;
	}
	assert(s.stage_count <= PARTITION_STAGES_MAX);
	search(&s, 0, 0);
	return 0;
}

bool partition_weights_suffice(const struct partition_weights *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < w->stage_count; i++)
		if (stage_set_has(w->stages, i))
			n += w->stage_events[i];
	return n >= EVENTS_MIN;
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
