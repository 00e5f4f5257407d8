/*
 * controllers.c - the list of controllers.
 *
 * The one that is due first takes the next step. Does not know what controllers do. Main thread.
 */
#include "controllers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "log/log.h"
#include "repartition.h"
#include "schedule.h"
#include "seda_controller.h"

struct controllers {
	struct seda_controller seda;
	struct repartition repartition;
	struct controller *list[2]; /* the two above */
};

int controllers_new(struct controllers **out)
{
	struct controllers *c = calloc(1, sizeof *c);

	if (!c)
		return -ENOMEM;
	seda_controller_init(&c->seda);
	repartition_init(&c->repartition);
	c->list[0] = &c->seda.base;
	c->list[1] = &c->repartition.base;
	*out = c;
	return 0;
}

void controllers_free(struct controllers *c)
{
	free(c);
}

void controllers_start(struct controllers *c, const struct graph *g, const struct schedule *s)
{
	uint64_t now_ns = clock_ns();

	for (size_t i = 0; i < COUNT_OF(c->list); i++) {
		struct controller *one = c->list[i];
		uint64_t interval_ns = one->class->interval_ns(s);

		one->due_ns = interval_ns ? now_ns + interval_ns : UINT64_MAX;
		if (interval_ns)
			one->class->start(one, g, s, now_ns);
	}
	if (c->seda.base.due_ns == UINT64_MAX)
		atomic_store_explicit(&c->seda.is_growing, false, memory_order_relaxed);
}

/* Returns the controller that is due first. */
static struct controller *first_due(const struct controllers *c)
{
	struct controller *first = c->list[0];

	for (size_t i = 1; i < COUNT_OF(c->list); i++)
		if (c->list[i]->due_ns < first->due_ns)
			first = c->list[i];
	return first;
}

uint64_t controllers_due_ns(const struct controllers *c)
{
	return first_due(c)->due_ns;
}

bool controllers_step(struct controllers *c, const struct graph *g, const struct schedule *now,
                      struct schedule *next)
{
	struct controller *one = first_due(c);

	*next = *now;
	return one->class->step(one, g, now, next, clock_ns());
}

void controllers_finish(struct controllers *c, const struct schedule *s, int err)
{
	struct controller *one = first_due(c);

	one->due_ns = err ? UINT64_MAX : clock_ns() + one->class->interval_ns(s);
	if (err)
		log_error("%s: cannot apply a change: %s; disabled until the next switch",
		          one->class->name, strerror(-err));
}

bool controllers_are_growing(const struct controllers *c)
{
	/* Relaxed: nothing that was written before it matters. */
	return atomic_load_explicit(&c->seda.is_growing, memory_order_relaxed);
}

uint64_t controllers_repartitions(const struct controllers *c)
{
	return atomic_load_explicit(&c->repartition.times, memory_order_relaxed);
}
