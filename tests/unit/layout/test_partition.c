/* test_partition.c - parts of the stage graph, compared with an exhaustive search over all
 * partitions and all distributions of cores. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "layout/partition.h"

enum { ACCEPT, PARSE, FORM, DECODE, SCALE, BLUR, ENCODE, DISK, STATS, STAGES };

/* The nine stages over 1000 images of the reference work, in microseconds and events, as
 * measured. */
static struct partition_weights nine(void)
{
	struct partition_weights w = { .stage_count = STAGES, .stages = (1u << STAGES) - 1 };
	static const uint64_t us[STAGES] = { 800000,  60000,   150000, 18000000, 4200000,
		                             5100000, 7900000, 900000, 4000 };
	static const struct {
		unsigned from, to;
		uint64_t events;
	} edge[] = {
		{ ACCEPT, PARSE, 130 },  { PARSE, FORM, 110 },    { PARSE, ACCEPT, 20 },
		{ FORM, DECODE, 1000 },  { DECODE, SCALE, 3000 }, { SCALE, BLUR, 1000 },
		{ SCALE, ENCODE, 2000 }, { BLUR, ENCODE, 1000 },  { ENCODE, DISK, 1000 },
		{ DISK, STATS, 1000 },   { STATS, ACCEPT, 1000 },
	};

	for (unsigned i = 0; i < STAGES; i++)
		w.stage_ns[i] = us[i] * 1000;
	for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++)
		w.edge_events[edge[i].from][edge[i].to] = edge[i].events;
	return w;
}

static void assert_near(double value, double expected)
{
	assert_true(fabs(value - expected) < 1e-9);
}

/* ---- the exhaustive search, independent of partition.c ---- */

struct oracle {
	const struct partition_weights *w;
	unsigned parts, cores, stage[STAGE_COUNT_MAX], count, part[STAGE_COUNT_MAX];
	double best_imbalance;
	double allowed; /* 0: search for the best imbalance; otherwise for the best cut up to this
	                 */
	uint64_t best_cut;
	unsigned long seen;
};

/* Returns the least maximum of load per core over all distributions of the cores to the parts
 * from this one on. */
static double least_maximum(const double *load, unsigned part, unsigned parts, unsigned cores)
{
	double best = INFINITY;

	if (part + 1 == parts)
		return load[part] / cores;
	for (unsigned own = 1; own + (parts - part - 1) <= cores; own++) {
		double maximum =
			fmax(load[part] / own, least_maximum(load, part + 1, parts, cores - own));

		best = fmin(best, maximum);
	}
	return best;
}

static void judge(struct oracle *o)
{
	double load[STAGE_COUNT_MAX] = { 0 }, total = 0;
	uint64_t cut = 0;

	for (unsigned i = 0; i < o->count; i++) {
		load[o->part[i]] += (double)o->w->stage_ns[o->stage[i]];
		total += (double)o->w->stage_ns[o->stage[i]];
		for (unsigned k = 0; k < o->count; k++)
			if (o->part[i] != o->part[k])
				cut += o->w->edge_events[o->stage[i]][o->stage[k]];
	}
	double imbalance =
		total > 0 ? least_maximum(load, 0, o->parts, o->cores) / (total / o->cores) : 1;

	o->seen++;
	if (o->allowed == 0.0)
		o->best_imbalance = fmin(o->best_imbalance, imbalance);
	else if (imbalance <= o->allowed && cut < o->best_cut)
		o->best_cut = cut;
}

static void enumerate(struct oracle *o, unsigned position, unsigned used)
{
	if (position == o->count) {
		if (used == o->parts)
			judge(o);
		return;
	}
	for (unsigned k = 0; k <= used && k < o->parts; k++) {
		o->part[position] = k;
		enumerate(o, position + 1, used + (k == used ? 1 : 0));
	}
}

/* Finds the best imbalance, and the best cut of the partitions with at most that imbalance or
 * the tolerance. */
static struct oracle ask(const struct partition_weights *w, unsigned parts, unsigned cores)
{
	struct oracle o = { .w = w,
		            .parts = parts,
		            .cores = cores,
		            .best_imbalance = INFINITY,
		            .best_cut = UINT64_MAX };

	for (unsigned i = 0; i < w->stage_count; i++)
		if (w->stages >> i & 1)
			o.stage[o.count++] = i;
	enumerate(&o, 0, 0);
	o.allowed = fmax(o.best_imbalance, PARTITION_TOLERANCE) + 1e-9;
	enumerate(&o, 0, 0);
	return o;
}

/* Recounts what p reports. */
static void assert_truthful(const struct partition *p, const struct partition_weights *w,
                            unsigned cores)
{
	double total = 0, most = 0;
	uint64_t load[STAGE_COUNT_MAX] = { 0 }, cut = 0;
	unsigned dealt = 0, stages[STAGE_COUNT_MAX] = { 0 };

	for (unsigned i = 0; i < w->stage_count; i++) {
		assert_int_equal(p->part[i] != PARTITION_NONE, w->stages >> i & 1);
		if (p->part[i] == PARTITION_NONE)
			continue;
		assert_true(p->part[i] < p->part_count);
		stages[p->part[i]]++;
		load[p->part[i]] += w->stage_ns[i];
		for (unsigned k = 0; k < w->stage_count; k++)
			if (p->part[k] != PARTITION_NONE && p->part[k] != p->part[i])
				cut += w->edge_events[i][k];
	}
	for (unsigned i = 0; i < p->part_count; i++) {
		assert_true(p->cores[i] >= 1);
		assert_true(stages[i] >= 1);
		assert_int_equal(p->load_ns[i], load[i]);
		dealt += p->cores[i];
		total += (double)load[i];
		most = fmax(most, (double)load[i] / p->cores[i]);
	}
	assert_int_equal(dealt, cores);
	assert_int_equal(p->cut, cut);
	assert_near(p->imbalance, total > 0 ? most * cores / total : 1);
}

static void assert_best(const struct partition_weights *w, unsigned parts, unsigned cores)
{
	struct oracle o = ask(w, parts, cores);
	struct partition p;

	assert_int_equal(partition_build(&p, w, parts, cores, NULL), 0);
	assert_truthful(&p, w, cores);
	if (p.imbalance > o.allowed || p.cut != o.best_cut)
		print_error("%u parts on %u cores: imbalance %.6f, cut %llu; "
		            "the best of %lu partitions has %.6f, %llu\n",
		            parts, cores, p.imbalance, (unsigned long long)p.cut, o.seen / 2,
		            o.best_imbalance, (unsigned long long)o.best_cut);
	assert_true(p.imbalance <= o.allowed);
	assert_int_equal(p.cut, o.best_cut);
}

/* ---- tests ---- */

static void the_nine_stages_get_the_best_parts(void **state)
{
	struct partition_weights w = nine();

	(void)state;
	for (unsigned parts = 1; parts <= STAGES; parts++)
		for (unsigned cores = parts; cores <= 16; cores += 1 + parts)
			assert_best(&w, parts, cores);
}

static void the_stages_with_queues_get_the_best_parts(void **state)
{
	struct partition_weights w = nine();
	struct partition p;

	(void)state;
	w.stages = 1u << DECODE | 1u << SCALE | 1u << BLUR | 1u << ENCODE;
	for (unsigned parts = 1; parts <= 4; parts++)
		for (unsigned cores = parts; cores <= 64; cores += 1 + cores / 8)
			assert_best(&w, parts, cores);
	assert_int_equal(partition_build(&p, &w, 2, 2, NULL), 0);
	assert_int_equal(p.part[DECODE], 0);
	assert_int_equal(p.part[SCALE], 1);
	assert_int_equal(p.part[BLUR], 1);
	assert_int_equal(p.part[ENCODE], 1);
	assert_int_equal(p.cut, 3000);
}

static uint64_t seed = 20261121;

static uint64_t any(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

static struct partition_weights any_weights(unsigned stages)
{
	struct partition_weights w = { .stage_count = stages };

	for (unsigned i = 0; i < stages; i++) {
		if (any(8) || stage_set_count(w.stages) + stages - i <= 2)
			w.stages |= 1u << i;
		w.stage_ns[i] = any(4) ? any(UINT64_C(1) << any(48)) : 0;
		for (unsigned k = 0; k < stages; k++)
			w.edge_events[i][k] = any(3) ? 0 : any(UINT64_C(1) << any(40));
	}
	return w;
}

static void random_small_graphs_get_the_best_parts(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct partition_weights w = any_weights(2 + (unsigned)any(7));
		unsigned stages = stage_set_count(w.stages);

		for (unsigned parts = 1; parts <= stages && parts <= 4; parts++)
			assert_best(&w, parts, parts + (unsigned)any(10));
	}
}

static void random_large_graphs_get_sound_and_repeatable_parts(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		struct partition_weights w = any_weights(8 + (unsigned)any(3));
		unsigned stages = stage_set_count(w.stages), parts = 1 + (unsigned)any(stages);
		struct partition p, again;

		assert_int_equal(partition_build(&p, &w, parts, 64, NULL), 0);
		assert_truthful(&p, &w, 64);
		assert_int_equal(partition_build(&again, &w, parts, 64, NULL), 0);
		assert_memory_equal(p.part, again.part, sizeof p.part);
		assert_memory_equal(p.cores, again.cores, sizeof p.cores);
	}
}

static void clear_clusters_of_the_largest_graph_are_found(void **state)
{
	struct partition_weights w = { .stage_count = STAGE_COUNT_MAX,
		                       .stages = (1u << PARTITION_STAGES_MAX) - 1 };
	struct partition p;

	(void)state;
	for (unsigned i = 0; i < PARTITION_STAGES_MAX; i++) {
		w.stage_ns[i] = 1000 + i;
		for (unsigned k = 0; k < PARTITION_STAGES_MAX; k++)
			w.edge_events[i][k] = i % 3 == k % 3 ? 1000 : 1;
	}
	assert_int_equal(partition_build(&p, &w, 3, 11, NULL), 0);
	for (unsigned i = 0; i < PARTITION_STAGES_MAX; i++) {
		assert_int_equal(p.part[i], i % 3);
		assert_int_equal(p.cores[i % 3], i % 3 == 2 ? 3 : 4);
	}
	assert_int_equal(p.cut, 2 * (4 * 4 + 4 * 3 + 4 * 3));
}

static void stages_without_weights_are_divided(void **state)
{
	struct partition_weights w = { .stage_count = STAGES, .stages = (1u << STAGES) - 1 };
	struct partition p;

	(void)state;
	for (unsigned parts = 1; parts <= STAGES; parts++) {
		assert_int_equal(partition_build(&p, &w, parts, 16, NULL), 0);
		assert_truthful(&p, &w, 16);
	}
	w.stage_ns[DECODE] = 1; /* one stage with all of the weight */
	assert_int_equal(partition_build(&p, &w, 2, 8, NULL), 0);
	assert_truthful(&p, &w, 8);
	assert_int_equal(p.cores[p.part[DECODE]], 7);
}

static void impossible_numbers_of_parts_are_refused(void **state)
{
	static const struct {
		unsigned parts, cores;
		const char *says;
	} bad[] = {
		{ 0, 4, "expected 1 part at least" },
		{ 3, 2, "3 parts on 2 cores" },
		{ 10, 64, "10 parts of 9 stages" },
		{ 1, 0, "0 cores" },
		{ UINT32_MAX, UINT32_MAX, "parts of 9 stages" },
	};
	struct partition_weights w = nine();
	struct partition p;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char data[256];
		struct text error;

		text_init(&error, data, sizeof data);
		assert_int_equal(partition_build(&p, &w, bad[i].parts, bad[i].cores, &error),
		                 -EINVAL);
		if (!strstr(data, bad[i].says))
			print_error("\"%s\" does not say \"%s\"\n", data, bad[i].says);
		assert_non_null(strstr(data, bad[i].says));
		assert_int_equal(partition_build(&p, &w, bad[i].parts, bad[i].cores, NULL),
		                 -EINVAL);
	}
}

static void parts_are_measured_under_other_weights(void **state)
{
	struct partition_weights w = nine(), later = nine();
	struct partition p;

	(void)state;
	assert_int_equal(partition_build(&p, &w, 2, 2, NULL), 0);
	double before = p.imbalance;

	/* In the interval this stage took twice as much as before, and the others nothing. */
	later.stage_ns[DECODE] *= 3;
	later.edge_events[DECODE][SCALE] += 5;
	partition_weights_subtract(&later, &w);
	assert_int_equal(later.edge_events[DECODE][SCALE], 5);
	partition_measure(&p, &later);
	assert_true(p.imbalance > before);
	assert_near(p.imbalance, 2); /* one of two cores has all of the work */
	assert_int_equal(p.load_ns[p.part[DECODE]], 2 * w.stage_ns[DECODE]);
	assert_int_equal(p.cut, p.part[DECODE] == p.part[SCALE] ? 0 : 5);
	later.stages &= ~(1u << DECODE); /* called directly: it does not count */
	partition_measure(&p, &later);
	assert_int_equal(p.cut, 0);
	assert_near(p.imbalance, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nine_stages_get_the_best_parts),
		cmocka_unit_test(the_stages_with_queues_get_the_best_parts),
		cmocka_unit_test(random_small_graphs_get_the_best_parts),
		cmocka_unit_test(random_large_graphs_get_sound_and_repeatable_parts),
		cmocka_unit_test(clear_clusters_of_the_largest_graph_are_found),
		cmocka_unit_test(stages_without_weights_are_divided),
		cmocka_unit_test(impossible_numbers_of_parts_are_refused),
		cmocka_unit_test(parts_are_measured_under_other_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
