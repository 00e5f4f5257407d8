/* conf_epoch.c - the list of configurations in use. An upload takes the mutex twice. Any thread. */
#include "conf_epoch.h"

#include <errno.h>
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

/* Frees what is neither referred to nor held. Under the lock. */
static void free_unused(struct conf_epochs *s)
{
	for (struct conf_epoch **at = &s->all; *at;) {
		struct conf_epoch *epoch = *at;

		if (epoch->refs || epoch->is_held) {
			at = &epoch->next;
			continue;
		}
		*at = epoch->next;
		free(epoch);
	}
}

/* Holds only these epochs from now on. */
static void hold_only(struct conf_epochs *s, const struct conf_epoch *a, const struct conf_epoch *b)
{
	pthread_mutex_lock(&s->lock);
	for (struct conf_epoch *epoch = s->all; epoch; epoch = epoch->next)
		epoch->is_held = epoch->is_held && (epoch == a || epoch == b);
	free_unused(s);
	pthread_mutex_unlock(&s->lock);
}

int conf_epochs_prepare(struct conf_epochs *s, const struct conf *conf, const struct plan *plan)
{
	struct conf_epoch *epoch = calloc(1, sizeof *epoch);

	assert(!s->prepared);
	if (!epoch)
		return -ENOMEM;
	epoch->is_held = true;
	epoch->conf = *conf;
	epoch->plan = *plan;
	conf_classes_parse(conf->overload.classes, &epoch->classes); /* which was checked */
	build_degraded(epoch);
	pthread_mutex_lock(&s->lock);
	epoch->next = s->all;
	s->all = s->prepared = epoch;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int conf_epochs_init(struct conf_epochs *s, const struct conf *conf, const struct plan *plan)
{
	*s = (struct conf_epochs){ .all = NULL };
	pthread_mutex_init(&s->lock, NULL);
	int err = conf_epochs_prepare(s, conf, plan);

	if (!err)
		conf_epochs_commit(s, false);
	return err;
}

void conf_epochs_fini(struct conf_epochs *s)
{
	hold_only(s, NULL, NULL);
	assert(!s->all);
	pthread_mutex_destroy(&s->lock);
}

void conf_epochs_commit(struct conf_epochs *s, bool is_settled)
{
	const struct conf_epoch *was = conf_epochs_now(s);

	assert(s->prepared);
	pthread_mutex_lock(&s->lock);
	/* Release: pairs with conf_epochs_now(). */
	atomic_store_explicit(&s->now, s->prepared, memory_order_release);
	pthread_mutex_unlock(&s->lock);
	if (is_settled)
		hold_only(s, s->prepared, was);
	s->prepared = NULL;
}

void conf_epochs_cancel(struct conf_epochs *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->prepared)
		s->prepared->is_held = false;
	s->prepared = NULL;
	free_unused(s);
	pthread_mutex_unlock(&s->lock);
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
	/* Relaxed: it changes under the lock. */
	struct conf_epoch *epoch = atomic_load_explicit(&s->now, memory_order_relaxed);

	epoch->refs++;
	pthread_mutex_unlock(&s->lock);
	return epoch;
}

void conf_epoch_unref(struct conf_epochs *s, struct conf_epoch *epoch)
{
	pthread_mutex_lock(&s->lock);
	assert(epoch->refs > 0);
	epoch->refs--;
	free_unused(s);
	pthread_mutex_unlock(&s->lock);
}
