/*
 * mechanism_color.c - policy color: no visit order; one central queue of tokens says which stage is
 * served next: "token_note".
 *
 * Every event that is queued puts a token with its stage's name into the group's queue, and a
 * worker that takes a token serves one event of that stage. Each replica, or part of the stage
 * graph, has such a queue of its own. A token is a turn and no more: what there is to do, the
 * stages' queues say. The two can part. A token may be seen before its event, which stands behind
 * another whose pusher was interrupted in the middle; it may find its stage exclusive and taken,
 * and nobody waits; and it may not fit. Then it is lost, and its event is not: whoever has served a
 * stage and sees no token for what is left gives one, and a worker that finds no token looks at the
 * stages before it goes idle. Tokens left over find nothing, and do no harm; one of a stage that
 * has gone to another part is dropped, and the switch gives it anew.
 */
#include "worker.h"

/* The count of the tokens that name the stage, among those of the domain. */
static _Atomic unsigned *count_of(struct stage *s, unsigned domain)
{
	return &s->gate[stage_is_replicated(s) ? domain : 0].tokens;
}

void central_give(struct stage *s, const struct schedule *schedule, unsigned queue)
{
	unsigned domain = stage_is_replicated(s) ? queue : schedule_domain_of(schedule, s->index);

	/* Before the push, so that the count is never less than what is in the queue. */
	atomic_fetch_add_explicit(count_of(s, domain), 1, memory_order_relaxed);
	if (!queue_try_push(&s->group->tokens[domain], s, 0))
		atomic_fetch_sub_explicit(count_of(s, domain), 1, memory_order_relaxed);
}

struct stage *central_take(struct group *g, unsigned domain)
{
	struct stage *s = queue_try_pop(&g->tokens[domain]);

	if (s)
		atomic_fetch_sub_explicit(count_of(s, domain), 1, memory_order_relaxed);
	return s;
}

void central_drop(struct group *g)
{
	for (unsigned i = 0; i < COUNT_OF(g->tokens); i++)
		while (g->tokens[i].cells && central_take(g, i))
			continue;
}

/* What was queued before tokens were given out has none. */
static void give_all(struct graph *g, const struct schedule *schedule)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &g->stage[i];

		for (unsigned k = 0; k < s->queue_count && s->group->id == GROUP_MAIN; k++)
			for (size_t waiting = stage_queue_length(&s->queue[k]); waiting > 0;
			     waiting--)
				central_give(s, schedule, k);
	}
}

void central_renew(struct group *g, const struct schedule *schedule)
{
	central_drop(g);
	if (schedule->policy->mechanism == POLICY_COLOR)
		give_all(g->graph, schedule);
}

/* The last stage that has something, though no token says so. */
static struct stage *find_work(const struct worker *w)
{
	for (unsigned i = w->visit_set_count; i-- > 0;)
		if (stage_offers_work(w->visit_set[i], w))
			return w->visit_set[i];
	return NULL;
}

bool central_visit(struct worker *w, bool *had_token)
{
	const struct schedule *schedule = worker_schedule(w);
	struct stage *s = central_take(w->group, w->domain);

	*had_token = s != NULL;
	if (!s)
		s = find_work(w);
	if (!s || !(schedule->visit_set[w->index] >> s->index & 1) ||
	    !visit_once(w, s, stage_own_queue(s, w)))
		return false;
	if (!atomic_load_explicit(count_of(s, w->domain), memory_order_relaxed) &&
	    !stage_queue_is_empty(stage_queue(s, w)))
		central_give(s, schedule, stage_own_queue(s, w));
	return true;
}
