/*
 * central.c - policy color: no visit order; one central queue of tokens says which stage is served next: "token_note".
 *
 * Every event that is queued puts a token with its stage's name into the group's queue, and a worker that takes a token serves
 * one event of that stage. A token is a turn and no more: what there is to do, the stages' queues say. The two can part. A token may
 * be seen before its event, which stands behind another whose pusher was interrupted in the middle; it may find its stage
 * exclusive and taken, and nobody waits; and it may not fit. Then it is lost, and its event is not: whoever has served a stage
 * and sees no token for what is left gives one, and a worker that finds no token looks at the stages before it goes idle. Tokens
 * left over find nothing, and do no harm.
 */
#include "group.h"

void central_give(struct stage *s)
{
	/* Before the push, so that the count is never less than what is in the queue. */
	atomic_fetch_add_explicit(&s->tokens, 1, memory_order_relaxed);
	if (!queue_try_push(&s->group->tokens, s, 0))
		atomic_fetch_sub_explicit(&s->tokens, 1, memory_order_relaxed);
}

struct stage *central_take(struct group *g)
{
	struct stage *s = queue_try_pop(&g->tokens);

	if (s)
		atomic_fetch_sub_explicit(&s->tokens, 1, memory_order_relaxed);
	return s;
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
	struct stage *s = central_take(w->group);

	*had_token = s != NULL;
	if (!s)
		s = find_work(w);
	if (!s || !visit_once(w, s))
		return false;
	if (!atomic_load_explicit(&s->tokens, memory_order_relaxed) && !stage_queue_is_empty(stage_queue(s, w->index)))
		central_give(s);
	return true;
}
