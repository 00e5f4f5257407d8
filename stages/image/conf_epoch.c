/* conf_epoch.c - the list of configurations in use. An upload takes the mutex twice. Any thread. */
#include "conf_epoch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

static void build_degraded(struct conf_epoch *epoch)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;

	epoch->step_count_max = epoch->plan.step_count;
	conf_degrade_parse(epoch->conf.overload.degrade, &epoch->degrade);
	for (unsigned level = 1; level <= epoch->degrade.count; level++) {
		struct plan *plan = &epoch->degraded[level - 1];

		/* The configuration was checked with all levels. */
		if (plan_build(plan, &epoch->conf, level, &variant, error, sizeof error))
			*plan = epoch->plan;
		if (plan->step_count > epoch->step_count_max)
			epoch->step_count_max = plan->step_count;
	}
}

/* Returns a new epoch with one reference, in the list, or NULL. */
static struct conf_epoch *conf_epoch_new(struct conf_epochs *s, const struct conf *conf,
                                         const struct plan *plan)
{
	struct conf_epoch *epoch = calloc(1, sizeof *epoch);

	if (!epoch)
		return NULL;
	epoch->refs = 1;
	epoch->conf = *conf;
	epoch->plan = *plan;
	conf_classes_parse(conf->overload.classes, &epoch->classes); /* which was checked */
	build_degraded(epoch);
	for (unsigned i = 0; i < conf->variant_count; i++)
		snprintf(epoch->file_name[i], sizeof epoch->file_name[i], "%s.jpg",
		         conf->variant[i].name);
	pthread_mutex_lock(&s->lock);
	epoch->next = s->all;
	s->all = epoch;
	pthread_mutex_unlock(&s->lock);
	return epoch;
}

int conf_epochs_init(struct conf_epochs *s, const struct conf *conf, const struct plan *plan)
{
	*s = (struct conf_epochs){ .all = NULL };
	pthread_mutex_init(&s->lock, NULL);
	s->current = conf_epoch_new(s, conf, plan);
	if (!s->current)
		return -ENOMEM;
	atomic_init(&s->now, s->current);
	return 0;
}

void conf_epochs_fini(struct conf_epochs *s)
{
	conf_epochs_cancel(s);
	conf_epoch_unref(s, s->replaced);
	conf_epoch_unref(s, s->current);
	assert(!s->all);
	pthread_mutex_destroy(&s->lock);
}

int conf_epochs_prepare(struct conf_epochs *s, const struct conf *conf, const struct plan *plan)
{
	assert(!s->prepared);
	s->prepared = conf_epoch_new(s, conf, plan);
	return s->prepared ? 0 : -ENOMEM;
}

void conf_epochs_commit(struct conf_epochs *s)
{
	struct conf_epoch *replaced = s->replaced;

	assert(s->prepared);
	pthread_mutex_lock(&s->lock);
	s->replaced = s->current;
	s->current = s->prepared;
	s->prepared = NULL;
	/* Release: pairs with conf_epochs_now(). */
	atomic_store_explicit(&s->now, s->current, memory_order_release);
	pthread_mutex_unlock(&s->lock);
	conf_epoch_unref(s, replaced);
}

void conf_epochs_cancel(struct conf_epochs *s)
{
	conf_epoch_unref(s, s->prepared);
	s->prepared = NULL;
}

unsigned conf_epochs_step_count_max(struct conf_epochs *s, unsigned step_count)
{
	unsigned max = step_count;

	pthread_mutex_lock(&s->lock);
	for (const struct conf_epoch *epoch = s->all; epoch; epoch = epoch->next)
		if (epoch->step_count_max > max)
			max = epoch->step_count_max;
	pthread_mutex_unlock(&s->lock);
	return max;
}

struct conf_epoch *conf_epoch_ref(struct conf_epochs *s)
{
	pthread_mutex_lock(&s->lock);
	struct conf_epoch *epoch = s->current;

	epoch->refs++;
	pthread_mutex_unlock(&s->lock);
	return epoch;
}

void conf_epoch_unref(struct conf_epochs *s, struct conf_epoch *epoch)
{
	struct conf_epoch **at = &s->all;

	if (!epoch)
		return;
	pthread_mutex_lock(&s->lock);
	bool is_last = --epoch->refs == 0;

	if (is_last) {
		while (*at != epoch)
			at = &(*at)->next;
		*at = epoch->next;
	}
	pthread_mutex_unlock(&s->lock);
	if (is_last)
		free(epoch);
}
