/*
 * mechanism.h - how the threads of a stage group get their stages.
 *
 * Each mechanism is one constant and one row of mechanism_of(). A policy names its mechanism
 * (policy/policy.h); many policies share POLICY_POLL. The mechanism is chosen when a schedule is
 * built, and all other code calls it through this struct. Private to sched/.
 */
#ifndef DARKROOM_SCHED_CORE_MECHANISM_H
#define DARKROOM_SCHED_CORE_MECHANISM_H

#include <stdbool.h>

struct group;
struct schedule;
struct schedule_input;
struct stage;
struct worker;

/* The result of one visit. */
enum visit_result {
	VISIT_SERVED = 1, /* at least one event was handled */
	VISIT_EMPTY,      /* no event was found in this stage */
	VISIT_ALL_EMPTY   /* no event was found in any stage that the worker may visit */
};

struct mechanism {
	/* Properties, used when a schedule is built. */
	bool has_core_per_worker; /* a worker is bound to one core; otherwise to all cores of its
	                           * domain */
	bool has_stacks;          /* workers may keep events on stacks of their own */
	bool has_thresholds;      /* thresholds may interrupt a visit */

	/* Assigns the stages and domains of the stage group of that index to workers. Returns 0,
	 * or -EINVAL with a contradiction of the configuration in input->error. Pure. */
	int (*assign)(struct schedule *s, const struct schedule_input *input, unsigned group);

	/* Assigns them again after the partition of an unpublished schedule has changed. NULL: as
	 * many workers as the parts have cores. Pure. */
	void (*reassign)(struct schedule *s);

	/* Makes what the stage group needs before the schedule is published. Returns 0 or
	 * -ENOMEM. May be NULL. Main thread. */
	int (*prepare)(struct group *g, const struct schedule *s, unsigned group);

	/* End and start the use of the mechanism, after all workers have adopted a schedule. Both
	 * are called at every switch, for each stage group that has the mechanism: first stop() by
	 * the previous schedule, then start() by the new one. Either may be NULL. Main thread. */
	void (*stop)(struct group *g);
	void (*start)(struct group *g, const struct schedule *s, unsigned group);

	/* Called after an event was pushed to a queue of the main group, before a worker is
	 * woken. May be NULL. Any thread. */
	void (*queued)(struct stage *s, const struct schedule *schedule, unsigned queue);

	/* Chooses a stage and visits it. has_served: the previous visit handled an event. The
	 * visit set is not empty. Owner's thread. */
	enum visit_result (*visit)(struct worker *w, bool has_served);
};

/* ---- the mechanisms, and what they share ---- */

extern const struct mechanism mechanism_poll;  /* policies with a visit order */
extern const struct mechanism mechanism_color; /* a central queue of turns */
extern const struct mechanism mechanism_pool;  /* policy seda: a pool of threads for each stage */
extern const struct mechanism mechanism_thread_per_connection;
extern const struct mechanism mechanism_user_threads; /* a user-level thread for each event */

#define CHECK_VISITS 64 /* visits between checks of stages called directly, and of the rates */

/* Assigns scheduler.threads workers, by default one per core: see struct mechanism. Pure. */
int poll_assign(struct schedule *s, const struct schedule_input *input, unsigned group);

/* Visits the next stage in the order of the worker's policy. Owner's thread. */
enum visit_result poll_visit(struct worker *w, bool has_served);

/* Begins a short interval under the schedule, for the worker's polled stages, and gives the policy
 * the rates of the time before. */
void rates_restart(struct worker *w, const struct schedule *schedule);

/* Frees the group's queues of turns. Main thread, after the workers have ended. */
void color_fini(struct group *g);

/* Returns the number of pools of a stage: one per replica in layout replicate, otherwise 1. Any
 * thread. */
unsigned pool_count(const struct schedule *s, unsigned stage);

/* Resizes the stage's pool of that index in an unpublished schedule, by adding free workers or
 * removing some. Returns the new number of threads, which may be less than wanted. Pure. */
unsigned pool_resize(struct schedule *s, unsigned stage, unsigned pool, unsigned threads);

#endif
