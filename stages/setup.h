/*
 * setup.h - a configuration with what follows from it: an image keeps that which it began with, whatever is in force by then.
 *
 * Who needs one for longer than a visit takes a reference. During a visit server->conf is enough: what is replaced is let go
 * of only when every worker has come to the end of its visit since (graph_switch() waits for that).
 */
#ifndef DARKROOM_SETUP_H
#define DARKROOM_SETUP_H

#include <pthread.h>

#include "../src/conf.h"
#include "plan.h"

struct text;

struct setup {
	unsigned refs; /* under the lock */
	struct setup *next;
	/* fixed */
	struct conf conf;
	struct plan plan;
	char file_name[CONF_VARIANT_MAX][CONF_NAME_MAX + 5]; /* "thumb.jpg" */
};

struct setups {
	pthread_mutex_t lock;
	struct setup *all;      /* that anybody refers to */
	struct setup *current;  /* in force; one reference */
	struct setup *replaced; /* by the last change; visits may use it; one reference or NULL */
	struct setup *prepared; /* not in force yet; one reference or NULL; main thread */
};

/* 0 or -ENOMEM. Main thread, as all but taking and dropping. */
int setups_init(struct setups *s, const struct conf *conf, const struct plan *plan);

/* When nobody else has a reference. */
void setups_fini(struct setups *s);

/* Makes the next one: then setups_commit() or setups_cancel(). 0 or -ENOMEM. */
int setups_prepare(struct setups *s, const struct conf *conf, const struct plan *plan);

/* Every worker has ended its visit since the last commit. Puts in force what was prepared; returns it. */
struct setup *setups_commit(struct setups *s);
void setups_cancel(struct setups *s);

/* The most steps that an image may have now, or with plan. */
unsigned setups_step_count_max(struct setups *s, const struct plan *plan);

/* A reference to what is in force. Any thread. */
struct setup *setup_take(struct setups *s);
void setup_drop(struct setups *s, struct setup *setup);

#endif
