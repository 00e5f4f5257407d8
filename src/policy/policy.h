/*
 * policy.h - which stage a core visits next.
 *
 * A policy is a pure function of whether the last visit found work: no queue, lock, clock or allocation in
 * here. State belongs to one worker. When to sleep is the group's decision, never the policy's.
 */
#ifndef DARKROOM_POLICY_H
#define DARKROOM_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#define POLICY_STATE_MAX 64 /* bytes of state a worker sets aside */

struct policy_class {
	const char *name;
	const char *help;
	bool is_inline; /* no main group: every stage is pass-through on the threads that hold the connections */
	/* n >= 1 stages in the visit set, in pipeline order. */
	void (*reset)(void *state, unsigned n);
	/* found: the last visit handled at least one event. Returns an index in the visit set, < n. */
	unsigned (*next)(void *state, bool found);
};

extern const struct policy_class policy_cohort;

/* The registry: every policy by its name in the INI. NULL if unknown. Any thread. */
const struct policy_class *policy_find(const char *name);
bool policy_is_known(const char *name);

/* "cohort, thread-per-connection", for messages. */
void policy_list(char *out, size_t size);

#endif
