/* topology_report.c - the machine and the layout in words, for people who decide on a
 * configuration. */
#include "topology_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/text.h"
#include "layout/topology.h"
#include "sched/worker.h"

#define QUEUE_CAPACITY 2 /* of a graph in which nothing will be queued */

static const char *plural(unsigned count)
{
	return count == 1 ? "" : "s";
}

/* ---- the machine ---- */

/* "-" for what there is not, or is not known. */
static void print_number(struct text *to, const char *what, unsigned number)
{
	if (number == TOPOLOGY_NONE)
		text_printf(to, "  %s -", what);
	else
		text_printf(to, "  %s %u", what, number);
}

static bool is_same_place(const struct topology_core *a, const struct topology_core *b)
{
	return a->package == b->package && a->node == b->node && a->l3 == b->l3;
}

/* Cores [first, end) that domain all but what is below the L3 cache. */
static void print_cores(struct text *to, const struct topology *t, unsigned first, unsigned end)
{
	const struct topology_core *core = topology_core(t, first);
	unsigned threads = 0;

	for (unsigned i = first; i < end; i++)
		threads += topology_core(t, i)->thread_count;
	print_number(to, "package", core->package);
	print_number(to, "node", core->node);
	print_number(to, "L3", core->l3);
	if (end - first == 1)
		text_printf(to, ": core %u, CPU %u", first, core->cpu);
	else
		text_printf(to, ": cores %u-%u, CPUs from %u", first, end - 1, core->cpu);
	text_printf(to, ", %u hardware thread%s\n", threads, plural(threads));
}

static void print_machine(struct text *to, const struct topology *t)
{
	unsigned cores = topology_core_count(t), quota = topology_cpu_quota(t);

	text_printf(to, "%s: %u core%s that may be used",
	            topology_is_here(t) ? "This machine" : "Another machine (nothing is bound)",
	            cores, plural(cores));
	if (quota < cores)
		text_printf(
			to,
			", but CPU time of no more than %u (quota of the control group): nothing is bound",
			quota);
	text_puts(to, "\n");
	for (unsigned first = 0, end; first < cores; first = end) {
		end = first + 1;
		while (end < cores && is_same_place(topology_core(t, first), topology_core(t, end)))
			end++;
		print_cores(to, t, first, end);
	}
}

/* ---- domains ---- */

static double per_cent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static uint64_t whole_load(const struct partition *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->part_count; i++)
		sum += p->load_ns[i];
	return sum;
}

static void print_range(struct text *to, struct topology_range cores)
{
	if (cores.count == 1)
		text_printf(to, "core %u", cores.first);
	else
		text_printf(to, "cores %u-%u", cores.first, cores.first + cores.count - 1);
}

/* How many there are of the domain's; of pools, which have them in common, on which cores. */
static void print_count(struct text *to, const struct schedule *s, unsigned domain)
{
	unsigned workers = (unsigned)__builtin_popcountll(s->domain_workers[domain]);

	text_printf(to, "%u worker%s", workers, plural(workers));
	if (s->policy->mechanism != POLICY_POOL || !s->is_bound)
		return;
	text_puts(to, " on ");
	print_range(to, s->domain_range[domain]);
}

static void print_part(struct text *to, const struct graph *g, const struct schedule *s,
                       unsigned part)
{
	const struct partition *p = &s->partition;
	const char *before = "";

	text_printf(to, "\nPart %u, ", part);
	print_count(to, s, part);
	if (g->has_profile)
		text_printf(to, ", %.1f %% of the work", per_cent(p->load_ns[part], whole_load(p)));
	text_puts(to, ": ");
	for (unsigned i = 0; i < p->stage_count; i++) {
		if (p->part[i] != part)
			continue;
		text_printf(to, "%s%s", before, graph_rows[i].class->name);
		if (g->has_profile)
			text_printf(to, " (%.1f %%)",
			            per_cent(g->weights.stage_ns[i], whole_load(p)));
		before = ", ";
	}
	text_puts(to, "\n");
}

static void print_replica(struct text *to, const struct schedule *s, unsigned replica)
{
	text_printf(to, "\nReplica %u, ", replica);
	print_count(to, s, replica);
	text_puts(to, ":\n");
}

static void print_share(struct text *to, const struct graph *g, const struct schedule *s,
                        unsigned domain)
{
	if (s->layout == CONF_LAYOUT_PARTITION)
		print_part(to, g, s, domain);
	else if (s->layout == CONF_LAYOUT_REPLICATE)
		print_replica(to, s, domain);
	else
		text_printf(to, "\n%u worker%s:\n", s->worker_count, plural(s->worker_count));
}

/* What the worker visits, of stages that have queues. */
static void print_stages(struct text *to, const struct schedule *s, unsigned worker)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if ((s->visit_set[worker] & ~s->pass_through) >> i & 1)
			text_printf(to, " %s", graph_rows[i].class->name);
}

static void print_worker(struct text *to, const struct topology *t, const struct schedule *s,
                         unsigned worker)
{
	text_printf(to, "  worker %-3u", worker);
	if (s->is_bound && s->policy->mechanism != POLICY_POOL) {
		const struct topology_core *core = topology_core(t, s->core[worker]);

		text_printf(to, "  core %u  CPU %u", s->core[worker], core->cpu);
		print_number(to, "L2", core->l2);
		print_number(to, "L3", core->l3);
		print_number(to, "node", core->node);
		print_number(to, "package", core->package);
	} else {
		text_puts(to, "  ");
		if (s->is_bound)
			print_range(to, s->domain_range[s->domain[worker]]);
		else
			text_puts(to, "any core");
		text_puts(to, ", for");
		print_stages(to, s, worker);
	}
	text_puts(to, "\n");
}

static void print_workers(struct text *to, const struct graph *g, const struct schedule *s)
{
	for (unsigned domain = 0; domain < s->domain_count; domain++) {
		print_share(to, g, s, domain);
		for (unsigned i = 0; i < s->worker_count; i++)
			if (s->domain[i] == domain)
				print_worker(to, g->topology, s, i);
	}
}

/* ---- the layout ---- */

/* Events that pass along edges between stages in parts, whether in one part or not. */
static uint64_t all_events(const struct partition_weights *w, const struct partition *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->stage_count; i++)
		for (unsigned k = 0; k < p->stage_count; k++)
			if (i != k && p->part[i] != PARTITION_NONE && p->part[k] != PARTITION_NONE)
				sum += w->edge_events[i][k];
	return sum;
}

static void print_balance(struct text *to, const struct graph *g, const struct schedule *s)
{
	const struct partition *p = &s->partition;

	if (!g->has_profile) {
		text_puts(to, "Without a profile all stages count alike: the parts are guessed.\n");
		return;
	}
	uint64_t all = all_events(&g->weights, p);

	text_printf(
		to,
		"Imbalance %.2f: the part with most work per worker has %.0f %% more than there is on average.\n",
		p->imbalance, 100 * (p->imbalance - 1));
	text_printf(to,
	            "Edge cut %" PRIu64 " of %" PRIu64
	            " events (%.1f %%) that go from stage to stage.\n",
	            p->cut, all, per_cent(p->cut, all));
}

/* The layout, and what it means for the policy. */
static const char *meaning(const struct schedule *s)
{
	static const char *const cores[] = { [CONF_LAYOUT_SHARED] =
		                                     "shared: every worker visits every stage",
		                             [CONF_LAYOUT_REPLICATE] = "replicate",
		                             [CONF_LAYOUT_PARTITION] = "partition" };
	static const char *const pools[] = {
		[CONF_LAYOUT_SHARED] = "shared: a pool of workers for each stage",
		[CONF_LAYOUT_REPLICATE] =
			"replicate: a pool of workers for each stage of each replica",
		[CONF_LAYOUT_PARTITION] =
			"partition: a pool of workers for each stage, on its part's cores"
	};

	if (s->thread_per_connection)
		return "shared: every thread calls every stage";
	return (s->policy->mechanism == POLICY_POOL ? pools : cores)[s->layout];
}

static void print_others(struct text *to, const struct schedule *s)
{
	text_printf(to, "\nNot bound to cores: %u thread%s for connections, %u for files\n",
	            s->port_count, plural(s->port_count), s->disk_count);
}

static void print_layout(struct text *to, const struct conf *conf, const struct graph *g,
                         const struct schedule *s)
{
	text_printf(to, "\nPolicy %s, layout %s\n", s->policy->name, meaning(s));
	if (s->layout == CONF_LAYOUT_REPLICATE)
		text_printf(to, "Requests are distributed %s%s.\n",
		            s->is_least_loaded ? "to the least loaded" : "in turns",
		            s->steals_across_replicas
		                    ? ", and workers without work do that of other replicas"
		                    : "");
	if (s->layout == CONF_LAYOUT_PARTITION) {
		if (g->has_profile)
			text_printf(to, "Weights are those of %s.\n", conf->layout.profile);
		print_balance(to, g, s);
	}
	print_workers(to, g, s);
	print_others(to, s);
}

int topology_report_print(const struct conf *conf, struct text *to)
{
	struct graph *g;
	int err = graph_new(&g, conf, NULL, QUEUE_CAPACITY, QUEUE_CAPACITY);

	if (err)
		return err;
	print_machine(to, g->topology);
	print_layout(to, conf, g, atomic_load_explicit(&g->schedule, memory_order_relaxed));
	graph_free(g);
	return 0;
}
