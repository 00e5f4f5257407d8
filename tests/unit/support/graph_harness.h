/*
 * graph_harness.h - real workers on a small graph, in which events go round and round.
 *
 * A run checks the following. Each event is handled exactly once per stage and in the order of its
 * stages, in its replica and in the stage's part. No exclusive stage is entered twice at a time.
 * Order is kept where it is promised. No event starves under a constant load. No worker sleeps
 * while there is work that it may do. In the end all queues are empty and all workers sleep. A
 * failure is printed with the setting and the state of all queues and workers. Includes the
 * definition of the program's graph.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_GRAPH_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_GRAPH_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sched/core/graph.h"
#include "sched/core/runtime.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWNESS 10
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SLOWNESS 10
#endif
#endif
#ifndef SLOWNESS
#define SLOWNESS 1
#endif

enum { FIRST, SECOND, THIRD, DISK, CALLED, REPLY, STAGES };
enum { WORKERS = 4, IO_THREADS = 3, LANES = 4, EVENTS_MAX = 128, SENDERS_MAX = 128 };
enum kinds { AS_DECLARED, ALL_SHARED, ALL_EXCLUSIVE, KINDS_COUNT };

/* How events choose their replica; with AT_RANDOM they also change it at THIRD. */
enum spread { AT_RANDOM, EVENLY, ALL_TO_ONE };

struct setting {
	const char *policy;
	enum schedule_service service;
	enum conf_discipline discipline;
	enum kinds kinds;
	unsigned spin_us;
	bool is_switched; /* while running; queued events may then change their queue, so that no
	                   * order is kept */
	enum conf_layout_mode layout;
	unsigned domains;            /* replicas or parts; 0: 2 */
	bool steals_across_replicas; /* replicas */
	bool is_online;              /* parts */
	const char *third_policy;    /* of a group of THIRD with two threads; NULL: no such group */
	enum spread spread;
};

/* Plain fields on purpose: an event with two owners is a race that the thread sanitizer sees. */
struct item {
	struct event event;
	unsigned instance; /* of REPLY, to which it must come back */
	unsigned stage;    /* the next one */
	unsigned rounds;   /* completed */
	bool has_yielded;
	unsigned sender,
		number; /* the last sender, and how many events that had sent to the queue */
};

struct run {
	char name[200];
	struct graph *graph;
	struct item items[EVENTS_MAX];
	unsigned events, rounds;
	bool is_exclusive[STAGES];
	enum spread spread;
	bool is_ordered[STAGES]; /* the events of one sender keep their order */
	unsigned meeting;        /* events that must be in THIRD at the same time; 0: none */
	_Atomic unsigned met;
	_Atomic unsigned inside[STAGES][LANES];
	unsigned last[STAGES][LANES][SENDERS_MAX]; /* owned by the one worker in the stage */
	_Atomic unsigned senders;
	_Atomic unsigned behind; /* events that have not completed their rounds */
	_Atomic unsigned going;  /* events that have not ended */
	_Atomic uint64_t handled;
	_Atomic bool is_disk_hung;  /* DISK does not go on */
	_Atomic bool has_no_memory; /* for a worker's scratch of THIRD */
	_Atomic unsigned hung;      /* workers that wait in DISK */
};

extern struct run run;

/* Called by run_start() when the workers run and no event has come yet; NULL: nothing. */
extern void (*run_before_events)(void);

/* Unless the environment has DARKROOM_THOROUGH, a fourth of the rounds are run. With sanitizers,
 * which make a run several times slower, it is an eighth, and every tenth of many settings. */
static inline bool is_sampled(unsigned setting_number)
{
	return SLOWNESS == 1 || setting_number % 10 == 0 || getenv("DARKROOM_THOROUGH");
}

static inline unsigned fewer(unsigned rounds)
{
	return getenv("DARKROOM_THOROUGH") ? rounds : rounds / (SLOWNESS == 1 ? 4 : 8);
}

/* Fills in the configuration of a setting. */
void run_conf(struct conf *conf, const struct setting *setting);

/* Sets run.name. */
void run_describe(const struct setting *setting);

/* Sets the stages that are exclusive, and those that keep the order of events: one worker at a time
 * serves the oldest event there. */
void run_expect(const struct setting *setting);

/* Starts a graph and pushes the events, which each complete the given number of rounds. */
void run_start(const struct setting *setting, unsigned events, unsigned rounds, unsigned meeting);

/* Waits until all events have ended. */
void run_wait(void);

/* Waits until all workers sleep, and checks that all queues are empty. */
void run_wait_for_sleep(void);

/* Waits for both, stops the graph and checks the events. */
void run_finish(void);

/* Switches to the configuration, and returns when every worker has adopted it. */
void run_switch(const struct conf *conf);

unsigned random_below(unsigned n);

#endif
