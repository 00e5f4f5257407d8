/*
 * graph_metrics.c - the sums of counter_sums.h as metric families.
 *
 * Runs in a visit, while workers continue counting.
 */
#include "graph_metrics.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/text.h"
#include "counter_sums.h"
#include "runtime.h"
#include "scarcity.h"
#include "telemetry/metrics_text.h"

static const char *stage_name(unsigned i)
{
	return graph_rows[i].class->name;
}

/* ---- stages ---- */

static void stage_durations(struct text *t, const struct stage_sum *sum)
{
	metrics_family(t, "darkroom_stage_service_seconds", "histogram",
	               "Time in the stage's handler, by event.");
	for (unsigned i = 0; i < graph_row_count; i++)
		metrics_histogram(t, "darkroom_stage_service_seconds",
		                  LABELS({ "stage", stage_name(i) }), &sum[i].service,
		                  METRICS_COARSE);
	metrics_family(t, "darkroom_stage_wait_seconds", "histogram",
	               "Time in the stage's queue, by event.");
	for (unsigned i = 0; i < graph_row_count; i++)
		metrics_histogram(t, "darkroom_stage_wait_seconds",
		                  LABELS({ "stage", stage_name(i) }), &sum[i].wait, METRICS_COARSE);
}

/* Leaves out policies under which the stage was never visited, except for the current one. */
static void stage_visits(struct text *t, const struct stage_sum *sum,
                         const struct schedule *schedule)
{
	metrics_family(t, "darkroom_stage_visits_total", "counter",
	               "Visits to the stage under the policy, by whether they found an event.");
	for (unsigned i = 0; i < graph_row_count; i++) {
		for (unsigned k = 0; policy_at(k); k++) {
			const char *policy = policy_at(k)->name;

			if (k != schedule_group_of_stage(schedule, i)->policy_index &&
			    !sum[i].visits[k] && !sum[i].visits_empty[k])
				continue;
			metrics_uint(t, "darkroom_stage_visits_total",
			             LABELS({ "stage", stage_name(i) }, { "policy", policy },
			                    { "found", "event" }),
			             sum[i].visits[k]);
			metrics_uint(t, "darkroom_stage_visits_total",
			             LABELS({ "stage", stage_name(i) }, { "policy", policy },
			                    { "found", "nothing" }),
			             sum[i].visits_empty[k]);
		}
	}
}

#define STAGE_FAMILY(member, help)                                                               \
	metrics_family(t, "darkroom_stage_" #member "_total", "counter", "By stage: " help "."); \
	for (unsigned i = 0; i < graph_row_count; i++)                                           \
		metrics_uint(t, "darkroom_stage_" #member "_total",                              \
		             LABELS({ "stage", stage_name(i) }), sum[i].member);

static void stage_counts(struct text *t, const struct stage_sum *sum)
{
	STAGE_COUNTERS(STAGE_FAMILY)
	metrics_family(t, "darkroom_stage_refusals_total", "counter",
	               "Uploads that came while the stage had enough.");
	for (unsigned i = 0; i < graph_row_count; i++)
		metrics_uint(t, "darkroom_stage_refusals_total", LABELS({ "stage", stage_name(i) }),
		             sum[i].refusals);
	metrics_family(t, "darkroom_stage_queue_length", "gauge",
	               "Events that wait for the stage.");
	for (unsigned i = 0; i < graph_row_count; i++)
		metrics_uint(t, "darkroom_stage_queue_length", LABELS({ "stage", stage_name(i) }),
		             sum[i].queued);
}

/* Leaves out counters that the machine does not have, which would always be 0. */
static void stage_perf(struct text *t, const struct stage_sum *sum, const struct perf_caps *caps)
{
	for (unsigned k = 0; caps->is_on && k < PERF_COUNT; k++) {
		enum perf_id id = (enum perf_id)k;
		bool is_time = id == PERF_task_clock_ns;
		char name[64];

		if (caps->missing[k])
			continue;
		snprintf(name, sizeof name, "darkroom_stage_%s_total",
		         is_time ? "cpu_seconds" : perf_name(id));
		metrics_family(t, name, "counter",
		               "By stage: the performance counter, while the stage was served.");
		for (unsigned i = 0; i < graph_row_count; i++)
			(is_time ? metrics_seconds : metrics_uint)(
				t, name, LABELS({ "stage", stage_name(i) }), sum[i].perf.value[id]);
	}
}

/* ---- workers ---- */

static void worker_times(struct text *t, struct graph *g, const char *name, const char *help,
                         bool is_idle, uint64_t now_ns)
{
	metrics_family(t, name, "counter", help);
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		const struct group *grp = &g->group[i];
		unsigned count = group_worker_count(grp);

		for (unsigned k = 0; k < count; k++) {
			const struct worker *w = &grp->workers[k];
			char index[16];

			snprintf(index, sizeof index, "%u", k);
			metrics_seconds(t, name,
			                LABELS({ "group", grp->name }, { "worker", index }),
			                is_idle ? idle_time_ns(&w->counters.idle, now_ns)
			                        : worker_busy_ns(w));
		}
	}
}

#define WORKER_FAMILY(member, help)                                       \
	metrics_family(t, "darkroom_worker_" #member "_total", "counter", \
	               "By group of threads: " help ".");                 \
	for (unsigned i = 1; i < GROUP_COUNT; i++)                        \
		metrics_uint(t, "darkroom_worker_" #member "_total",      \
		             LABELS({ "group", g->group[i].name }), sum[i].member);

static void workers(struct text *t, struct graph *g)
{
	struct group_sum sum[GROUP_COUNT];
	uint64_t now_ns = clock_ns();

	for (unsigned i = 1; i < GROUP_COUNT; i++)
		group_sum_collect(&sum[i], &g->group[i], now_ns);
	worker_times(t, g, "darkroom_worker_busy_seconds_total",
	             "Time that the thread has spent in handlers of stages.", false, now_ns);
	worker_times(t, g, "darkroom_worker_idle_seconds_total",
	             "Time that the thread has slept without work.", true, now_ns);
	metrics_family(t, "darkroom_workers", "gauge", "Threads, by group.");
	for (unsigned i = 1; i < GROUP_COUNT; i++)
		metrics_uint(t, "darkroom_workers", LABELS({ "group", g->group[i].name }),
		             sum[i].threads);
	WORKER_COUNTERS(WORKER_FAMILY)
}

static void stage_groups(struct text *t, const struct schedule *schedule)
{
	metrics_family(t, "darkroom_scheduler_info", "gauge",
	               "The current policy, by stage group.");
	for (unsigned i = 0; i < schedule->group_count; i++)
		metrics_uint(t, "darkroom_scheduler_info",
		             LABELS({ "group", schedule->group[i].name },
		                    { "policy", schedule->group[i].policy->name }),
		             1);
	metrics_family(t, "darkroom_scheduler_threads", "gauge",
	               "Threads for image work, by stage group.");
	for (unsigned i = 0; i < schedule->group_count; i++)
		metrics_uint(t, "darkroom_scheduler_threads",
		             LABELS({ "group", schedule->group[i].name }),
		             schedule_group_threads(schedule, i));
}

/* ---- all ---- */

void graph_metrics(struct graph *g, struct text *t)
{
	/* Acquire: pairs with the release that published it. */
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);
	struct stage_sum *sum = pool_get(graph_row_count * sizeof *sum);

	if (!sum) {
		t->overflowed = true;
		return;
	}
	for (unsigned i = 0; i < graph_row_count; i++)
		stage_sum_collect(&sum[i], &g->stage[i]);
	stage_groups(t, schedule);
	scarcity_metrics(&g->scarcity, t);
	stage_durations(t, sum);
	stage_visits(t, sum, schedule);
	stage_counts(t, sum);
	stage_perf(t, sum, &schedule->perf);
	workers(t, g);
	pool_put(sum);
}
