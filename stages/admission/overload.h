/*
 * overload.h - whether an upload is admitted: the work that was admitted and has not ended, the
 * measured response times, and the controller that compares them with the target.
 *
 * Work is CPU time in ns, as cost.h expects it. Two rules hold for every
 * controller. An upload is admitted while some core would otherwise have too little to do: then its
 * response time is not a matter of queues, and a refusal would help nothing. And nothing is refused
 * while a pool of threads can still grow (Welsh 2002, 8.2). Images are made in cheaper ways before
 * an upload is refused (struct degrade): each class has a level of its own. Because a lower class
 * has less room, its images are degraded first. A client that has had much leaves a part of the
 * room to others: shares.h. The caller passes the time and locks.
 *
 * There are two controllers. welsh is the response-time controller of M. Welsh (SEDA, 2002, 7.2.1),
 * with classes (7.2.3). It moves a rate until the 90th percentile meets its target.
 *
 * backlog is the default. It knows that a queue is as long as its content takes to serve. It
 * measures how much work per second the machine ends while it is busy, and admits as much as it
 * ends within the target. A small correction follows the measured percentile. So it needs no
 * search, and refuses nothing when the queue is empty.
 */
#ifndef DARKROOM_ADMISSION_OVERLOAD_H
#define DARKROOM_ADMISSION_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "shares.h"

#define OVERLOAD_SAMPLES_MAX 1000
#define OVERLOAD_RETRY_MAX_S 60

/* ---- the controllers: numbers in, numbers out ---- */

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
	double capacity; /* backlog: work/s that the busy machine ends; at first, a second on each
	                    core */
};

/* What one class did in an interval. */
struct control_sample {
	double seconds; /* length of the interval */
	double p90_s;   /* of the response times; 0: none */
	bool has_refused;
};

/* ---- degradation ---- */

#define DEGRADE_ENTER 0.5
#define DEGRADE_LEAVE 0.2

/*
 * When the steps of overload.degrade are added and removed. All zero at first.
 *
 * Pressure is what is taken of the room that a class has: above 1 an upload would be refused. A
 * step is added while the pressure is at least DEGRADE_ENTER, and one more for each upload that
 * would be refused. So nothing is refused before all steps are in.
 *
 * A step is removed after a time with a pressure below DEGRADE_LEAVE. That alone would not tell
 * whether the load has gone: images may be processed in time only because they are made cheaply. So
 * a removal is a trial. If a step has to be added again soon, the next trial waits twice as long,
 * up to eight times. It does not wait longer if the cores have time to spare.
 */
struct degrade {
	unsigned level;
	uint64_t changed_ns;    /* when a step was added or removed last; 0: never */
	uint64_t calm_since_ns; /* 0: there is pressure */
	unsigned failures;      /* trials in a row that have failed */
	bool is_trial;          /* the last change was a removal */
};

struct degrade_params {
	unsigned level_max; /* steps of overload.degrade */
	uint64_t step_ns;   /* between two steps that are added: they must have an effect first */
	uint64_t calm_ns;   /* without pressure, before one is removed */
};

/* ---- admission ---- */

/* What the stages tell. */
enum overload_stages {
	OVERLOAD_STAGES_FIXED,
	OVERLOAD_STAGES_CAN_GROW,   /* a pool of threads has not reached its size */
	OVERLOAD_STAGES_HAVE_ENOUGH /* one of them refuses: graph_full_stage() */
};

/* An admitted upload whose body has not come yet. */
struct overload_ticket {
	/* of the caller */
	unsigned client;   /* its slot */
	bool has_all_room; /* whatever it has had: it may stand for many */

	bool is_held;
	uint64_t work;  /* that is counted as announced */
	unsigned level; /* of overload.degrade when it was admitted */
};

struct overload_params {
	uint64_t controller; /* enum conf_controller */
	unsigned samples;    /* that end an interval */
	uint64_t interval_ns;
	struct control_params control;
	double target_s[CONTROL_CLASSES_MAX];
	unsigned class_count;
	unsigned cores;
	uint64_t images_max;    /* admitted at once */
	unsigned degrade_steps; /* of overload.degrade */
};

/* What one class did since its interval began. */
struct overload_class {
	uint64_t start_ns;
	double tokens;      /* welsh */
	uint64_t filled_ns; /* when the tokens were counted */
	uint64_t refused;   /* in this interval */
	struct degrade degrade;
	struct degrade_params degrade_params;
	unsigned count;
	uint32_t sample_us[OVERLOAD_SAMPLES_MAX];
};

struct overload {
	struct overload_params params;
	struct control control;
	bool can_grow;      /* as of the last upload */
	uint64_t looked_ns; /* when the levels were adapted last */
	struct overload_class class[CONTROL_CLASSES_MAX];
	struct load in_flight; /* admitted, body complete, not ended */
	struct shares shares;
	/* of the current measurement of the capacity */
	uint64_t accounted_ns, busy_ns, busy_work;
	unsigned busy_images;
	double busy_share; /* of the last seconds */
	/* recent, for estimates */
	double admitted, refused;
	double p90_s; /* of the last interval of any class; 0: none */
};

/* Returns how much admitted work the class may find when it arrives. Each
 * class leaves half of the room of the next higher one free. */
double control_backlog_limit(const struct control *c, unsigned class);

void overload_init(struct overload *o, const struct overload_params *p, uint64_t now_ns);

/* Applies changed parameters. What was measured stays, unless the classes have changed. */
void overload_change(struct overload *o, const struct overload_params *p, uint64_t now_ns);

/* Adapts the levels of all classes to the load. */
void overload_look(struct overload *o, uint64_t now_ns);

/* Adapts the levels, and returns whether no step is in, and the last ones were removed so long ago
 * that others would have been, too. */
bool overload_is_over(struct overload *o, uint64_t now_ns);

/*
 * An upload of that work arrives. Returns whether it is admitted; *ticket then holds its place
 * until overload_begin() or overload_cancel().
 */
bool overload_admit(struct overload *o, unsigned class, uint64_t work, enum overload_stages stages,
                    struct overload_ticket *ticket, uint64_t now_ns);

/* The upload will not begin. An empty ticket is ignored. */
void overload_cancel(struct overload *o, struct overload_ticket *ticket, uint64_t now_ns);

/* Its body has come, and its images begin. The ticket may be empty, or NULL. */
void overload_begin(struct overload *o, unsigned client, struct overload_ticket *ticket,
                    unsigned images, uint64_t work, uint64_t now_ns);

/* An image has ended, and has taken that CPU time. */
void overload_end(struct overload *o, unsigned client, uint64_t work, uint64_t spent_ns,
                  uint64_t now_ns);

/* A response time of the class, as its client sees it. */
void overload_note(struct overload *o, unsigned class, uint64_t response_ns, uint64_t now_ns);

/* Returns after how many seconds a refused client of the class may be admitted: 1 to
 * OVERLOAD_RETRY_MAX_S. */
unsigned overload_retry_s(const struct overload *o, unsigned class);

/* Returns what is in flight, and what is expected of announced uploads. */
struct load overload_load(const struct overload *o);

/* Returns how long that takes. */
double overload_backlog_s(const struct overload *o);

#endif
