/*
 * layout_report.c - replicas and parts in words and in JSON.
 *
 * Their work is taken from the counters of their workers.
 */
#include "layout_report.h"

#include "affinity.h"
#include "base/json.h"
#include "base/text.h"
#include "controllers.h"
#include "log/log.h"
#include "mechanism.h"
#include "replicas.h"
#include "runtime.h"
#include "stage_costs.h"

/* Appends the number of the domain's workers, and the cores that they are bound to: one core for
 * each worker, or all cores of the domain once. */
static void workers_json(struct json *j, const struct schedule *schedule, unsigned domain)
{
	bool has_core_each = schedule->group[0].mechanism->has_core_per_worker;
	unsigned first = has_core_each ? 0 : schedule->domain_range[domain].first;
	unsigned count =
		has_core_each ? schedule->worker_count : schedule->domain_range[domain].count;

	json_uint(j, "workers", (unsigned)__builtin_popcountll(schedule->domain_workers[domain]));
	json_array(j, "cores");
	for (unsigned i = 0; i < count && schedule->is_bound; i++) {
		if (!has_core_each)
			json_uint(j, NULL, first + i);
		else if (schedule->domain[i] == domain)
			json_uint(j, NULL, schedule->core[i]);
	}
	json_array_end(j);
}

static void replicas_json(struct json *j, const struct graph *g, const struct schedule *schedule)
{
	json_string(j, "distribution", schedule->is_least_loaded ? "least-loaded" : "round-robin");
	json_bool(j, "steal", schedule->steals_across_replicas);
	json_array(j, "replicas");
	for (unsigned i = 0; i < schedule->domain_count; i++) {
		struct replica_load load = replicas_load(g->replicas, i);

		json_object(j, NULL);
		workers_json(j, schedule, i);
		json_uint(j, "requests", load.requests);
		json_uint(j, "queued_bytes", load.bytes);
		json_object_end(j);
	}
	json_array_end(j);
}

static void stages_json(struct json *j, const struct partition *p, unsigned part)
{
	json_array(j, "stages");
	for (unsigned i = 0; i < p->stage_count; i++)
		if (p->part[i] == part)
			json_string(j, NULL, graph_rows[i].class->name);
	json_array_end(j);
}

/* Appends the parts, measured by the work of the stages since the start. */
static void parts_json(struct json *j, const struct graph *g, const struct schedule *schedule)
{
	struct partition p = schedule->partition;
	struct partition_weights w;
	uint64_t events = 0;

	stage_costs_collect(&w, g);
	partition_measure(&p, &w);
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < graph_row_count; k++)
			if (stage_set_has(w.stages, i) && stage_set_has(w.stages, k))
				events += w.edge_events[i][k];
	json_bool(j, "online", schedule->is_online);
	json_uint(j, "repartitions", controllers_repartitions(g->controllers));
	json_uint(j, "edge_cut", p.cut);
	json_uint(j, "edge_events", events);
	json_double(j, "imbalance", p.imbalance);
	json_array(j, "parts");
	for (unsigned i = 0; i < p.part_count; i++) {
		json_object(j, NULL);
		stages_json(j, &p, i);
		workers_json(j, schedule, i);
		json_double(j, "load_ms", (double)p.load_ns[i] / 1e6);
		json_object_end(j);
	}
	json_array_end(j);
}

void layout_report_json(struct json *j, const struct graph *g, const struct schedule *schedule)
{
	static const char *const mode[] = { [CONF_LAYOUT_SHARED] = "shared",
		                            [CONF_LAYOUT_REPLICATE] = "replicate",
		                            [CONF_LAYOUT_PARTITION] = "partition" };

	json_object(j, "layout");
	json_string(j, "mode", mode[schedule->layout]);
	if (schedule->layout == CONF_LAYOUT_REPLICATE)
		replicas_json(j, g, schedule);
	else if (schedule->layout == CONF_LAYOUT_PARTITION)
		parts_json(j, g, schedule);
	json_object_end(j);
}

void layout_report_log(const struct schedule *schedule)
{
	const struct partition *p = &schedule->partition;
	char data[1024];
	struct text t;

	if (schedule->layout != CONF_LAYOUT_PARTITION)
		return;
	text_init(&t, data, sizeof data);
	for (unsigned part = 0; part < p->part_count; part++) {
		text_printf(&t, "%s%u %s for", part ? "; " : "", p->cores[part],
		            p->cores[part] == 1 ? "core" : "cores");
		for (unsigned i = 0; i < p->stage_count; i++)
			if (p->part[i] == part)
				text_printf(&t, " %s", graph_rows[i].class->name);
	}
	log_notice("layout partition: %s; imbalance %.2f, %llu events cut", data, p->imbalance,
	           (unsigned long long)p->cut);
}
