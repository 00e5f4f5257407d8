/*
 * perf_machine.h - perf.c on a simulated machine, which offers what the test chooses and counts
 * what it is told.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PERF_MACHINE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PERF_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "telemetry/perf.h"

enum { PERF_FD_MAX = 64 };

struct perf_machine {
	int refusal[PERF_COUNT]; /* errno of opening it; 0: it can be opened */
	int kernel_refusal;      /* errno of counting inside the kernel; 0: permitted */
	unsigned registers;      /* hardware counters of one group */
	unsigned registers_free; /* groups with more can be opened, but never run */
	unsigned files;          /* the most that can be open */
	bool is_unreadable;
	uint64_t value, enabled_ns, running_ns; /* so far; all counters have the same value */
	unsigned open;
};

extern struct perf_machine machine;

/* For cmocka_unit_test_setup(): a machine that offers everything. */
int perf_machine_begin(void **state);

/* Counts the events in all counters. The group runs for running_ns of enabled_ns and sees that part
 * of the events. */
void perf_machine_count(uint64_t events, uint64_t enabled_ns, uint64_t running_ns);

#endif
