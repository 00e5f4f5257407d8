/* graph_stats.c - the sums of counter_sums.h as JSON. */
#include "graph_stats.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "counter_sums.h"
#include "worker.h"

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

void stats_group_json(struct json *j, const struct group *grp)
{
	struct group_sum sum;

	group_sum_collect(&sum, grp, clock_ns());
	json_object(j, NULL);
	json_string(j, "name", grp->name);
	json_uint(j, "threads", sum.threads);
	WORKER_COUNTERS(JSON_MEMBER)
	json_uint(j, "idle_ns", sum.idle_ns);
	json_object_end(j);
}

void stats_counters_json(struct json *j, const struct graph *g, const struct perf_caps *offer)
{
	unsigned threads = 0;

	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			threads += atomic_load_explicit(&g->group[i].workers[k].counting.is_on,
			                                memory_order_relaxed);
	}
	json_object(j, "counters");
	json_array(j, "available");
	for (unsigned i = 0; i < PERF_COUNT; i++)
		if (!offer->missing[i])
			json_string(j, NULL, perf_name((enum perf_id)i));
	json_array_end(j);
	json_object(j, "missing");
	for (unsigned i = 0; i < PERF_COUNT; i++) {
		char data[128];
		struct text reason;

		if (!offer->missing[i])
			continue;
		text_init(&reason, data, sizeof data);
		perf_print_reason(offer, (enum perf_id)i, &reason);
		json_string(j, perf_name((enum perf_id)i), reason.data);
	}
	json_object_end(j);
	json_bool(j, "user_only", offer->is_user_only);
	json_uint(j, "threads", threads);
	json_object_end(j);
}

/* What was counted of a stage, without the counters that the machine does not offer. */
static void counted_json(struct json *j, const struct perf_caps *offer, const struct perf_sum *sum)
{
	json_object(j, "counters");
	for (unsigned i = 0; i < PERF_COUNT; i++) {
		enum perf_id id = (enum perf_id)i;

		if (!offer->missing[i])
			json_uint(j, perf_name(id), sum->value[id]);
	}
	json_object_end(j);
}

/* That serve the stage's queue, or its instances; 0: it is called directly. */
static unsigned thread_count(const struct stage *s, const struct schedule *schedule)
{
	if (schedule->pass_through >> s->index & 1)
		return 0;
	return s->class->poll ? schedule->port_count
	                      : (unsigned)__builtin_popcountll(schedule->stage[s->index].may_visit);
}

void stats_stage_json(struct json *j, const struct stage *s, const struct schedule *schedule)
{
	static const char *const kind[STAGE_KIND_COUNT] = { [STAGE_SHARED] = "shared",
		                                            [STAGE_EXCLUSIVE] = "exclusive",
		                                            [STAGE_PARTITIONED] = "partitioned" };
	struct stage_sum sum;
	uint64_t visits = 0, visits_empty = 0;

	stage_sum_collect(&sum, s);
	for (unsigned i = 0; i < POLICY_COUNT_MAX; i++) {
		visits += sum.visits[i];
		visits_empty += sum.visits_empty[i];
	}
	json_object(j, NULL);
	json_string(j, "name", s->class->name);
	json_string(j, "kind", kind[s->kind]);
	json_string(j, "group", s->group->name);
	json_bool(j, "pass_through", schedule->pass_through >> s->index & 1);
	json_uint(j, "threads", thread_count(s, schedule));
	if (schedule->stage[s->index].service == SERVICE_N_GATED && !s->class->poll)
		json_uint(j, "batch", schedule->stage[s->index].events_max);
	json_uint(j, "queued", sum.queued);
	STAGE_COUNTERS(JSON_MEMBER)
	json_uint(j, "visits", visits);
	json_uint(j, "visits_empty", visits_empty);
	durations_json(j, "service", &sum.service);
	durations_json(j, "wait", &sum.wait);
	if (schedule->counters.is_on)
		counted_json(j, &schedule->counters, &sum.counted);
	json_object_end(j);
}
