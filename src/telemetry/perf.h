/*
 * perf.h - what the processor and the kernel count while a thread serves stages:
 * perf_event_open(2).
 *
 * Every thread has counters of its own, in as few groups as can be: a group is read by one system
 * call, and its counters always count together. One group has what the kernel counts; what the
 * processor counts is in another, or in several that take turns if it has too few registers for all
 * at once. Then the kernel tells how long a group was due and how long it did count, and sums are
 * scaled up when they are read, so that they are estimates.
 *
 * Not every machine offers every counter, virtual ones often none of the processor's. perf_probe()
 * finds out once for all threads. Knows no stage and no schedule.
 */
#ifndef DARKROOM_TELEMETRY_PERF_H
#define DARKROOM_TELEMETRY_PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* One list makes the ids and the members of /stats: first the processor's, then the kernel's. */
#define COUNTERS(X)                                                                           \
	X(cycles, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)                               \
	X(instructions, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS)                       \
	X(l1d_read_misses, PERF_TYPE_HW_CACHE, COUNTERS_READ_MISSES(PERF_COUNT_HW_CACHE_L1D)) \
	X(l1i_read_misses, PERF_TYPE_HW_CACHE, COUNTERS_READ_MISSES(PERF_COUNT_HW_CACHE_L1I)) \
	X(llc_read_misses, PERF_TYPE_HW_CACHE, COUNTERS_READ_MISSES(PERF_COUNT_HW_CACHE_LL))  \
	X(task_clock_ns, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK)                        \
	X(page_faults, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS)                         \
	X(context_switches, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES)

#define COUNTERS_ID(name, type, config) COUNTERS_##name,

enum perf_id { COUNTERS(COUNTERS_ID) COUNTERS_COUNT };

/* Counters that are opened as one group; the first leads it. */
struct perf_set {
	unsigned count;
	enum perf_id id[COUNTERS_COUNT];
};

/* What this process can count on this machine. All zero: nothing is wanted. */
struct perf_caps {
	bool is_on;
	bool is_user_only;           /* what happens in the kernel is not ours to count */
	int missing[COUNTERS_COUNT]; /* why a counter is not there, an errno; 0: it is */
	int paranoid;                /* kernel.perf_event_paranoid, or INT_MIN */
	unsigned group_count;
	struct perf_set group[COUNTERS_COUNT];
};

/* The counters of one thread. All zero: closed. */
struct perf_thread {
	/* owner writes, anyone reads */
	_Atomic bool is_on;
	/* owner only */
	bool has_failed; /* they could not be opened or read: not tried again before they are closed
	                  */
	unsigned group_count;
	struct perf_group {
		struct perf_set set;
		int fd[COUNTERS_COUNT];
		struct perf_reading {
			uint64_t count, enabled_ns, running_ns,
				value[COUNTERS_COUNT]; /* as read(2) gives them */
		} last;
	} group[COUNTERS_COUNT];
};

/* What has been counted of one stage on one thread. Owner writes, anyone reads; never reset. */
struct perf_total {
	struct {
		_Atomic uint64_t value, enabled_ns, running_ns;
	} of[COUNTERS_COUNT];
};

/* A reader's sum of several totals; begins zeroed. */
struct perf_sum {
	struct {
		double value; /* scaled */
		uint64_t seen_ns,
			unseen_ns; /* due on threads where it did count, and where it never has */
	} of[COUNTERS_COUNT];
};

const char *perf_name(enum perf_id id);

/* Finds out what can be counted, by opening it for a moment in the calling thread, and turns *o on,
 * even if that is nothing. */
void perf_probe(struct perf_caps *o);

/* Appends why the counter is not there. Any thread. */
void perf_print_reason(const struct perf_caps *o, enum perf_id id, struct text *to);

/* Writes one line to the log: what is counted, and what is missing and why. */
void perf_log(const struct perf_caps *o);

/* Opens the calling thread's counters, unless they are open, or have failed since they were closed.
 * 0, or -errno with none of them open: then nothing is counted here. Owner's thread, as all below
 * that take a struct perf_thread. */
int perf_open(struct perf_thread *t, const struct perf_caps *o);

/* Closes them, if they are open. */
void perf_close(struct perf_thread *t);

/* Reads them, and adds what they have counted since the last look to the total; NULL: to nobody's.
 * They must be on. Should reading fail, they are closed, with a warning. */
void perf_read(struct perf_thread *t, struct perf_total *to);

/* The same if they are on. This is all that counting costs where it is not wanted. */
static inline void perf_look(struct perf_thread *t, struct perf_total *to)
{
	if (__builtin_expect(atomic_load_explicit(&t->is_on, memory_order_relaxed), false))
		perf_read(t, to);
}

/* Adds a total to the sum. Any thread. */
void perf_collect(struct perf_sum *sum, const struct perf_total *total);

/* The sum of one counter; false if it was due but has never counted, so that nothing is known. */
bool perf_value(const struct perf_sum *sum, enum perf_id id, uint64_t *value);

#endif
