/*
 * overload.h - whether an upload is admitted: the work that was admitted and has not ended, the
 * measured response times, and the controller that compares them with the target.
 *
 * Work is in bytes: a file's, and WORK_PER_IMAGE for each image. Two rules hold for every
 * controller. An upload is admitted while some core would otherwise have too little to do: then its
 * response time is not a matter of queues, and a refusal would help nothing. And nothing is refused
 * while a pool of threads can still grow (Welsh 2002, 8.2). Images are made in cheaper ways before
 * an upload is refused (degrade.h): each class has a level of its own. Because a lower class has
 * less room, its images are degraded first. The work of a client that has much does not keep others
 * out, because clients have turns: client_work.h. The caller passes the time and locks.
 */
#ifndef DARKROOM_IMAGE_OVERLOAD_H
#define DARKROOM_IMAGE_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "degrade.h"
#include "overload_control.h"

struct conf;

#define OVERLOAD_SAMPLES_MAX 1000
#define OVERLOAD_RETRY_MAX_S 60
#define WORK_PER_IMAGE 16384

/* What the stages tell. */
enum overload_stages {
	OVERLOAD_STAGES_FIXED,
	OVERLOAD_STAGES_CAN_GROW,   /* a pool of threads has not reached its size */
	OVERLOAD_STAGES_HAVE_ENOUGH /* one of them refuses: sched/enqueue.h */
};

/* An admitted upload whose body has not come yet. It counts for a second: a client that stops there
 * must not keep others out. */
struct overload_ticket {
	/* of the caller */
	unsigned client; /* its slot in client_work.h */
	uint64_t ahead;  /* client_work_ahead(); 0: not known, all work comes before the upload */

	uint64_t slot; /* of time; 0: none */
	uint64_t work;
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
	unsigned count;
	uint32_t sample_us[OVERLOAD_SAMPLES_MAX];
};

#define OVERLOAD_SLOTS 5

struct overload {
	struct overload_params params;
	struct control control;
	bool can_grow;      /* as of the last upload */
	uint64_t looked_ns; /* when the levels were adapted last */
	struct overload_class class[CONTROL_CLASSES_MAX];
	/* admitted, body complete, not ended */
	uint64_t images, work;
	/* admitted, body not complete, by the time of admission */
	struct {
		uint64_t slot, uploads, work;
	} pending[OVERLOAD_SLOTS];
	/* of the current measurement of the capacity */
	uint64_t accounted_ns, busy_ns, busy_work;
	unsigned busy_images;
	double busy_share; /* of the last seconds */
	/* recent, for estimates */
	double admitted, refused;
	double p90_s; /* of the last interval of any class; 0: none */
};

/* Copies the parameters from a configuration. */
void overload_params_from(struct overload_params *p, const struct conf *conf, unsigned cores);

void overload_init(struct overload *o, const struct overload_params *p, uint64_t now_ns);

/* Applies changed parameters. What was measured stays, unless the classes have changed. */
void overload_change(struct overload *o, const struct overload_params *p, uint64_t now_ns);

/* Adapts the levels of all classes to the load. */
void overload_look(struct overload *o, uint64_t now_ns);

/* Adapts the levels, and returns whether degrade_is_over() holds for all classes. */
bool overload_is_over(struct overload *o, uint64_t now_ns);

/*
 * An upload of that work arrives. Returns whether it is admitted; *ticket then holds its place
 * until overload_begin() or overload_cancel().
 */
bool overload_admit(struct overload *o, unsigned class, uint64_t work, enum overload_stages stages,
                    struct overload_ticket *ticket, uint64_t now_ns);

/* The same for a client that has most of the images in flight: a quarter of the room is for others.
 */
bool overload_admit_heavy(struct overload *o, unsigned class, uint64_t work,
                          enum overload_stages stages, struct overload_ticket *ticket,
                          uint64_t now_ns);

/* The upload will not begin. An empty ticket is ignored. */
void overload_cancel(struct overload *o, struct overload_ticket *ticket, uint64_t now_ns);

/* Its body has come, and its images begin. The ticket may be empty, or NULL. */
void overload_begin(struct overload *o, struct overload_ticket *ticket, unsigned images,
                    uint64_t work, uint64_t now_ns);

/* An image has ended. */
void overload_end(struct overload *o, uint64_t work, uint64_t now_ns);

/* A response time of the class, as its client sees it. */
void overload_note(struct overload *o, unsigned class, uint64_t response_ns, uint64_t now_ns);

/* Returns after how many seconds a refused client of the class may be admitted: 1 to
 * OVERLOAD_RETRY_MAX_S. */
unsigned overload_retry_s(const struct overload *o, unsigned class);

/* Returns how long the admitted work takes; 0: not known. */
double overload_backlog_s(const struct overload *o);

#endif
