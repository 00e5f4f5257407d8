/*
 * policy.h - the visit order: which stage a worker visits next.
 *
 * A policy is a pure function of the result of the last visit. It has no queue, lock, clock or
 * allocation. State and rates belong to one worker. A policy does not decide when to sleep; the
 * worker does (sched/core/worker.c). A policy is one file here, and one row in policies.h.
 */
#ifndef DARKROOM_POLICY_POLICY_H
#define DARKROOM_POLICY_POLICY_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/stage_set.h"
#include "policies.h"

#define POLICY_STATE_MAX 512 /* bytes of state that a worker has for its policy */

/* How stages get their threads: see sched/core/mechanism.h. */
enum policy_mechanism {
	POLICY_POLL = 1,              /* one thread per core; next() determines the next stage */
	POLICY_COLOR,                 /* one thread per core, served by one queue of turns */
	POLICY_POOL,                  /* a pool of threads for each stage */
	POLICY_THREAD_PER_CONNECTION, /* one thread per connection, which calls every stage */
	POLICY_USER_THREADS /* one thread per core, which runs a user-level thread per event */
};

struct policy_in {
	bool found;         /* the last visit handled at least one event */
	stage_set ready;    /* positions in the visit set whose stages seem to have an event; only
	                     * for a class with wants_ready */
	bool has_new_rates; /* the rates have changed since the last call */
};

/* Measurements of a stage over the last intervals, smoothed; 0 without a measurement. */
struct stage_rates {
	double arrival_per_s;
	double service_per_s; /* events that one core handles per second of CPU time */
	unsigned cores;       /* cores that serve the stage, >= 1 */
	bool is_gated;        /* events that arrive during a visit wait for the next one */
};

/* An order that a policy has computed from rates. */
struct policy_order {
	const unsigned char *position; /* in the visit set, in the order of the visits; borrowed */
	unsigned length;
	uint32_t number; /* another one after each computation; not 0 */
};

struct policy_class {
	const char *name;
	const char *help;
	enum policy_mechanism mechanism;
	bool wants_ready;
	bool wants_rates; /* otherwise nothing is measured */
	/* next: for POLICY_POLL only. reset: n >= 1 stages, in pipeline order; rates[n] is
	 * borrowed and refreshed between calls, never during one. */
	void (*reset)(void *state, unsigned n, const struct stage_rates *rates);
	/* Returns the index of the next stage in the visit set, < n. */
	unsigned (*next)(void *state, struct policy_in in);
	/* Tells the order, for a trace. NULL: the order never changes. */
	void (*order)(const void *state, struct policy_order *out);
};

#define POLICY_DECLARATION(name) extern const struct policy_class policy_##name;
EACH_POLICY(POLICY_DECLARATION)

/* Returns the policy of that name, or NULL. */
const struct policy_class *policy_find(const char *name);
bool policy_is_known(const char *name);

/* Writes "drain, cohort, ..." to out, for messages. */
void policy_list(char *out, size_t size);

/* Returns the index of a policy in the table, < POLICY_COUNT. */
unsigned policy_index(const struct policy_class *policy);

/* Returns the policy at that index of the table, or NULL after the last. */
const struct policy_class *policy_at(size_t index);

#endif
