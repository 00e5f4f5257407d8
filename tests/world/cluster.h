/*
 * cluster.h - several nodes in one process and one thread, in virtual time.
 *
 * A node has a clock of its own, tasks that are coroutines, and memory and files that end with its
 * process. All that happens does so by timers: the one that is due first comes first. Timers of a
 * node that stands still wait until it goes on.
 */
#ifndef DARKROOM_TESTS_WORLD_CLUSTER_H
#define DARKROOM_TESTS_WORLD_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/coroutine.h"
#include "base/random.h"

#define NODES_MAX 4
#define TASKS_MAX 3 /* of a node */

struct node;

struct timer {
	struct timer *next;
	uint64_t at_ns;
	struct node *node; /* NULL: none's */
	void (*run)(struct timer *t);
	bool is_set;
};

struct task {
	struct coroutine coroutine;
	struct timer timer;
	struct node *node;
	void (*run)(struct task *t);
	bool has_stack;
};

struct node {
	int64_t ahead_ns; /* of the true time; its clock */
	uint64_t still_until_ns;
	struct task task[TASKS_MAX];
	struct memory *memory; /* in use */
};

extern struct cluster {
	uint64_t now_ns;      /* the true time, since 1970 */
	struct node *current; /* whose code runs; NULL: none's */
	struct random chance;
	struct node node[NODES_MAX];
	struct timer *timers;
	struct memory *memory; /* of none */
} cluster;

/* Returns a random number below this one. */
static inline uint64_t draw(uint64_t below)
{
	return random_next(&cluster.chance) % below;
}

void cluster_begin(uint64_t seed);

/* Runs until no timer is set. */
void cluster_run(void);

/* For struct seed_program. */
uint64_t cluster_clock(clockid_t id);
struct random *cluster_chance(void);

/* Lets the timer run, by the main stack. node: it is of that; NULL: of none. */
void timer_set(struct timer *t, struct node *node, uint64_t after_ns, void (*run)(struct timer *t));
void timer_clear(struct timer *t);

void task_start(struct node *n, unsigned i, void (*run)(struct task *t));

/* ---- of the task that runs ---- */

struct task *task_self(void);
void task_sleep(uint64_t ns);
void task_stop(void); /* until task_go() */
void task_go(struct task *t);
void task_move(struct node *n); /* it is of this node from now on */

/* Ends the node's process: its tasks, memory and files. */
void node_end(struct node *n);

/* Returns what the node's process has in use: buffers and open files. */
unsigned node_uses(const struct node *n);

#endif
