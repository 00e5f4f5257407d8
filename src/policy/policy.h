/*
 * policy.h - which stage a core visits next.
 *
 * A policy is a pure function of what the last visit found: no queue, lock, clock or allocation in
 * here. State and rates belong to one worker. When to sleep is the group's decision, never the
 * policy's.
 */
#ifndef DARKROOM_POLICY_POLICY_H
#define DARKROOM_POLICY_POLICY_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define POLICY_STATE_MAX 512 /* bytes of state that a worker sets aside */

/* How a policy's stages get their threads. */
enum policy_mechanism {
	POLICY_POLL = 1, /* one thread per core; the policy says which stage is next */
	POLICY_CENTRAL,  /* one thread per core, waiting on one queue of (stage, event) */
	POLICY_POOL,     /* a pool of threads for each stage */
	POLICY_THREAD_PER_CONNECTION /* a pool of threads for connections, which call every stage
	                                directly */
};

struct policy_in {
	bool found;     /* the last visit handled at least one event */
	uint64_t ready; /* bit i: stage i of the visit set seemed to have an event; only if the
	                   class asks for it */
};

/* What was measured of a stage over the last interval, smoothed; zero if nothing was. */
struct stage_rates {
	double arrival_per_s;
	double service_per_s; /* events that one core handles per second of its time */
	unsigned cores;       /* that serve the stage, >= 1 */
	bool is_gated;        /* what comes in during a visit waits for the next one */
};

struct policy_class {
	const char *name;
	const char *help;
	enum policy_mechanism mechanism;
	bool wants_ready;
	/* For POLICY_POLL only. n >= 1 stages, in pipeline order. rates[n] is borrowed, refreshed
	 * by the group between calls, never during one. */
	void (*reset)(void *state, unsigned n, const struct stage_rates *rates);
	/* Returns an index in the visit set, < n. */
	unsigned (*next)(void *state, struct policy_in in);
};

extern const struct policy_class policy_cohort, policy_mg1, policy_srpt, policy_dbr, policy_drain;

/* The registry: every policy by its name in the INI. NULL if unknown. Any thread. */
const struct policy_class *policy_find(const char *name);
bool policy_is_known(const char *name);

/* "cohort, mg1, ...", for messages. */
void policy_list(char *out, size_t size);

/* The place of a policy in the registry, < POLICY_COUNT_MAX. */
unsigned policy_index(const struct policy_class *policy);

/* The registry in order; NULL after the last. For --help and /stats. */
const struct policy_class *policy_at(size_t index);

#endif
