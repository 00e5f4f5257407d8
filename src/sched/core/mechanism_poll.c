/*
 * mechanism_poll.c - workers that visit their stages in the order of a policy, one per core; the
 * rates that some policies want; and I/O threads that each serve one connection at a time.
 *
 * The policies drain, cohort, mg1, srpt and dbr use it. Workers of the I/O and disk groups, and of
 * pools, visit their one stage with it as well.
 *
 * Rates are of the last intervals, smoothed. Each worker takes its own from the counters of all
 * workers. So there is no thread for them, and they do not change during a call of the policy.
 * Service is CPU time, so that preemption does not count as work. The first interval is short, so
 * that a policy soon has rates; each next one is twice as long, up to 5 s (Gordon 2010, 4.1.2).
 * Owner's thread.
 */
#include "mechanism.h"

#include "base/clock.h"
#include "base/text.h"
#include "resources.h"
#include "runtime.h"
#include "worker.h"

#define FIRST_INTERVAL_NS (50 * NS_PER_MS)
#define LAST_INTERVAL_NS (5 * NS_PER_S)
#define NEWEST_WEIGHT 0.7 /* in the exponentially weighted moving average */

/* Returns whether the other worker's visits to the stage count for w. Each replica has its own
 * rates. */
static bool counts_for(const struct worker *w, const struct schedule *schedule,
                       const struct stage *s, const struct worker *other)
{
	return !stage_is_replicated(s) || other->group != w->group ||
	       schedule->domain[other->index] == w->domain;
}

static struct rate_sample sample_of(const struct stage *s, const struct worker *w,
                                    const struct schedule *schedule)
{
	struct rate_sample sum = { 0 };

	for (struct worker *other = NULL; (other = graph_next_worker(s->graph, other));) {
		const struct stage_counters *c = &other->stage[s->index];

		if (!counts_for(w, schedule, s, other))
			continue;
		sum.handled += counter_read(&c->service.count);
		sum.cpu_ns += counter_read(&c->cpu_ns);
		sum.arrived += counter_read(&c->wait.count);
	}
	/* Events that have arrived have either left the queue or are in it. */
	sum.arrived += stage_queue_length(stage_queue(s, w));
	return sum;
}

static double smooth(double before, double newest)
{
	return before > 0 ? NEWEST_WEIGHT * newest + (1 - NEWEST_WEIGHT) * before : newest;
}

static void update(struct rates *r, unsigned stage, const struct rate_sample *now, double seconds)
{
	const struct rate_sample *before = &r->sample[stage];
	uint64_t handled = now->handled - before->handled, cpu_ns = now->cpu_ns - before->cpu_ns;

	/* The snapshot of the queue may have been longer than the number that later left it. */
	double arrived =
		now->arrived > before->arrived ? (double)(now->arrived - before->arrived) : 0;

	r->arrival_per_s[stage] = smooth(r->arrival_per_s[stage], arrived / seconds);
	if (handled && cpu_ns)
		r->service_per_s[stage] = smooth(r->service_per_s[stage],
		                                 (double)handled * NS_PER_S / (double)cpu_ns);
}

static void take_samples(struct worker *w, const struct schedule *schedule, double seconds)
{
	for (unsigned i = 0; i < w->polled_count; i++) {
		const struct stage *s = w->visit_set[i];
		struct rate_sample now = sample_of(s, w, schedule);

		if (seconds > 0)
			update(&w->rates, s->index, &now, seconds);
		w->rates.sample[s->index] = now;
	}
}

static unsigned home_count(const struct stage *s, const struct schedule *schedule, unsigned queue)
{
	unsigned count = 0;

	for (unsigned k = 0; k < schedule->words; k++)
		count += (unsigned)__builtin_popcountll(stage_home(s, schedule, queue, k));
	return count;
}

/* Gives the policy the rates by position. */
static void publish(struct worker *w, const struct schedule *schedule)
{
	for (unsigned i = 0; i < w->polled_count; i++) {
		const struct stage *s = w->visit_set[i];
		enum schedule_service service = schedule->stage[s->index].service;

		w->polled_rates[i] = (struct stage_rates){
			.arrival_per_s = w->rates.arrival_per_s[s->index],
			.service_per_s = w->rates.service_per_s[s->index],
			.cores = home_count(s, schedule, stage_own_queue(s, w)),
			.is_gated = service != SERVICE_EXHAUSTIVE && service != SERVICE_TIME_GATED,
		};
	}
}

void rates_restart(struct worker *w, const struct schedule *schedule)
{
	take_samples(w, schedule, 0);
	publish(w, schedule);
	w->rates.begin_ns = clock_ns();
	w->rates.interval_ns = FIRST_INTERVAL_NS;
}

/* Updates the rates if the interval has passed. Returns whether it has. */
static bool rates_refresh(struct worker *w, uint64_t now_ns)
{
	struct rates *r = &w->rates;
	uint64_t passed_ns = now_ns - r->begin_ns;

	if (passed_ns < r->interval_ns)
		return false;
	take_samples(w, worker_schedule(w), (double)passed_ns / (double)NS_PER_S);
	publish(w, worker_schedule(w));
	r->begin_ns = now_ns;
	r->interval_ns =
		2 * r->interval_ns < LAST_INTERVAL_NS ? 2 * r->interval_ns : LAST_INTERVAL_NS;
	return true;
}

enum visit_result poll_visit(struct worker *w, bool has_served)
{
	struct policy_in in = { .found = has_served };
	bool is_check = ++w->visits % CHECK_VISITS == 0;

	if (is_check && serve_pass_through(w))
		return VISIT_SERVED;
	/* A visit that has served something lasts much longer than reading the clock. */
	if (w->policy->wants_rates && (has_served || is_check))
		in.has_new_rates = rates_refresh(w, clock_ns());
	if (!w->polled_count)
		return VISIT_ALL_EMPTY;
	if (w->policy->wants_ready) {
		in.ready = waiting_ready(w);
		if (!in.ready)
			return serve_stolen(w) ? VISIT_SERVED : VISIT_ALL_EMPTY;
	}
	struct stage *first = waiting_urgent(w);

	if (!first && (first = resources_choose(w)))
		counter_add(&w->counters.by_resource, 1);
	if (first)
		return serve_one(w, first, stage_own_queue(first, w)) ? VISIT_SERVED : VISIT_EMPTY;
	unsigned position = w->policy->next(w->policy_state, in);

	return serve_stage(w, w->visit_set[position]) ? VISIT_SERVED : VISIT_EMPTY;
}

int poll_assign(struct schedule *s, const struct schedule_input *input, unsigned group)
{
	return domains_assign(s, input, group,
	                      domains_threads_of_cores(s, s->group[group].threads, input->cores));
}

const struct mechanism mechanism_poll = {
	.has_core_per_worker = true,
	.has_stacks = true,
	.has_thresholds = true,
	.assign = poll_assign,
	.visit = poll_visit,
};

/* ---- thread-per-connection ---- */

/* scheduler.threads is the number of I/O threads. Each takes a connection only while it has none
 * (visit_is_thread_per_connection()), and calls all its stages. The main group has a worker per
 * core for the stages that keep a queue because they are exclusive. A layout cannot divide the
 * stages of a connection among cores. An exclusive source has one I/O thread, which would serve one
 * connection. */
static int assign_per_connection(struct schedule *s, const struct schedule_input *input,
                                 unsigned group)
{
	const char *exclusive = NULL;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].class->poll &&
		    graph_stage_kind(input->conf, i) == STAGE_EXCLUSIVE)
			exclusive = graph_rows[i].class->name;
	if (s->layout != CONF_LAYOUT_SHARED)
		return text_refuse(
			input->error,
			"scheduler.policy = thread-per-connection: expected layout.mode = shared");
	if (exclusive)
		return text_refuse(input->error,
		                   "each of its threads needs an instance of the source: "
		                   "expected experiment.%s.kind = partitioned",
		                   exclusive);
	if (s->listener_count)
		s->io_count = domains_threads_of_cores(s, s->group[group].threads, input->cores);
	return domains_assign(s, input, group,
	                      domains_threads_of_cores(s, CONF_AUTO, input->cores));
}

const struct mechanism mechanism_thread_per_connection = {
	.has_core_per_worker = true,
	.has_stacks = true,
	.assign = assign_per_connection,
	.visit = poll_visit,
};
