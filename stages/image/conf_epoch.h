/*
 * conf_epoch.h - a refcounted configuration and its plan. An image keeps the one it started with
 * across reloads.
 *
 * A reference keeps an epoch for as long as needed. During a visit, conf_epochs_now() is enough:
 * a replaced epoch is released only at a later commit, when every worker has ended the visit in
 * which it could have loaded it (graph_is_settled()).
 */
#ifndef DARKROOM_IMAGE_CONF_EPOCH_H
#define DARKROOM_IMAGE_CONF_EPOCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "conf/conf.h"
#include "conf/conf_classes.h"
#include "conf/conf_degrade.h"
#include "plan/plan.h"

struct conf_epoch {
	/* under the lock */
	unsigned refs;
	bool is_held; /* it is current or prepared, or workers may use it */
	struct conf_epoch *next;
	/* fixed */
	struct conf conf;
	struct plan plan;                       /* of level 0 */
	struct conf_degrade degrade;            /* overload.degrade */
	struct conf_classes classes;            /* overload.classes */
	struct plan degraded[CONF_DEGRADE_MAX]; /* of level 1 and so on */
	unsigned step_count_max;                /* of all levels */
};

struct conf_epochs {
	pthread_mutex_t lock;
	struct conf_epoch *_Atomic now; /* the current one */
	struct conf_epoch *all;         /* newest first */
	struct conf_epoch *prepared;    /* for the next commit, or NULL */
};

/* ---- main thread ---- */

/* Returns 0 or -ENOMEM. plan: of level 0; those of the other levels can be built as well. */
int conf_epochs_init(struct conf_epochs *s, const struct conf *conf, const struct plan *plan);

/* All references must have been dropped. */
void conf_epochs_fini(struct conf_epochs *s);

/* Makes the next epoch; conf_epochs_commit() or conf_epochs_cancel() must follow. Returns 0 or
 * -ENOMEM. */
int conf_epochs_prepare(struct conf_epochs *s, const struct conf *conf, const struct plan *plan);

/* Makes the prepared epoch the current one. is_settled: every worker has ended its visit since the
 * last commit, so that the epochs that were replaced before are not in use. */
void conf_epochs_commit(struct conf_epochs *s, bool is_settled);
void conf_epochs_cancel(struct conf_epochs *s);

/* Returns the largest number of steps that an image can have: that number, or one of the epochs'.
 */
unsigned conf_epochs_step_count_max(struct conf_epochs *s, unsigned step_count);

/* ---- any thread ---- */

/* Returns the current epoch, without a reference. It is valid until the end of the caller's visit.
 */
static inline const struct conf_epoch *conf_epochs_now(const struct conf_epochs *s)
{
	/* Acquire: pairs with conf_epochs_commit(). */
	return atomic_load_explicit(&s->now, memory_order_acquire);
}

/* Returns a reference to the current epoch. */
struct conf_epoch *conf_epoch_ref(struct conf_epochs *s);
void conf_epoch_unref(struct conf_epochs *s, struct conf_epoch *epoch);

#endif
