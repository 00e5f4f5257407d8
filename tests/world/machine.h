/*
 * machine.h - a machine in virtual time: CPUs, the kernel's scheduler, and threads.
 *
 * Each thread of the program is a coroutine, and the program has one real thread. Each CPU has a
 * clock. The CPU with the lowest clock runs next, so that threads change shared memory in the order
 * of virtual time; ties go by number. A thread leaves its CPU only in machine_charge(), or where it
 * blocks. So one seed has one execution, on every compiler and with every sanitizer.
 *
 * The thread that starts the machine has a CPU of its own beside those of the machine: it is the
 * world outside. All memory is sequentially consistent; tests/weak has the other orders.
 *
 * With `pct`, threads have priorities instead of clocks. They are drawn at random, each thread has
 * a CPU, the first that can run does, and at random steps it becomes the last. Such orders are
 * rare, and most races need only a few changes (Burckhardt et al., ASPLOS 2010: PCT).
 */
#ifndef DARKROOM_TESTS_WORLD_MACHINE_H
#define DARKROOM_TESTS_WORLD_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "costs.h"

#define MACHINE_FOREVER UINT64_MAX

/* X(name, value, meaning): settings of the environment variable WORLD, as NAME=VALUE, with spaces
 * between them. The costs of costs.h are settings as well. Times are in ns of CPU time. */
#define MACHINE_SETTINGS(X)                                                             \
	X(cpus, 4, "processors")                                                        \
	X(seed, 1, "of all that is random in the machine")                              \
	X(report, 0, "1: prints what the machine did, and the calls of each seam")      \
	X(slice, 2800000, "CPU time of a thread while others wait for a CPU")           \
	X(ahead, 1000000, "a woken thread preempts one with more CPU time by this")     \
	X(doze, 130000, "time after which an idle CPU sleeps deeper (the host, too)")   \
	X(chunk, 100000, "longest CPU time between checks for preemption")              \
	X(skip, 0, "1: looks for work in vain are one step, until something is pushed") \
	X(atomic, 0, "an atomic operation, where threads may be overtaken (atomics.c)") \
	X(jitter, 0, "each cost is longer by a random time below this")                 \
	X(pct, 0, "priorities: the mean number of steps between two changes")           \
	X(nodes, 1, "sets of workers with a memory or a cache of their own")            \
	X(date, 0, "seconds from 1970 until the machine starts")

struct machine_setting {
#define X(name, value, meaning) uint64_t name;
	MACHINE_SETTINGS(X)
#undef X
};
extern struct machine_setting machine;

/* For each cost a number of picoseconds. */
struct machine_costs {
#define X(name, ns, meaning) uint64_t name;
	MACHINE_COSTS(X)
#undef X
};
extern struct machine_costs machine_costs;

extern struct machine_stats {
	uint64_t threads, charges, switches, preemptions, wakes;
	struct machine_costs spent; /* without jitter */
} machine_stats;

struct thread;

/* Makes the calling thread the world outside. */
void machine_start(void);

/* Ends virtual time. */
void machine_stop(void);

/* Returns whether time is virtual. */
bool machine_is_on(void);

/* ---- the running thread ---- */

struct thread *machine_self(void);

/* Returns the time of its CPU in ns. */
uint64_t machine_now(void);

/* Returns the CPU time that it has used, or all threads together. */
uint64_t machine_cpu_ns(bool is_of_all);

/* Returns the number of its CPU. */
unsigned machine_cpu(void);

/* Uses its CPU for that long. Others may run meanwhile. */
void machine_charge(uint64_t ns);

/* Uses its CPU for some times that cost. */
#define machine_pay(cost, times) \
	machine_pay_to(&machine_stats.spent.cost, machine_costs.cost *(uint64_t)(times))
void machine_pay_to(uint64_t *account, uint64_t ps);

/* Waits until machine_wake(), or until that time. Returns false if the time has come. */
bool machine_block(uint64_t until_ns);

/* The same, but the thread keeps its CPU and uses its time. Not with pct. */
bool machine_spin(uint64_t until_ns);

/* Writes to a cache line that other cores write to as well: waits for the line. */
void machine_line(const void *address);

/* Returns a random number. */
uint64_t machine_random(void);

/* ---- other threads ---- */

/* Lets a thread run that is in machine_block(), or will be woken by nobody else. Does nothing if
 * its time has come. Returns whether its CPU had been idle for long. */
bool machine_wake(struct thread *t);

/* Returns whether it is in machine_block(), and its time has not come. */
bool machine_is_blocked(const struct thread *t);

/* Starts a thread. Ends the program if there are too many. */
struct thread *machine_thread_new(void *(*run)(void *), void *arg);

/* Waits for its end, and frees it. Returns its result. */
void *machine_thread_join(struct thread *t);

/* ---- lists of threads, first come first served ---- */

struct thread_list {
	struct thread *first;
};
void thread_list_add(struct thread_list *l, struct thread *t);
struct thread *thread_list_take(struct thread_list *l); /* NULL: it is empty */

#endif
