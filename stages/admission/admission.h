/*
 * admission.h - admits uploads before their bodies are read, and lets those wait that may.
 *
 * overload.h decides. This file has the lock, the clock and the line of waiting uploads. An upload
 * in the line is admitted when an image ends, higher classes first. Any thread.
 */
#ifndef DARKROOM_ADMISSION_ADMISSION_H
#define DARKROOM_ADMISSION_ADMISSION_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "clients.h"
#include "conf/conf_classes.h"
#include "conf/conf_degrade.h"
#include "cost.h"
#include "overload.h"

struct conf;
struct event;
struct graph;
struct problem;
struct visit;

/* An upload that asks to be admitted, and may wait for that. The caller sets the first members, and
 * parks the event. */
struct admission_waiter {
	struct event *event;
	unsigned instance; /* of accept_read */
	unsigned class;
	uint64_t bytes; /* of the body; 0: not known */
	struct client client;
	unsigned full_stage; /* that had enough at the last look: its index + 1; 0: none */
	/* the line's own, under the lock */
	struct overload_ticket ticket;
	struct admission_waiter *next;
	bool is_waiting;
};

/* What an upload holds here while its images are in flight. */
struct admitted {
	struct client client;
	unsigned class;           /* of its client */
	uint64_t waited_ns;       /* for memory, before its images began */
	uint64_t begun_ns;        /* when they began */
	_Atomic bool is_measured; /* its response time is known to the controller */
	bool is_client_counted;   /* limits.images_per_client applied */
	bool is_background;       /* below all other work: it neither waits nor lets others wait */
};

/* An image that has ended. */
struct admission_end {
	uint64_t work;           /* that its upload began with */
	struct cost_facts facts; /* of its file */
	uint64_t spent_ns;       /* CPU time, for the model and the speed; 0: of no use for them */
	bool has_failed;
	unsigned level; /* of the steps of overload.degrade with which it was made */
	const struct conf_degrade *degrade;
};

struct admission {
	pthread_mutex_t lock;
	struct graph *graph; /* borrowed; set once, before the graph is started */
	struct overload overload;
	struct cost cost;
	struct clients clients;
	struct client_rates rates;
	struct admission_waiter *first; /* by class, then by arrival */
	struct conf_classes classes;    /* under the lock */
	uint64_t admitted[CONTROL_CLASSES_MAX], refused[CONTROL_CLASSES_MAX]; /* since startup */
	uint64_t waited;
	struct conf_degrade degrade;
	uint64_t degraded[CONF_DEGRADE_MAX]; /* stored images by step, since it was configured */
	unsigned level[CONTROL_CLASSES_MAX]; /* that was logged */
	alignas(CACHE_LINE) _Atomic uint64_t in_flight; /* images, for limits.images_in_flight */
};

/* A snapshot for reports. */
struct admission_report {
	uint64_t waited, waiting;
	double backlog_s, p90_s;
	unsigned class_count;
	struct conf_degrade degrade;
	uint64_t degraded[CONF_DEGRADE_MAX];
	struct {
		char name[CONF_CLASS_NAME_MAX];
		uint64_t admitted, refused;
		double target_s;
		double limit_s; /* backlog: what may be admitted */
		double rate;    /* welsh: uploads per second */
		unsigned level; /* of degrade */
	} class[CONTROL_CLASSES_MAX];
};

/* ---- main thread ---- */

void admission_init(struct admission *a, const struct conf *conf);
void admission_fini(struct admission *a);

/* Applies another configuration. */
void admission_change(struct admission *a, const struct conf *conf);

/* ---- any thread ---- */

/* Returns whether the client may upload now: images in flight, and images per second. Takes one
 * image of its rate. Otherwise sets the problem: 429. A form may have more images than that:
 * admission_begin() looks again when their number is known. */
bool admission_ask(struct admission *a, const struct conf *conf, const struct client *client,
                   struct problem *problem);

/* Returns whether an upload of w->bytes is admitted. w->ticket then holds its place, until
 * admission_begin() or admission_cancel(). may_wait: an upload that is not admitted is in the line,
 * and its event is no longer the caller's. It is sent to accept_read when the upload is admitted.
 */
bool admission_try(struct admission *a, struct admission_waiter *w, bool may_wait);

/* Removes an upload from the line. Returns true if it waited: its event is the caller's. */
bool admission_leave(struct admission *a, struct admission_waiter *w);

/* An upload that was not admitted is refused: fills in its problem. */
void admission_refuse(struct admission *a, const struct conf *conf,
                      const struct admission_waiter *w, struct problem *problem);

/* Returns the work of an image. */
uint64_t admission_work(struct admission *a, const struct cost_facts *facts);

/* The upload will not begin. Ignored if it has no place. */
void admission_cancel(struct admission *a, struct admission_waiter *w);

/*
 * All images of an admitted upload are about to begin. Takes places for all of them, or for none:
 * then returns false with the problem set (429, 503). conf: with which the upload began. work: of
 * all images. Empties w->ticket. Each image ends with admission_end().
 */
bool admission_begin(struct admission *a, struct admitted *u, struct admission_waiter *w,
                     const struct conf *conf, unsigned images, uint64_t work,
                     struct problem *problem);

/* The same for one image of the daemon's own, for which the caller has taken a place. */
void admission_begin_own(struct admission *a, struct admitted *u, uint64_t work);

/* Takes a place for an image of the daemon's own. Returns false if max images are in flight. */
bool admission_take_place(struct admission *a, uint64_t max);

/* Gives back a place whose image has not begun. */
void admission_give_place(struct admission *a);

/* Returns how many images are in flight. */
static inline uint64_t admission_in_flight(const struct admission *a)
{
	/* Relaxed: an estimate for the others. */
	return atomic_load_explicit(&a->in_flight, memory_order_relaxed);
}

/* Returns whether images have been made as configured again for a while. */
bool admission_is_calm(struct admission *a);

/* An image of the upload ends: gives back its place, and admits uploads of the line. */
void admission_end(struct visit *v, struct admission *a, struct admitted *u,
                   const struct admission_end *end);

/* Admits uploads of the line. Those that were admitted may have ended without an image. */
void admission_poll(struct visit *v, struct admission *a);

void admission_report(struct admission *a, struct admission_report *report);

#endif
