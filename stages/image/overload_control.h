/*
 * overload_control.h - the two controllers of admission: numbers in, numbers out.
 *
 * welsh is the response-time controller of M. Welsh (SEDA, 2002, 7.2.1), with classes (7.2.3). It
 * moves a rate until the 90th percentile meets its target.
 *
 * backlog is the default. It knows that a queue is as long as its content takes to serve. It
 * measures how much work per second the machine ends while it is busy, and admits as much as it
 * ends within the target. A small correction follows the measured percentile. So it needs no
 * search, and refuses nothing when the queue is empty. Pure: no clock, no lock, no memory.
 */
#ifndef DARKROOM_IMAGE_OVERLOAD_CONTROL_H
#define DARKROOM_IMAGE_OVERLOAD_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_CLASSES_MAX 4

/* Welsh 2002, figure 50, and 7.2.3 for the last two. */
struct control_params {
	double smoothing;           /* weight of the past in the moving average */
	double increase_below;      /* the rate grows while the error is below minus this */
	double decrease_above;      /* it falls while the error is above this */
	double increase;            /* added, per unit of -(error + increase_offset) */
	double increase_offset;     /* the error at which the increase would be 0 */
	double decrease;            /* divides the rate */
	double rate_min, rate_max;  /* requests/s */
	double decrease_lower;      /* divides the rates of lower classes */
	unsigned decrease_patience; /* steps at their minimum before the own rate falls */
};

/* A class of requests. Index 0 is the highest class. */
struct control_class {
	double target_s; /* of the 90th percentile */
	/* welsh */
	double rate;      /* requests/s */
	double current_s; /* smoothed percentile */
	bool is_over;     /* the target was exceeded at the last step */
	unsigned patience_used;
	/* backlog */
	double gain;    /* correction of the limit */
	double since_s; /* since the gain was changed */
};

struct control {
	struct control_class class[CONTROL_CLASSES_MAX];
	unsigned class_count;
	double capacity; /* backlog: work/s that the busy machine ends; 0: not measured yet */
};

/* What one class did in an interval. */
struct control_sample {
	double seconds; /* length of the interval */
	double p90_s;   /* of the response times; 0: none */
	bool has_refused;
};

/* Makes the state of class_count classes, with rates at their maximum. target_s: one for each. */
void control_init(struct control *c, const struct control_params *p, const double *target_s,
                  unsigned class_count);

/* Ends an interval of a class under welsh. */
void control_welsh_step(struct control *c, const struct control_params *p, unsigned class,
                        const struct control_sample *sample);

/* Ends an interval of a class under backlog. */
void control_backlog_step(struct control *c, unsigned class, const struct control_sample *sample);

/* The machine was busy for some seconds, and ended some work meanwhile. */
void control_backlog_measure(struct control *c, double work, double busy_s);

/* Returns how much admitted work the class may find when it arrives. The capacity is known. Each
 * class leaves half of the room of the next higher one free. */
double control_backlog_limit(const struct control *c, unsigned class);

#endif
