/*
 * graph_report.c - the workers' counters in three forms: JSON for /stats, metric families for
 * /metrics, and pictures of the graph.
 *
 * Workers write their counters without locks and continue counting, so that sums are snapshots.
 * They are made on request, in a visit.
 */
#include "graph_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "sched/core/mechanism.h"
#include "sched/core/profile.h"
#include "sched/core/resources.h"
#include "sched/core/runtime.h"
#include "sched/core/worker.h"
#include "telemetry/metrics_text.h"

static const char *stage_name(unsigned i)
{
	return graph_rows[i].class->name;
}

static bool is_edge(const struct graph *g, unsigned from, unsigned to)
{
	return stage_set_has(g->stage[from].targets, to);
}

/* ---- sums ---- */

#define SUM_MEMBER(name, help) uint64_t name;

struct stage_sum {
	STAGE_COUNTERS(SUM_MEMBER)
	STAGE_MAXIMA(SUM_MEMBER) /* of all workers */
	uint64_t visits[POLICY_COUNT], visits_empty[POLICY_COUNT];
	struct histogram_sum service, wait;
	struct perf_sum perf;
	uint64_t queued;   /* events that wait now */
	uint64_t refusals; /* graph_full_stage() */
};

struct group_sum {
	unsigned threads;
	WORKER_COUNTERS(SUM_MEMBER)
	uint64_t idle_ns;
};

static void add_worker(struct stage_sum *sum, const struct worker *w, unsigned stage)
{
	const struct stage_counters *c = &w->stage[stage];

#define SUM_STAGE(name, help) sum->name += counter_read(&c->name);
	STAGE_COUNTERS(SUM_STAGE)
#define MAX_STAGE(name, help) \
	sum->name = counter_read(&c->name) > sum->name ? counter_read(&c->name) : sum->name;
	STAGE_MAXIMA(MAX_STAGE)
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		sum->visits[i] += counter_read(&c->visits[i]);
		sum->visits_empty[i] += counter_read(&c->visits_empty[i]);
	}
	histogram_collect(&sum->service, &c->service);
	histogram_collect(&sum->wait, &c->wait);
	perf_collect(&sum->perf, &w->perf_total[stage]);
}

/* Sums a stage over all workers of all groups. *sum need not be zeroed. */
static void stage_sum_collect(struct stage_sum *sum, const struct stage *s)
{
	*sum = (struct stage_sum){ 0 };
	for (struct worker *w = NULL; (w = graph_next_worker(s->graph, w));)
		add_worker(sum, w, s->index);
	sum->queued = waiting_in_queues(s);
	sum->refusals = atomic_load_explicit(&s->refusals, memory_order_relaxed);
}

/* Sums the workers of a group. *sum need not be zeroed. */
static void group_sum_collect(struct group_sum *sum, const struct group *grp, uint64_t now_ns)
{
	*sum = (struct group_sum){ .threads = group_worker_count(grp) };
#define SUM_WORKER(name, help) sum->name += counter_read(&grp->workers[i].counters.name);
	for (unsigned i = 0; i < sum->threads; i++) {
		WORKER_COUNTERS(SUM_WORKER)
		sum->idle_ns += idle_time_ns(&grp->workers[i].counters.idle, now_ns);
	}
}

/* Returns the events that one stage has sent to another. */
static uint64_t graph_edge_events(const struct graph *g, unsigned from, unsigned to)
{
	uint64_t sum = 0;

	for (struct worker *w = NULL; (w = graph_next_worker(g, w));)
		sum += counter_read(&w->edge[from][to]);
	return sum;
}

/* Returns the time that the worker has spent in handlers of any stage. */
static uint64_t worker_busy_ns(const struct worker *w)
{
	uint64_t busy_ns = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		busy_ns += counter_read(&w->stage[i].service.sum_ns);
	return busy_ns;
}

/* ---- /stats ---- */

/* With the visit success rate (Gordon 2010, 4.3.6) and the split of the work among processors
 * (Larus & Parkes 2002, figure 4). */

struct visits {
	uint64_t all, empty;
};

/* Adds the worker's visits to the stage, under all policies. */
static void add_visits(struct visits *to, const struct worker *w, unsigned stage)
{
	const struct stage_counters *c = &w->stage[stage];

	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		uint64_t empty = counter_read(&c->visits_empty[i]);

		to->all += counter_read(&c->visits[i]) + empty;
		to->empty += empty;
	}
}

static void visits_json(struct json *j, const struct visits *v)
{
	uint64_t found = v->all - v->empty;

	json_uint(j, "visits", found);
	json_uint(j, "visits_empty", v->empty);
	if (v->all)
		json_double(j, "visit_success", (double)found / (double)v->all);
}

static void worker_stages_json(struct json *j, const struct worker *w)
{
	json_object(j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage_counters *c = &w->stage[i];
		uint64_t events = counter_read(&c->events);

		if (!events)
			continue;
		json_object(j, stage_name(i));
		json_uint(j, "events", events);
		json_ms(j, "busy_ms", counter_read(&c->service.sum_ns));
		json_object_end(j);
	}
	json_object_end(j);
}

static void worker_json(struct json *j, const struct worker *w, const struct schedule *schedule)
{
	struct visits sum = { 0 };

	for (unsigned i = 0; i < graph_row_count; i++)
		add_visits(&sum, w, i);
	json_object(j, NULL);
	if (w->group->id == GROUP_MAIN && w->index < schedule->worker_count && schedule->is_bound &&
	    schedule_group_of_worker(schedule, w->index)->mechanism->has_core_per_worker)
		json_uint(j, "core", schedule->core[w->index]);
	visits_json(j, &sum);
	json_ms(j, "busy_ms", worker_busy_ns(w));
	worker_stages_json(j, w);
	json_object_end(j);
}

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

/* A group of threads, with the visits, events and time of each worker. */
static void group_json(struct json *j, const struct group *grp, const struct schedule *schedule)
{
	struct visits visits = { 0 };
	struct group_sum sum;

	group_sum_collect(&sum, grp, clock_ns());
	for (unsigned k = 0; k < sum.threads; k++)
		for (unsigned i = 0; i < graph_row_count; i++)
			add_visits(&visits, &grp->workers[k], i);
	json_object(j, NULL);
	json_string(j, "name", grp->name);
	json_uint(j, "threads", sum.threads);
	WORKER_COUNTERS(JSON_MEMBER)
	json_uint(j, "idle_ns", sum.idle_ns);
	visits_json(j, &visits);
	json_array(j, "workers");
	for (unsigned k = 0; k < sum.threads; k++)
		worker_json(j, &grp->workers[k], schedule);
	json_array_end(j);
	json_object_end(j);
}

static void names_json(struct json *j, stage_set stages)
{
	json_array(j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++)
		if (stage_set_has(stages, i))
			json_string(j, NULL, stage_name(i));
	json_array_end(j);
}

/* The stage groups, which share the threads of the main group. */
static void stage_groups_json(struct json *j, const struct schedule *schedule)
{
	json_array(j, "stage_groups");
	for (unsigned i = 0; i < schedule->group_count; i++) {
		const struct stage_group *own = &schedule->group[i];
		stage_set stages = 0;

		for (unsigned k = 0; k < graph_row_count; k++)
			if (graph_stage_group(k) == GROUP_MAIN && schedule->stage[k].group == i)
				stages |= stage_set_of(k);
		json_object(j, NULL);
		json_string(j, "name", own->name);
		json_string(j, "policy", own->policy->name);
		json_uint(j, "threads", schedule_group_threads(schedule, i));
		names_json(j, stages);
		json_object_end(j);
	}
	json_array_end(j);
}

/* Which performance counters exist, why others are missing, and how many threads have them. */
static void perf_json(struct json *j, const struct graph *g, const struct perf_caps *caps)
{
	unsigned threads = 0;

	for (struct worker *w = NULL; (w = graph_next_worker(g, w));)
		threads += atomic_load_explicit(&w->perf.is_on, memory_order_relaxed);
	json_object(j, "counters");
	json_array(j, "available");
	for (unsigned i = 0; i < PERF_COUNT; i++)
		if (!caps->missing[i])
			json_string(j, NULL, perf_name((enum perf_id)i));
	json_array_end(j);
	json_object(j, "missing");
	for (unsigned i = 0; i < PERF_COUNT; i++) {
		struct text reason = TEXT_LOCAL(128);

		if (!caps->missing[i])
			continue;
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
	for (unsigned i = 0; i < PERF_COUNT; i++)
		if (!caps->missing[i])
			json_uint(j, perf_name((enum perf_id)i), sum->value[i]);
	json_object_end(j);
}

/* Returns the number of threads that serve the stage's queue or its instances; 0 if the stage is
 * called directly. */
static unsigned thread_count(const struct stage *s, const struct schedule *schedule)
{
	if (stage_set_has(schedule->pass_through, s->index))
		return 0;
	return s->class->poll ? schedule->io_count
	                      : worker_set_count(&schedule->stage[s->index].may_visit);
}

static void stage_json(struct json *j, const struct stage *s, const struct schedule *schedule)
{
	static const char *const kind[STAGE_KIND_COUNT] = { [STAGE_SHARED] = "shared",
		                                            [STAGE_EXCLUSIVE] = "exclusive",
		                                            [STAGE_PARTITIONED] = "partitioned" };
	struct visits visits = { 0 };
	struct stage_sum sum;

	stage_sum_collect(&sum, s);
	for (struct worker *w = NULL; (w = graph_next_worker(s->graph, w));)
		add_visits(&visits, w, s->index);
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
	visits_json(j, &visits);
	STAGE_MAXIMA(JSON_MEMBER)
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
			if (!is_edge(g, from, to))
				continue;
			json_object(j, NULL);
			json_string(j, "from", stage_name(from));
			json_string(j, "to", stage_name(to));
			json_uint(j, "events", graph_edge_events(g, from, to));
			json_object_end(j);
		}
	json_array_end(j);
}

/* ---- layouts: replicas and parts, with the work of their workers ---- */

/* Appends the number of the domain's workers, and the cores that they are bound to: one core for
 * each worker, or all cores of the domain once. */
static void workers_json(struct json *j, const struct schedule *schedule, unsigned domain)
{
	bool has_core_each = schedule->group[0].mechanism->has_core_per_worker;
	unsigned first = has_core_each ? 0 : schedule->domain_range[domain].first;
	unsigned count =
		has_core_each ? schedule->worker_count : schedule->domain_range[domain].count;

	json_uint(j, "workers", worker_set_count(&schedule->domain_workers[domain]));
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
		json_object(j, NULL);
		workers_json(j, schedule, i);
		json_uint(j, "requests", counter_read(&g->replica[i].requests));
		json_uint(j, "queued_bytes", counter_read(&g->replica[i].bytes));
		json_object_end(j);
	}
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
	json_uint(j, "repartitions", counter_read(&g->repartitions));
	json_uint(j, "edge_cut", p.cut);
	json_uint(j, "edge_events", events);
	json_double(j, "imbalance", p.imbalance);
	json_array(j, "parts");
	for (unsigned i = 0; i < p.part_count; i++) {
		stage_set stages = 0;

		for (unsigned k = 0; k < p.stage_count; k++)
			stages |= p.part[k] == i ? stage_set_of(k) : 0;
		json_object(j, NULL);
		names_json(j, stages);
		workers_json(j, schedule, i);
		json_double(j, "load_ms", (double)p.load_ns[i] / 1e6);
		json_object_end(j);
	}
	json_array_end(j);
}

static void layout_json(struct json *j, const struct graph *g, const struct schedule *schedule)
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
	layout_json(j, g, schedule);
	json_array(j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++)
		stage_json(j, &g->stage[i], schedule);
	json_array_end(j);
	edges_json(j, g);
}

/* ---- /metrics ---- */

static void stage_durations(struct metrics *m, const struct stage_sum *sum)
{
	metrics_family(m, "darkroom_stage_service_seconds", "histogram",
	               "Time in the stage's handler, by event.");
	for (unsigned i = 0; i < graph_row_count; i++)
		metrics_histogram(m, LABELS({ "stage", stage_name(i) }), &sum[i].service,
		                  METRICS_COARSE);
	metrics_family(m, "darkroom_stage_wait_seconds", "histogram",
	               "Time in the stage's queue, by event.");
	for (unsigned i = 0; i < graph_row_count; i++)
		metrics_histogram(m, LABELS({ "stage", stage_name(i) }), &sum[i].wait,
		                  METRICS_COARSE);
}

/* Leaves out policies under which the stage was never visited, except for the current one. */
static void stage_visits(struct metrics *m, const struct stage_sum *sum,
                         const struct schedule *schedule)
{
	metrics_family(m, "darkroom_stage_visits_total", "counter",
	               "Visits to the stage under the policy, by whether they found an event.");
	for (unsigned i = 0; i < graph_row_count; i++) {
		for (unsigned k = 0; policy_at(k); k++) {
			const char *policy = policy_at(k)->name;

			if (k != schedule_group_of_stage(schedule, i)->policy_index &&
			    !sum[i].visits[k] && !sum[i].visits_empty[k])
				continue;
			metrics_uint(m,
			             LABELS({ "stage", stage_name(i) }, { "policy", policy },
			                    { "found", "event" }),
			             sum[i].visits[k]);
			metrics_uint(m,
			             LABELS({ "stage", stage_name(i) }, { "policy", policy },
			                    { "found", "nothing" }),
			             sum[i].visits_empty[k]);
		}
	}
}

#define STAGE_FAMILY(member, help)                                                               \
	metrics_family(m, "darkroom_stage_" #member "_total", "counter", "By stage: " help "."); \
	for (unsigned i = 0; i < graph_row_count; i++)                                           \
		metrics_uint(m, LABELS({ "stage", stage_name(i) }), sum[i].member);

static void stage_counts(struct metrics *m, const struct stage_sum *sum)
{
	STAGE_COUNTERS(STAGE_FAMILY)
	STAGE_FAMILY(refusals, "uploads that came while it had enough")
	metrics_family(m, "darkroom_stage_queue_length", "gauge",
	               "Events that wait for the stage.");
	for (unsigned i = 0; i < graph_row_count; i++)
		metrics_uint(m, LABELS({ "stage", stage_name(i) }), sum[i].queued);
}

/* Leaves out counters that the machine does not have, which would always be 0. */
static void stage_perf(struct metrics *m, const struct stage_sum *sum, const struct perf_caps *caps)
{
	for (unsigned k = 0; caps->is_on && k < PERF_COUNT; k++) {
		enum perf_id id = (enum perf_id)k;
		bool is_time = id == PERF_task_clock_ns;
		char name[64];

		if (caps->missing[k])
			continue;
		snprintf(name, sizeof name, "darkroom_stage_%s_total",
		         is_time ? "cpu_seconds" : perf_name(id));
		metrics_family(m, name, "counter",
		               "By stage: the performance counter, while the stage was served.");
		for (unsigned i = 0; i < graph_row_count; i++) {
			const struct metrics_label *labels = LABELS({ "stage", stage_name(i) });

			if (is_time)
				metrics_seconds(m, labels, sum[i].perf.value[id]);
			else
				metrics_uint(m, labels, sum[i].perf.value[id]);
		}
	}
}

static void worker_times(struct metrics *m, struct graph *g, const char *name, const char *help,
                         bool is_idle, uint64_t now_ns)
{
	metrics_family(m, name, "counter", help);
	for (struct worker *w = NULL; (w = graph_next_worker(g, w));) {
		char index[16];

		snprintf(index, sizeof index, "%u", w->index);
		metrics_seconds(m, LABELS({ "group", w->group->name }, { "worker", index }),
		                is_idle ? idle_time_ns(&w->counters.idle, now_ns)
		                        : worker_busy_ns(w));
	}
}

#define WORKER_FAMILY(member, help)                                       \
	metrics_family(m, "darkroom_worker_" #member "_total", "counter", \
	               "By group of threads: " help ".");                 \
	for (unsigned i = 1; i < GROUP_COUNT; i++)                        \
		metrics_uint(m, LABELS({ "group", g->group[i].name }), sum[i].member);

static void worker_families(struct metrics *m, struct graph *g)
{
	struct group_sum sum[GROUP_COUNT];
	uint64_t now_ns = clock_ns();

	for (unsigned i = 1; i < GROUP_COUNT; i++)
		group_sum_collect(&sum[i], &g->group[i], now_ns);
	worker_times(m, g, "darkroom_worker_busy_seconds_total",
	             "Time that the thread has spent in handlers of stages.", false, now_ns);
	worker_times(m, g, "darkroom_worker_idle_seconds_total",
	             "Time that the thread has slept without work.", true, now_ns);
	metrics_family(m, "darkroom_workers", "gauge", "Threads, by group.");
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		metrics_uint(m, LABELS({ "group", g->group[i].name }), sum[i].threads);
	WORKER_COUNTERS(WORKER_FAMILY)
}

static void stage_group_families(struct metrics *m, const struct schedule *schedule)
{
	metrics_family(m, "darkroom_scheduler_info", "gauge",
	               "The current policy, by stage group.");
	for (unsigned i = 0; i < schedule->group_count; i++)
		metrics_uint(m,
		             LABELS({ "group", schedule->group[i].name },
		                    { "policy", schedule->group[i].policy->name }),
		             1);
	metrics_family(m, "darkroom_scheduler_threads", "gauge",
	               "Threads for image work, by stage group.");
	for (unsigned i = 0; i < schedule->group_count; i++)
		metrics_uint(m, LABELS({ "group", schedule->group[i].name }),
		             schedule_group_threads(schedule, i));
}

void graph_metrics(struct graph *g, struct metrics *m)
{
	/* Acquire: pairs with the release that published it. */
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);
	struct stage_sum *sum = pool_get(graph_row_count * sizeof *sum);

	if (!sum) {
		m->text->overflowed = true;
		return;
	}
	for (unsigned i = 0; i < graph_row_count; i++)
		stage_sum_collect(&sum[i], &g->stage[i]);
	stage_group_families(m, schedule);
	scarcity_metrics(&g->scarcity, m);
	stage_durations(m, sum);
	stage_visits(m, sum, schedule);
	stage_counts(m, sum);
	stage_perf(m, sum, &schedule->perf);
	worker_families(m, g);
	pool_put(sum);
}

/* ---- the graph as a picture ---- */

/* In SVG, stages are boxes around an empty middle, clockwise from the upper left. So the next stage
 * of the pipeline is always beside, above or below, and the lines between others bend inwards. */

#define BOX_WIDTH 190
#define BOX_HEIGHT 84
#define STEP_X 270
#define STEP_Y 230
#define DRAW_MARGIN 40

/* Returns the width of a line: 1, and one more for each factor of four. */
static double width_of(uint64_t events)
{
	return 1 + log2((double)events + 1) / 2;
}

static double mean_ms(const struct stage_sum *sum)
{
	return sum->service.count ? (double)sum->service.sum_ns / (double)sum->service.count / 1e6
	                          : 0;
}

void graph_draw_dot(const struct graph *g, struct text *to)
{
	struct stage_sum sum;

	text_puts(to, "digraph darkroom {\n\tnode [shape=box, fontname=\"sans-serif\"];\n"
	              "\tedge [fontname=\"sans-serif\", fontsize=10];\n");
	for (unsigned i = 0; i < graph_row_count; i++) {
		stage_sum_collect(&sum, &g->stage[i]);
		text_printf(to,
		            "\t%s [label=\"%s\\nqueued %" PRIu64 "\\n%.3f ms, %" PRIu64
		            " events\"];\n",
		            stage_name(i), stage_name(i), sum.queued, mean_ms(&sum), sum.events);
	}
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < graph_row_count; k++) {
			uint64_t events = graph_edge_events(g, i, k);

			if (is_edge(g, i, k))
				text_printf(to,
				            "\t%s -> %s [label=%" PRIu64 ", penwidth=%.1f%s];\n",
				            stage_name(i), stage_name(k), events, width_of(events),
				            events ? "" : ", style=dotted");
		}
	text_puts(to, "}\n");
}

struct point {
	double x, y;
};

static unsigned column_count(void)
{
	return graph_row_count > 5 ? (unsigned)(graph_row_count - 1) / 2 : 2;
}

/* Returns the middle of a stage's box. */
static struct point place(unsigned stage)
{
	unsigned last = column_count(), column = stage, row = 0;

	if (stage >= last) { /* at the right, below, or the last one at the left */
		row = stage > last && stage <= 2 * last ? 2 : 1;
		column = stage == last ? last - 1 : row == 2 ? 2 * last - stage : 0;
	}
	return (struct point){ DRAW_MARGIN + BOX_WIDTH / 2.0 + column * STEP_X,
		               DRAW_MARGIN + BOX_HEIGHT / 2.0 + row * STEP_Y };
}

/* Returns where the line from the middle of a box towards another point leaves the box. */
static struct point border(struct point box, struct point towards)
{
	double dx = towards.x - box.x, dy = towards.y - box.y;
	double by_x = dx != 0 ? BOX_WIDTH / 2.0 / fabs(dx) : INFINITY;
	double by_y = dy != 0 ? BOX_HEIGHT / 2.0 / fabs(dy) : INFINITY;
	double part = by_x < by_y ? by_x : by_y;

	return (struct point){ box.x + dx * part, box.y + dy * part };
}

/* Returns the point towards which an edge bends: to the left of its direction, so that edges of
 * both directions stand apart, and to the middle if boxes are between its ends. */
static struct point edge_bend(struct point a, struct point b)
{
	double dx = b.x - a.x, dy = b.y - a.y, length = hypot(dx, dy), bend = 18 / length + 0.1;
	struct point via = { (a.x + b.x) / 2, (a.y + b.y) / 2 };

	if (length > STEP_X)
		via = (struct point){ DRAW_MARGIN +
			                      (BOX_WIDTH + (column_count() - 1) * STEP_X) / 2.0,
			              DRAW_MARGIN + BOX_HEIGHT / 2.0 + STEP_Y };
	return (struct point){ via.x + dy * bend, via.y - dx * bend };
}

/* Appends the line, or its label, which stands above all lines. */
static void edge_svg(const struct graph *g, unsigned from, unsigned to, bool is_label,
                     struct text *t)
{
	uint64_t events = graph_edge_events(g, from, to);
	struct point a = place(from), b = place(to), bend = edge_bend(a, b);

	a = border(a, bend);
	b = border(b, bend);
	if (is_label && events)
		text_printf(t, "<text x=\"%.0f\" y=\"%.0f\">%" PRIu64 "</text>\n",
		            (a.x + 2 * bend.x + b.x) / 4, (a.y + 2 * bend.y + b.y) / 4 + 4, events);
	if (is_label)
		return;
	text_printf(t,
	            "<path d=\"M%.0f %.0fQ%.0f %.0f %.0f %.0f\" fill=\"none\" stroke=\"#447\" "
	            "stroke-width=\"%.1f\"%s "
	            "marker-end=\"url(#arrow)\"><title>%s to %s: %" PRIu64 "</title></path>\n",
	            a.x, a.y, bend.x, bend.y, b.x, b.y, width_of(events),
	            events ? "" : " stroke-dasharray=\"2 5\"", stage_name(from), stage_name(to),
	            events);
}

static void edges_svg(const struct graph *g, bool is_label, struct text *t)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < graph_row_count; k++)
			if (is_edge(g, i, k) && i != k)
				edge_svg(g, i, k, is_label, t);
}

static void stage_svg(const struct graph *g, unsigned i, struct text *t)
{
	struct point p = place(i);
	struct stage_sum sum;

	stage_sum_collect(&sum, &g->stage[i]);
	text_printf(
		t,
		"<g><rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#f3f5f8\" stroke=\"#667\"/>"
		"<text font-weight=\"bold\" x=\"%.0f\" y=\"%.0f\">%s</text>"
		"<text x=\"%.0f\" y=\"%.0f\">queued %" PRIu64 "</text>"
		"<text x=\"%.0f\" y=\"%.0f\">%.3f ms, %" PRIu64 " events</text></g>\n",
		p.x - BOX_WIDTH / 2.0, p.y - BOX_HEIGHT / 2.0, BOX_WIDTH, BOX_HEIGHT, p.x, p.y - 16,
		stage_name(i), p.x, p.y + 6, sum.queued, p.x, p.y + 26, mean_ms(&sum), sum.events);
}

void graph_draw_svg(const struct graph *g, struct text *to)
{
	text_printf(to,
	            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n"
	            "<title>The stages of darkroomd</title>\n"
	            "<marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" "
	            "markerUnits=\"userSpaceOnUse\" markerWidth=\"12\" markerHeight=\"12\" "
	            "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#447\"/>"
	            "</marker>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	            "<g font-family=\"sans-serif\" font-size=\"14\" text-anchor=\"middle\">\n",
	            2 * DRAW_MARGIN + ((int)column_count() - 1) * STEP_X + BOX_WIDTH,
	            2 * DRAW_MARGIN + 2 * STEP_Y + BOX_HEIGHT);
	edges_svg(g, false, to);
	for (unsigned i = 0; i < graph_row_count; i++)
		stage_svg(g, i, to);
	text_puts(to, "<g font-size=\"11\" fill=\"#447\" stroke=\"#fff\" stroke-width=\"4\" "
	              "paint-order=\"stroke\">\n");
	edges_svg(g, true, to);
	text_puts(to, "</g>\n</g>\n</svg>\n");
}
