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
 * The percentile that a controller meets is that of the worst size of picture (OVERLOAD_SIZES): if
 * large ones are rare, a percentile of all would say nothing of them. So one target holds for each
 * class and each size. A picture whose own work takes half of the target or more does not count: a
 * shorter queue would hardly help it. The controllers: overload_control.h.
 */
#ifndef DARKROOM_ADMISSION_OVERLOAD_H
#define DARKROOM_ADMISSION_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "overload_control.h"
#include "shares.h"

#define OVERLOAD_SAMPLES_MAX 1000
#define OVERLOAD_SIZES 3 /* of pictures, by their work: up to 2 and 8 times the mean, and more */
#define OVERLOAD_RETRY_MAX_S 60

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
	uint64_t half_life_ns; /* shares.h, as the next one */
	double reserve;
	struct control_params control;
	double target_s[CONTROL_CLASSES_MAX];
	unsigned class_count;
	unsigned cores;
	uint64_t images_max;    /* admitted at once */
	unsigned degrade_steps; /* of overload.degrade */
};

/* Response times of one size of picture. They are kept until there are enough for a percentile. */
struct overload_size {
	unsigned count, intervals; /* samples, and intervals since the last percentile */
	double p90_s;              /* 0: not known */
	uint32_t sample_us[OVERLOAD_SAMPLES_MAX];
};

/* What one class did since its interval began. */
struct overload_class {
	uint64_t start_ns;
	bool has_refused; /* or has let an upload wait */
	unsigned ended;
	struct degrade degrade;
	struct degrade_params degrade_params;
	struct overload_size size[OVERLOAD_SIZES];
};

struct overload {
	struct overload_params params;
	const struct controller *controller;
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
	/* recent, for estimates; an upload that waits is neither */
	double admitted, refused;
	double mean_work; /* of an image */
};

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

/* An image that has ended, as its client sees it. */
struct overload_response {
	uint64_t response_ns;
	uint64_t work, spent_ns; /* expected, and taken */
};

void overload_note(struct overload *o, unsigned class, const struct overload_response *r,
                   uint64_t now_ns);

/* Returns the last 90th percentile of the response times in seconds, of the class and the size in
 * which it is worst; 0: none. */
double overload_p90_s(const struct overload *o);

/* An upload is refused: it was not admitted, and does not wait. Returns after how many seconds its
 * client may be admitted, if the load stays as it is: 1 to OVERLOAD_RETRY_MAX_S. */
unsigned overload_refuse(struct overload *o, unsigned class, const struct overload_ticket *ticket,
                         uint64_t now_ns);

/* Returns what is in flight, and what is expected of announced uploads. */
struct load overload_load(const struct overload *o);

/* Returns how long that takes. */
double overload_backlog_s(const struct overload *o);

#endif
