/*
 * perf.h - performance counters of the processor and the kernel for each thread:
 * perf_event_open(2).
 *
 * Every thread opens its counters as one group: one system call reads all of them, and they always
 * count together. If the processor has too few registers for a counter next to the others, it is
 * left out; `perf stat` is for more. If another process uses the registers as well, the kernel lets
 * the group count for a part of the time only. Values are then scaled up and are estimates.
 *
 * Not every machine offers every counter; virtual machines often have none of the processor's.
 * perf_probe() finds out once for all threads. Knows no stage and no schedule.
 */
#ifndef DARKROOM_TELEMETRY_PERF_H
#define DARKROOM_TELEMETRY_PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct text;

/* The counters: ids, members of /stats and events of the kernel. The processor's come first,
 * because one of them must lead a group that has any. */
#define PERF_COUNTERS(X)                                                                  \
	X(cycles, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)                           \
	X(instructions, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS)                   \
	X(l1d_read_misses, PERF_TYPE_HW_CACHE, PERF_READ_MISSES(PERF_COUNT_HW_CACHE_L1D)) \
	X(l1i_read_misses, PERF_TYPE_HW_CACHE, PERF_READ_MISSES(PERF_COUNT_HW_CACHE_L1I)) \
	X(llc_read_misses, PERF_TYPE_HW_CACHE, PERF_READ_MISSES(PERF_COUNT_HW_CACHE_LL))  \
	X(task_clock_ns, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK)                    \
	X(page_faults, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS)                     \
	X(context_switches, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES)

#define PERF_ID(name, type, config) PERF_##name,

enum perf_id { PERF_COUNTERS(PERF_ID) PERF_COUNT };

/* What this process can count on this machine. All zero: counting is off. */
struct perf_caps {
	bool is_on;
	bool is_user_only;           /* counting inside the kernel is not permitted */
	int missing[PERF_COUNT];     /* errno: why a counter is missing; 0: it is not */
	unsigned count;              /* of the group */
	enum perf_id id[PERF_COUNT]; /* of the group; the first leads it */
};

/* The counters of one thread. All zero: closed. */
struct perf_thread {
	/* owner writes, any thread reads */
	_Atomic bool is_on;
	/* owner only */
	bool has_failed; /* opening or reading failed: no retry before perf_close() */
	unsigned count;
	enum perf_id id[PERF_COUNT];
	int fd[PERF_COUNT];
	struct perf_reading { /* as read(2) returns it */
		uint64_t count, enabled_ns, running_ns, value[PERF_COUNT];
	} last;
};

/* What one thread has counted for one stage. Owner writes, any thread reads; never reset. */
struct perf_total {
	_Atomic uint64_t value[PERF_COUNT];
};

/* A reader's sum of several totals; begins zeroed. */
struct perf_sum {
	uint64_t value[PERF_COUNT];
};

const char *perf_name(enum perf_id id);

/* Finds out what can be counted, by opening counters in the calling thread for a moment. Turns *o
 * on, even if nothing can be counted. */
void perf_probe(struct perf_caps *o);

/* Appends why the counter is missing. Any thread. */
void perf_print_reason(const struct perf_caps *o, enum perf_id id, struct text *to);

/* Logs in one line what is counted, and what is missing and why. */
void perf_log(const struct perf_caps *o);

/* Opens the calling thread's counters, unless they are open or have failed since perf_close().
 * Returns 0, or -errno with none of them open. All functions that take a struct perf_thread run on
 * its owner's thread. */
int perf_open(struct perf_thread *t, const struct perf_caps *o);

/* Closes the counters, if they are open. */
void perf_close(struct perf_thread *t);

/* Reads the counters, which must be on, and adds the difference to the last reading to the total;
 * NULL: to none. If reading fails, it closes them and logs a warning. */
void perf_read(struct perf_thread *t, struct perf_total *to);

/* perf_read() if they are on. This is the whole cost of counters that are off. */
static inline void perf_look(struct perf_thread *t, struct perf_total *to)
{
	if (__builtin_expect(atomic_load_explicit(&t->is_on, memory_order_relaxed), false))
		perf_read(t, to);
}

/* Adds a total to the sum. Any thread. */
void perf_collect(struct perf_sum *sum, const struct perf_total *total);

#endif
