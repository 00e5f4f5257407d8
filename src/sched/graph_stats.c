/*
 * graph_stats.c - the sums of counter_sums.h as JSON.
 *
 * Runs in a visit, while workers continue counting.
 */
#include "graph_stats.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "counter_sums.h"
#include "layout_report.h"
#include "resources.h"
#include "runtime.h"
#include "visit_stats.h"

#define JSON_MEMBER(name, help) json_uint(j, #name, sum.name);

static double ms(double ns)
{
	return ns / 1e6;
}

static void durations_json(struct json *j, const char *name, const struct histogram_sum *h)
{
	json_object(j, name);
	json_uint(j, "count", h->count);
	json_double(j, "sum_ms", ms((double)h->sum_ns));
	json_double(j, "mean_ms", h->count ? ms((double)h->sum_ns / (double)h->count) : 0);
	json_double(j, "p50_ms", ms(histogram_quantile(h, 0.5)));
	json_double(j, "p90_ms", ms(histogram_quantile(h, 0.9)));
	json_double(j, "p99_ms", ms(histogram_quantile(h, 0.99)));
	json_object_end(j);
}

static void group_json(struct json *j, const struct group *grp, const struct schedule *schedule)
{
	struct group_sum sum;

	group_sum_collect(&sum, grp, clock_ns());
	json_object(j, NULL);
	json_string(j, "name", grp->name);
	json_uint(j, "threads", sum.threads);
	WORKER_COUNTERS(JSON_MEMBER)
	json_uint(j, "idle_ns", sum.idle_ns);
	visit_stats_group_json(j, grp, schedule);
	json_object_end(j);
}

/* The stage groups, which share the threads of the main group. */
static void stage_groups_json(struct json *j, const struct schedule *schedule)
{
	json_array(j, "stage_groups");
	for (unsigned i = 0; i < schedule->group_count; i++) {
		const struct stage_group *own = &schedule->group[i];

		json_object(j, NULL);
		json_string(j, "name", own->name);
		json_string(j, "policy", own->policy->name);
		json_uint(j, "threads", schedule_group_threads(schedule, i));
		json_array(j, "stages");
		for (unsigned k = 0; k < graph_row_count; k++)
			if (graph_stage_group(k) == GROUP_MAIN && schedule->stage[k].group == i)
				json_string(j, NULL, graph_rows[k].class->name);
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

/* Which performance counters exist, why others are missing, and how many threads have them. */
static void perf_json(struct json *j, const struct graph *g, const struct perf_caps *caps)
{
	unsigned threads = 0;

	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			threads += atomic_load_explicit(&g->group[i].workers[k].perf.is_on,
			                                memory_order_relaxed);
	}
	json_object(j, "counters");
	json_array(j, "available");
	for (unsigned i = 0; i < PERF_COUNT; i++)
		if (!caps->missing[i])
			json_string(j, NULL, perf_name((enum perf_id)i));
	json_array_end(j);
	json_object(j, "missing");
	for (unsigned i = 0; i < PERF_COUNT; i++) {
		char data[128];
		struct text reason;

		if (!caps->missing[i])
			continue;
		text_init(&reason, data, sizeof data);
		perf_print_reason(caps, (enum perf_id)i, &reason);
		json_string(j, perf_name((enum perf_id)i), reason.data);
	}
	json_object_end(j);
	json_bool(j, "user_only", caps->is_user_only);
	json_uint(j, "threads", threads);
	json_object_end(j);
}

/* The counters of a stage, without those that the machine does not have. */
static void stage_perf_json(struct json *j, const struct perf_caps *caps,
                            const struct perf_sum *sum)
{
	json_object(j, "counters");
	for (unsigned i = 0; i < PERF_COUNT; i++) {
		enum perf_id id = (enum perf_id)i;

		if (!caps->missing[i])
			json_uint(j, perf_name(id), sum->value[id]);
	}
	json_object_end(j);
}

/* Returns the number of threads that serve the stage's queue or its instances; 0 if the stage is
 * called directly. */
static unsigned thread_count(const struct stage *s, const struct schedule *schedule)
{
	if (stage_set_has(schedule->pass_through, s->index))
		return 0;
	return s->class->poll ? schedule->io_count
	                      : (unsigned)__builtin_popcountll(schedule->stage[s->index].may_visit);
}

static void stage_json(struct json *j, const struct stage *s, const struct schedule *schedule)
{
	static const char *const kind[STAGE_KIND_COUNT] = { [STAGE_SHARED] = "shared",
		                                            [STAGE_EXCLUSIVE] = "exclusive",
		                                            [STAGE_PARTITIONED] = "partitioned" };
	struct stage_sum sum;

	stage_sum_collect(&sum, s);
	json_object(j, NULL);
	json_string(j, "name", s->class->name);
	json_string(j, "kind", kind[s->kind]);
	json_string(j, "group",
	            s->group->id == GROUP_MAIN ? schedule_group_of_stage(schedule, s->index)->name
	                                       : s->group->name);
	json_bool(j, "pass_through", stage_set_has(schedule->pass_through, s->index));
	json_uint(j, "threads", thread_count(s, schedule));
	if (schedule->stage[s->index].service == SERVICE_N_GATED && !s->class->poll)
		json_uint(j, "batch", schedule->stage[s->index].events_max);
	json_uint(j, "queued", sum.queued);
	json_uint(j, "refusals", sum.refusals);
	STAGE_COUNTERS(JSON_MEMBER)
	visit_stats_stage_json(j, &sum);
	durations_json(j, "service", &sum.service);
	durations_json(j, "wait", &sum.wait);
	resources_stage_json(j, s);
	if (schedule->perf.is_on)
		stage_perf_json(j, &schedule->perf, &sum.perf);
	json_object_end(j);
}

/* What the stages have sent to each other, by all workers. */
static void edges_json(struct json *j, const struct graph *g)
{
	json_array(j, "edges");
	for (unsigned from = 0; from < graph_row_count; from++)
		for (unsigned to = 0; to < graph_row_count; to++) {
			if (!stage_set_has(g->stage[from].targets, to))
				continue;
			json_object(j, NULL);
			json_string(j, "from", graph_rows[from].class->name);
			json_string(j, "to", graph_rows[to].class->name);
			json_uint(j, "events", graph_edge_events(g, from, to));
			json_object_end(j);
		}
	json_array_end(j);
}

void graph_stats_json(struct graph *g, struct json *j)
{
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);

	json_object(j, "scheduler");
	json_string(j, "policy", schedule->group[0].policy->name);
	json_bool(j, "dynamic", schedule->is_dynamic);
	scarcity_json(&g->scarcity, j);
	json_array(j, "policies");
	for (size_t i = 0; policy_at(i); i++)
		json_string(j, NULL, policy_at(i)->name);
	json_array_end(j);
	json_array(j, "groups");
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		if (group_worker_count(&g->group[i]))
			group_json(j, &g->group[i], schedule);
	json_array_end(j);
	stage_groups_json(j, schedule);
	if (schedule->perf.is_on)
		perf_json(j, g, &schedule->perf);
	json_object_end(j);
	layout_report_json(j, g, schedule);
	json_array(j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++)
		stage_json(j, &g->stage[i], schedule);
	json_array_end(j);
	edges_json(j, g);
}
