/*
 * top_figures.h - what the daemon did lately: differences of documents of /stats.
 *
 * The operator's page computes the same figures in the same way. Main thread.
 */
#ifndef DARKROOM_DAEMON_TOP_FIGURES_H
#define DARKROOM_DAEMON_TOP_FIGURES_H

#include "top_document.h"

#define TOP_RATE_DOCUMENTS 4    /* half a second each: rates are those of two seconds */
#define TOP_UPLOAD_DOCUMENTS 20 /* percentiles are those of ten */

/* The last documents. All zero: none. */
struct top_history {
	unsigned count, next;
	struct top_document document[TOP_UPLOAD_DOCUMENTS + 1];
};

struct top_stage_figures {
	const char *name;  /* of the document */
	unsigned position; /* in the pipeline */
	uint64_t queued, events;
	double in_per_s, out_per_s;
	double service_ms; /* mean */
	double busy;       /* share of the time of its threads, 0 to 1 */
	unsigned thread_count;
	const char *thread[TOP_THREADS_MAX]; /* those that are mostly in it */
};

struct top_thread_figures {
	const char *name;
	double busy;      /* 0 to 1 */
	const char *most; /* the stage with most of its time; "": idle */
};

struct top_figures {
	const struct top_document *now;
	double images_per_s, rejected_per_s;
	double p50_ms, p90_ms, p99_ms;                     /* of uploads; -1: there were none */
	struct top_stage_figures stage[STAGE_COUNT_MAX];   /* now->stage_count */
	struct top_thread_figures thread[TOP_THREADS_MAX]; /* now->thread_count */
};

enum top_order { /* by which stages are sorted */
	         TOP_BY_PIPELINE,
	         TOP_BY_QUEUE,
	         TOP_BY_IN,
	         TOP_BY_OUT,
	         TOP_BY_SERVICE,
	         TOP_BY_BUSY,
	         TOP_BY_EVENTS,
	         TOP_ORDER_COUNT
};

/* Returns where to read the next document to. It counts from top_history_add() on. */
struct top_document *top_history_place(struct top_history *h);

/* Adds that document. If the daemon was restarted, the earlier ones are dropped. */
void top_history_add(struct top_history *h);

/* Computes the figures of the last document; h->count >= 1. Names are those of the history, until
 * the next document. The highest come first, or the lowest if is_reversed. */
void top_figures(const struct top_history *h, enum top_order order, bool is_reversed,
                 struct top_figures *f);

/* Returns the name of an order, which is that of its column. */
const char *top_order_name(enum top_order order);

#endif
