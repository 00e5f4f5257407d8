/*
 * mechanisms.h - the mechanisms by the names that policies have for them.
 *
 * Private to sched/.
 */
#ifndef DARKROOM_SCHED_MECHANISMS_H
#define DARKROOM_SCHED_MECHANISMS_H

#include "policy/policy.h"

/* Returns the mechanism that a policy names. Any thread. */
const struct mechanism *mechanism_of(enum policy_mechanism id);

#endif
