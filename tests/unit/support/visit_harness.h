/*
 * visit_harness.h - a pipeline of three stages a, b, c, and workers without threads: the test takes
 * their steps.
 *
 * An event is a digit, or a letter if there are more. A trace such as "a1 b1" lists what was
 * served. Includes the definition of the program's graph.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_VISIT_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_VISIT_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/core/mechanism.h"
#include "sched/core/runtime.h"

enum { A, B, C, STAGES };
enum { WORKERS_MAX = 200, EVENTS_MAX = 200 };

struct item {
	struct event event;
	unsigned stage; /* the next one */
	bool has_ended;
};

extern struct graph *graph;
extern struct item items[EVENTS_MAX];

/* Calls while an event is served. */
struct during {
	void (*call)(struct visit *v, unsigned stage, unsigned number);
	unsigned left;                 /* the number of times that it is called */
	void (*after)(unsigned stage); /* called whenever an event has been sent on; or NULL */
};

extern struct during during;

/* A configuration with one worker. */
void harness_conf(struct conf *conf, const char *policy);

void harness_start(const struct conf *conf);
void harness_end(void);

struct worker *worker(unsigned index);
struct stage *stage(unsigned index);
unsigned worker_count(void);

/* Push events to a stage, from outside. */
void push(unsigned to, unsigned number);
void push_range(unsigned to, unsigned from, unsigned until);

/* Visits once, as the worker's mechanism chooses. */
enum visit_result step(unsigned worker, bool has_served);

/* Visits the stage once, and returns the trace of it. */
const char *visit(unsigned index);

/* Ends the workers' user-level threads. Visits the stages in turns until all are empty. */
void visit_all(void);

/* Returns the trace since the last call. */
const char *served(void);

#endif
