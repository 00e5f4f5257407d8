/*
 * degrade.h - when the steps of overload.degrade are added and removed: numbers in, a level out.
 *
 * Pressure is what is taken of the room that a class has: above 1 an upload would be refused. A
 * step is added while the pressure is at least DEGRADE_ENTER, and one more for each upload that
 * would be refused. So nothing is refused before all steps are in.
 *
 * A step is removed after a time with a pressure below DEGRADE_LEAVE. That alone would not tell
 * whether the load has gone: images may be processed in time only because they are made cheaply. So
 * a removal is a trial. If a step has to be added again soon, the next trial waits twice as long,
 * up to eight times. It does not wait longer if the cores have time to spare.
 * Pure: no clock, no lock, no memory.
 */
#ifndef DARKROOM_IMAGE_DEGRADE_H
#define DARKROOM_IMAGE_DEGRADE_H

#include <stdbool.h>
#include <stdint.h>

#define DEGRADE_ENTER 0.5
#define DEGRADE_LEAVE 0.2

struct degrade_params {
	unsigned level_max; /* steps of overload.degrade */
	uint64_t step_ns;   /* between two steps that are added: they must have an effect first */
	uint64_t calm_ns;   /* without pressure, before one is removed */
};

/* All zero at first. */
struct degrade {
	unsigned level;
	uint64_t changed_ns;    /* when a step was added or removed last; 0: never */
	uint64_t calm_since_ns; /* 0: there is pressure */
	unsigned failures;      /* trials in a row that have failed */
	bool is_trial;          /* the last change was a removal */
};

/* Fills in the times for a target of the response time. */
void degrade_params_from(struct degrade_params *p, unsigned level_max, double target_s);

/* Some pressure was seen. Adds one step at most; removes one for each time of calm that has passed.
 * has_spare: the cores have been idle for much of the last seconds. The time never goes back. */
void degrade_look(struct degrade *d, const struct degrade_params *p, double pressure,
                  bool has_spare, uint64_t now_ns);

/* An upload would be refused. Returns true if a step was left to add. */
bool degrade_press(struct degrade *d, const struct degrade_params *p, uint64_t now_ns);

/* Returns whether no step is in, and the last one was removed so long ago that another would have
 * been, too. */
bool degrade_is_over(const struct degrade *d, const struct degrade_params *p, uint64_t now_ns);

#endif
