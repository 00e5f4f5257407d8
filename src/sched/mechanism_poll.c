/*
 * mechanism_poll.c - workers that visit their stages in the order of a policy, one per core.
 *
 * The policies drain, cohort, mg1, srpt and dbr use it. Workers of the I/O and disk groups, and of
 * pools, visit their one stage with it as well. Owner's thread.
 */
#include "mechanism_poll.h"

#include "base/clock.h"
#include "domains.h"
#include "rates.h"
#include "resources.h"
#include "runtime.h"
#include "serve.h"
#include "waiting.h"

#define CHECK_VISITS 64 /* visits between checks of stages called directly, and of the rates */

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
	.reassign = domains_reassign,
	.visit = poll_visit,
};
