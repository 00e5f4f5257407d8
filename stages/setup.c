/* setup.c - configurations in use, counted. A mutex: it is taken twice for each upload. */
#include "setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../src/check.h"

/* With one reference, in the list. */
static struct setup *setup_new(struct setups *s, const struct conf *conf, const struct plan *plan)
{
	struct setup *setup = calloc(1, sizeof *setup);

	if (!setup)
		return NULL;
	setup->refs = 1;
	setup->conf = *conf;
	setup->plan = *plan;
	for (unsigned i = 0; i < conf->variant_count; i++)
		snprintf(setup->file_name[i], sizeof setup->file_name[i], "%s.jpg", conf->variant[i].name);
	pthread_mutex_lock(&s->lock);
	setup->next = s->all;
	s->all = setup;
	pthread_mutex_unlock(&s->lock);
	return setup;
}

int setups_init(struct setups *s, const struct conf *conf, const struct plan *plan)
{
	*s = (struct setups){ .all = NULL };
	pthread_mutex_init(&s->lock, NULL);
	s->current = setup_new(s, conf, plan);
	return s->current ? 0 : -ENOMEM;
}

void setups_fini(struct setups *s)
{
	setups_cancel(s);
	setup_drop(s, s->replaced);
	setup_drop(s, s->current);
	assert(!s->all);
	pthread_mutex_destroy(&s->lock);
}

int setups_prepare(struct setups *s, const struct conf *conf, const struct plan *plan)
{
	assert(!s->prepared);
	s->prepared = setup_new(s, conf, plan);
	return s->prepared ? 0 : -ENOMEM;
}

struct setup *setups_commit(struct setups *s)
{
	struct setup *replaced = s->replaced;

	assert(s->prepared);
	pthread_mutex_lock(&s->lock);
	s->replaced = s->current;
	s->current = s->prepared;
	s->prepared = NULL;
	pthread_mutex_unlock(&s->lock);
	setup_drop(s, replaced);
	return s->current;
}

void setups_cancel(struct setups *s)
{
	setup_drop(s, s->prepared);
	s->prepared = NULL;
}

unsigned setups_step_count_max(struct setups *s, const struct plan *plan)
{
	unsigned max = plan->step_count;

	pthread_mutex_lock(&s->lock);
	for (const struct setup *setup = s->all; setup; setup = setup->next)
		if (setup->plan.step_count > max)
			max = setup->plan.step_count;
	pthread_mutex_unlock(&s->lock);
	return max;
}

struct setup *setup_take(struct setups *s)
{
	pthread_mutex_lock(&s->lock);
	struct setup *setup = s->current;

	setup->refs++;
	pthread_mutex_unlock(&s->lock);
	return setup;
}

void setup_drop(struct setups *s, struct setup *setup)
{
	struct setup **at = &s->all;

	if (!setup)
		return;
	pthread_mutex_lock(&s->lock);
	bool is_last = --setup->refs == 0;

	if (is_last) {
		while (*at != setup)
			at = &(*at)->next;
		*at = setup->next;
	}
	pthread_mutex_unlock(&s->lock);
	if (is_last)
		free(setup);
}
