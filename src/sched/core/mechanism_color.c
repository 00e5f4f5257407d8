/*
 * mechanism_color.c - the mechanism of policy color, a central queue of turns: "turn_note".
 *
 * Every event that is queued adds a turn with its stage's name to a queue of the group. A worker
 * that takes a turn serves one event of that stage. Each replica, or part of the stage graph, has
 * such a queue of its own.
 *
 * A turn is only a hint; the stages' queues determine what work exists. The two can differ. A turn
 * may be seen before its event, which stands behind another event whose pusher was interrupted in
 * the middle of the push. A turn may name an exclusive stage that is taken, and no worker waits for
 * it. A turn may not fit into the queue of turns. In these cases the turn is lost, but its event is
 * not: a worker that has served a stage adds a turn if events are left without any, and a worker
 * that finds no turn checks the stages before it goes idle. Superfluous turns find nothing and do
 * no harm. A turn of a stage that has moved to another part is dropped, and the switch of schedules
 * adds it again.
 */
#include "mechanism.h"

#include "resources.h"
#include "runtime.h"
#include "worker.h"

/* ---- turns ---- */

/* Returns the number of the domain's turns that name the stage. */
static _Atomic unsigned *turns_of(struct stage *s, unsigned domain)
{
	return &s->gate[stage_is_replicated(s) ? domain : 0].turns;
}

/* Adds a turn for the stage's queue of that index. Any thread. */
static void give_turn(struct stage *s, const struct schedule *schedule, unsigned queue)
{
	unsigned domain = stage_is_replicated(s) ? queue : schedule_domain_of(schedule, s->index);

	/* Before the push, so that the count is never less than the number in the queue. */
	atomic_fetch_add_explicit(turns_of(s, domain), 1, memory_order_relaxed);
	if (!queue_try_push(&s->group->turns[domain], s, 0))
		atomic_fetch_sub_explicit(turns_of(s, domain), 1, memory_order_relaxed);
}

/* Takes the oldest turn of the domain. Returns its stage, or NULL. Any thread. */
static struct stage *take_turn(struct group *g, unsigned domain)
{
	struct stage *s = queue_try_pop(&g->turns[domain]);

	if (s)
		atomic_fetch_sub_explicit(turns_of(s, domain), 1, memory_order_relaxed);
	return s;
}

/* ---- switches of schedules ---- */

/* Makes the domains' queues. Each has room for a turn per event and stage, twice, because turns of
 * the previous schedule may be left. */
static int prepare(struct group *g, const struct schedule *schedule, unsigned group)
{
	struct domains_range range = domains_of_group(schedule, group);
	int err = 0;

	for (unsigned i = range.first; i < range.end && !err; i++)
		if (!g->turns[i].cells)
			err = queue_init(&g->turns[i],
			                 2 * g->graph->queue_capacity * graph_row_count);
	return err;
}

static void remove_turns(struct group *g, struct domains_range range)
{
	for (unsigned i = range.first; i < range.end; i++)
		while (g->turns[i].cells && take_turn(g, i))
			continue;
}

/* Removes all turns: they are those of a previous policy, group or partition. */
static void stop(struct group *g)
{
	remove_turns(g, (struct domains_range){ 0, COUNT_OF(g->turns) });
}

/* Adds a turn for every event that waits. Those that were queued under another policy have none. */
static void start(struct group *g, const struct schedule *schedule, unsigned group)
{
	remove_turns(g, domains_of_group(schedule, group));
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &g->graph->stage[i];
		bool is_own = s->group == g && schedule->stage[i].group == group;

		for (unsigned k = 0; k < s->queue_count && is_own; k++)
			for (size_t n = stage_queue_length(&s->queue[k]); n > 0; n--)
				give_turn(s, schedule, k);
	}
}

void color_fini(struct group *g)
{
	stop(g);
	for (unsigned i = 0; i < COUNT_OF(g->turns); i++)
		queue_fini(&g->turns[i]);
}

/* ---- visits ---- */

/* Returns the last stage that has work, for events without a turn. */
static struct stage *find_work(const struct worker *w)
{
	for (unsigned i = w->visit_set_count; i-- > 0;)
		if (stage_offers_work(w->visit_set[i], w))
			return w->visit_set[i];
	return NULL;
}

/* Serves one event of the stage of the oldest turn. */
static enum visit_result serve_turn(struct worker *w, bool has_served)
{
	const struct schedule *schedule = worker_schedule(w);
	struct stage *first = waiting_urgent(w);

	if (!first && (first = resources_choose(w)))
		counter_add(&w->counters.by_resource, 1);
	/* Its turn stays behind, which does no harm. */
	if (first && serve_one(w, first, stage_own_queue(first, w)))
		return VISIT_SERVED;
	struct stage *s = take_turn(w->group, w->domain);
	enum visit_result miss = s ? VISIT_EMPTY : VISIT_ALL_EMPTY;

	(void)has_served;
	if (!s)
		s = find_work(w);
	if (!s || !stage_set_has(schedule->visit_set[w->index], s->index) ||
	    !serve_one(w, s, stage_own_queue(s, w)))
		return miss;
	if (!atomic_load_explicit(turns_of(s, w->domain), memory_order_relaxed) &&
	    !stage_queue_is_empty(stage_queue(s, w)))
		give_turn(s, schedule, stage_own_queue(s, w));
	return VISIT_SERVED;
}

/* No stacks: workers that wait for one central queue do not check stacks. No thresholds: a visit
 * that a threshold starts would leave turns behind, more and more of them. */
const struct mechanism mechanism_color = {
	.has_core_per_worker = true,
	.assign = poll_assign,
	.prepare = prepare,
	.start = start,
	.stop = stop,
	.queued = give_turn,
	.visit = serve_turn,
};
