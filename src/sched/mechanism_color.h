/*
 * mechanism_color.h - the mechanism of policy color, a central queue of turns.
 *
 * See mechanism.h for the interface. Private to sched/.
 */
#ifndef DARKROOM_SCHED_MECHANISM_COLOR_H
#define DARKROOM_SCHED_MECHANISM_COLOR_H

#include "mechanism.h"

extern const struct mechanism mechanism_color;

/* Takes the oldest turn of the domain. Returns its stage, or NULL. Any thread. */
struct stage *color_take_turn(struct group *g, unsigned domain);

/* Frees the group's queues of turns. Main thread, after the workers have ended. */
void color_fini(struct group *g);

#endif
