/*
 * controller.h - the interface of a controller, which changes the schedule by itself.
 *
 * A controller samples the running graph at intervals and may derive the next schedule from the
 * current one. controllers.c calls it when it is due. Private to sched/; main thread.
 */
#ifndef DARKROOM_SCHED_CONTROLLER_H
#define DARKROOM_SCHED_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct graph;
struct schedule;

struct controller_class {
	const char *name; /* for the log */
	/* Returns the interval in ns between steps under the schedule; 0: the controller is off. */
	uint64_t (*interval_ns)(const struct schedule *s);
	/* Starts under a schedule that all workers have adopted. */
	void (*start)(struct controller *c, const struct graph *g, const struct schedule *s,
	              uint64_t now_ns);
	/* Takes a sample. Returns true if something is to change: then the changes are made in
	 * *next, a copy of *now. */
	bool (*step)(struct controller *c, const struct graph *g, const struct schedule *now,
	             struct schedule *next, uint64_t now_ns);
};

/* Embedded in the state of each controller. */
struct controller {
	const struct controller_class *class;
	uint64_t due_ns; /* time of the next step; UINT64_MAX: off */
};

#endif
