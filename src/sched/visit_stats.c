/*
 * visit_stats.c - the visit success rate (Gordon 2010, 4.3.6) and the split of the work among
 * processors (Larus & Parkes 2002, figure 4).
 */
#include "visit_stats.h"

#include "base/json.h"
#include "counter_sums.h"
#include "mechanism.h"
#include "runtime.h"

struct visits {
	uint64_t all, empty;
};

/* Adds the visits of all policies. */
static void add(struct visits *to, const uint64_t *visits, const uint64_t *empty)
{
	for (unsigned i = 0; i < POLICY_COUNT_MAX; i++) {
		to->all += visits[i] + empty[i];
		to->empty += empty[i];
	}
}

static struct visits visits_of(const struct stage_counters *c)
{
	uint64_t visits[POLICY_COUNT_MAX], empty[POLICY_COUNT_MAX];
	struct visits sum = { 0 };

	for (unsigned i = 0; i < POLICY_COUNT_MAX; i++) {
		visits[i] = counter_read(&c->visits[i]);
		empty[i] = counter_read(&c->visits_empty[i]);
	}
	add(&sum, visits, empty);
	return sum;
}

static void visits_json(struct json *j, const struct visits *v)
{
	uint64_t found = v->all - v->empty;

	json_uint(j, "visits", found);
	json_uint(j, "visits_empty", v->empty);
	if (v->all)
		json_double(j, "visit_success", (double)found / (double)v->all);
}

#define JSON_MEMBER(name, help) json_uint(j, #name, sum->name);

void visit_stats_stage_json(struct json *j, const struct stage_sum *sum)
{
	struct visits v = { 0 };

	add(&v, sum->visits, sum->visits_empty);
	visits_json(j, &v);
	STAGE_MAXIMA(JSON_MEMBER)
}

static void worker_stages_json(struct json *j, const struct worker *w)
{
	json_object(j, "stages");
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage_counters *c = &w->stage[i];
		uint64_t events = counter_read(&c->events);

		if (!events)
			continue;
		json_object(j, graph_rows[i].class->name);
		json_uint(j, "events", events);
		json_ms(j, "busy_ms", counter_read(&c->service.sum_ns));
		json_object_end(j);
	}
	json_object_end(j);
}

static void worker_json(struct json *j, const struct worker *w, const struct schedule *schedule)
{
	struct visits sum = { 0 };

	for (unsigned i = 0; i < graph_row_count; i++) {
		struct visits v = visits_of(&w->stage[i]);

		sum.all += v.all;
		sum.empty += v.empty;
	}
	json_object(j, NULL);
	if (w->group->id == GROUP_MAIN && w->index < schedule->worker_count && schedule->is_bound &&
	    schedule_group_of_worker(schedule, w->index)->mechanism->has_core_per_worker)
		json_uint(j, "core", schedule->core[w->index]);
	visits_json(j, &sum);
	json_ms(j, "busy_ms", worker_busy_ns(w));
	worker_stages_json(j, w);
	json_object_end(j);
}

void visit_stats_group_json(struct json *j, const struct group *grp,
                            const struct schedule *schedule)
{
	unsigned count = group_worker_count(grp);
	struct visits sum = { 0 };

	for (unsigned k = 0; k < count; k++)
		for (unsigned i = 0; i < graph_row_count; i++) {
			struct visits v = visits_of(&grp->workers[k].stage[i]);

			sum.all += v.all;
			sum.empty += v.empty;
		}
	visits_json(j, &sum);
	json_array(j, "workers");
	for (unsigned k = 0; k < count; k++)
		worker_json(j, &grp->workers[k], schedule);
	json_array_end(j);
}
