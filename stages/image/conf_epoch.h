/*
 * conf_epoch.h - a configuration with what follows from it: an image keeps that which it began
 * with, whatever is in force by then.
 *
 * Who needs one for longer than a visit takes a reference. During a visit server->conf is enough:
 * what is replaced is let go of only when every worker has come to the end of its visit since
 * (graph_switch() waits for that).
 */
#ifndef DARKROOM_IMAGE_CONF_EPOCH_H
#define DARKROOM_IMAGE_CONF_EPOCH_H

#include <pthread.h>

#include "conf/conf.h"
#include "plan.h"

struct text;

struct conf_epoch {
	unsigned refs; /* under the lock */
	struct conf_epoch *next;
	/* fixed */
	struct conf conf;
	struct plan plan;
	char file_name[CONF_VARIANT_MAX][CONF_NAME_MAX + 5]; /* "thumb.jpg" */
};

struct conf_epochs {
	pthread_mutex_t lock;
	struct conf_epoch *all;     /* that anybody refers to */
	struct conf_epoch *current; /* in force; one reference */
	struct conf_epoch
		*replaced; /* by the last change; visits may use it; one reference or NULL */
	struct conf_epoch *prepared; /* not in force yet; one reference or NULL; main thread */
};

/* 0 or -ENOMEM. Main thread, as all but taking and dropping. */
int conf_epochs_init(struct conf_epochs *s, const struct conf *conf, const struct plan *plan);

/* When nobody else has a reference. */
void conf_epochs_fini(struct conf_epochs *s);

/* Makes the next one: then conf_epochs_commit() or conf_epochs_cancel(). 0 or -ENOMEM. */
int conf_epochs_prepare(struct conf_epochs *s, const struct conf *conf, const struct plan *plan);

/* Every worker has ended its visit since the last commit. Puts in force what was prepared; returns
 * it. */
struct conf_epoch *conf_epochs_commit(struct conf_epochs *s);
void conf_epochs_cancel(struct conf_epochs *s);

/* The most steps that an image may have now, or with plan. */
unsigned conf_epochs_step_count_max(struct conf_epochs *s, const struct plan *plan);

/* A reference to what is in force. Any thread. */
struct conf_epoch *conf_epoch_ref(struct conf_epochs *s);
void conf_epoch_unref(struct conf_epochs *s, struct conf_epoch *epoch);

#endif
