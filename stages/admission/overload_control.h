/*
 * overload_control.h - the controllers of overload.controller: numbers in, numbers out.
 *
 * A controller is a row of functions. It learns of response times and of times in the queue, and
 * says whether an upload may pass. overload.h has the rules that hold for all of them.
 *
 * backlog is the default. It knows that a queue is as long as its content takes to serve. It
 * measures how much work per second the machine ends while it is busy, and admits as much as it
 * ends within the target. A small correction follows the measured percentile. So it needs no
 * search, and refuses nothing when the queue is empty.
 *
 * The others are its rivals, for experiments:
 * - welsh moves a rate until the percentile meets the target (M. Welsh, SEDA, 2002, 7.2.1), with
 *   classes (7.2.3).
 * - rate is welsh, mended: it waits for the effect of a change, begins to fall at the rate that the
 *   machine ends, and falls by as much as the percentile is above the target.
 * - codel refuses at growing frequency while the time in the queue stays too long (RFC 8289). It
 *   refuses uploads that arrive, because an upload that has waited has been sent in vain.
 * - dagor admits priorities up to a threshold, which moves by the mean time in the queue (Zhou et
 *   al., Overload Control for Scaling WeChat Microservices, 2018, 4.2). A priority is an operator's
 *   class, and within it a hash of the client that changes each hour.
 *
 * The caller passes the time and locks.
 */
#ifndef DARKROOM_ADMISSION_OVERLOAD_CONTROL_H
#define DARKROOM_ADMISSION_OVERLOAD_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_CLASSES_MAX 4
#define CONTROL_PRIORITIES 128 /* of each class: dagor */

/* Welsh 2002, figure 50, and 7.2.3 for decrease_lower and decrease_patience. */
struct control_params {
	double smoothing;           /* weight of the past in the moving average */
	double increase_below;      /* the rate grows while the error is below minus this */
	double decrease_above;      /* it falls while the error is above this */
	double increase;            /* added, per unit of -(error + increase_offset) */
	double increase_offset;     /* the error at which the increase would be 0 */
	double decrease;            /* divides the rate */
	double rate_min, rate_max;  /* requests/s */
	double decrease_lower;      /* divides the rates of lower classes */
	uint64_t decrease_patience; /* steps at their minimum before the own rate falls */
	/* our own: overload_control.c */
	double rate_rise, gain_rise; /* rate, backlog: factor of one step */
	double rise_below;           /* rate, backlog: of the target */
	double gain;                 /* backlog: at first */
	double aim;                  /* backlog: percentile, as a part of the target */
	double queue_target;         /* codel, dagor: time in the queue, as a part of the target */
	/* Zhou et al. 2018, 4.2.3 */
	uint64_t dagor_window_ns;
	double dagor_fall, dagor_rise; /* of what was admitted, and of what asked */
};

/* A class of requests. Index 0 is the highest class. */
struct control_class {
	double target_s;  /* of the 90th percentile */
	double current_s; /* smoothed percentile */
	/* welsh, rate */
	double rate; /* requests/s */
	double tokens;
	uint64_t filled_ns; /* when the tokens were counted */
	bool is_over;       /* welsh: the target was exceeded at the last step */
	unsigned patience_used;
	/* backlog */
	double gain; /* correction of the limit */
	/* backlog, rate */
	double since_s; /* since the last change */
	/* codel: as RFC 8289 names them */
	bool is_dropping, is_long; /* is_long: the queue has been long for an interval */
	unsigned count, last_count;
	uint64_t first_above_ns, next_ns;
};

/* dagor's window. */
struct control_priorities {
	uint64_t end_ns;
	unsigned threshold; /* admitted are priorities up to it */
	unsigned asked, admitted, ended;
	uint64_t queued_ns; /* of all that have ended */
	unsigned asked_at[CONTROL_CLASSES_MAX * CONTROL_PRIORITIES];
};

struct control {
	struct control_class class[CONTROL_CLASSES_MAX];
	unsigned class_count;
	double capacity; /* work/s that the busy machine ends; at first, a second on each core */
	struct control_priorities priorities;
};

/* What one class did in an interval. */
struct control_sample {
	double seconds; /* length of the interval */
	double p90_s;   /* of the response times, of the worst size; 0: none */
	double ended;   /* uploads per second */
	bool has_refused;
};

/* An upload that asks. */
struct control_ask {
	unsigned class, client;
	double work, room; /* what it finds, and the share of the class's room that it may use */
	bool is_let_in;    /* by a rule of overload.h, whatever the controller says */
	uint64_t now_ns;
};

/* A controller. Functions that it does not need are NULL. */
struct controller {
	bool is_by_time; /* pressure is the response time, not the backlog */
	/* An interval of a class has ended. */
	void (*step)(struct control *c, const struct control_params *p, unsigned class,
	             const struct control_sample *sample);
	/* An image of a class has ended. */
	void (*note)(struct control *c, const struct control_params *p, unsigned class,
	             uint64_t queued_ns, uint64_t now_ns);
	/* Returns whether an upload may pass. */
	bool (*admit)(struct control *c, const struct control_params *p,
	              const struct control_ask *ask);
};

/* Returns a controller by its enum conf_controller. */
const struct controller *control_find(uint64_t controller);

/* Makes the state of class_count classes, with rates at their maximum. target_s: one for each. */
void control_init(struct control *c, const struct control_params *p, const double *target_s,
                  unsigned class_count, uint64_t now_ns);

/* The machine was busy for some seconds, and ended some work meanwhile. constant_s: time constant
 * of the capacity. */
void control_measure(struct control *c, double work, double busy_s, double constant_s);

/* Returns how much admitted work the class may find when it arrives. Each class leaves half of the
 * room of the next higher one free. */
double control_backlog_limit(const struct control *c, unsigned class);

#endif
