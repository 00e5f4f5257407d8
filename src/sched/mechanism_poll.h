/*
 * mechanism_poll.h - the mechanism of policies with a visit order.
 *
 * See mechanism.h for the interface. Private to sched/.
 */
#ifndef DARKROOM_SCHED_MECHANISM_POLL_H
#define DARKROOM_SCHED_MECHANISM_POLL_H

#include "mechanism.h"

extern const struct mechanism mechanism_poll;

/* Assigns scheduler.threads workers, by default one per core: see struct mechanism. Pure. */
int poll_assign(struct schedule *s, const struct schedule_input *input, unsigned group);

/* Visits the next stage in the order of the worker's policy. Owner's thread. */
enum visit_result poll_visit(struct worker *w, bool has_served);

#endif
