/* report.h - the results of a run, as text or as one JSON document. Main thread. */
#ifndef DARKROOM_LOADGEN_LOAD_REPORT_H
#define DARKROOM_LOADGEN_LOAD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "command_line.h"
#include "corpus.h"
#include "request_stats.h"
#include "server_usage.h"

struct report {
	const struct command_line *args;
	const struct corpus *files;
	const struct request_stats *stats; /* of all threads */
	const struct server_usage *server;
	const uint64_t *per_connection; /* responses; args->connections of them */
	double makespan_s;              /* first byte sent to last response received */
	uint64_t unsent;                /* open-loop requests that were due but not sent */
	bool is_interrupted;
	bool is_ok;
};

/* Returns Jain, Chiu and Hawe's index: 1 if all have the same, 1/n if one has everything. Returns 1
 * if all have nothing. */
double report_fairness(const uint64_t *shares, unsigned count);

/* Write to standard output. Return 0, or -1 after reporting a failed write. */
int report_text(const struct report *r);
int report_json(const struct report *r);

/* Says on standard error why a run failed, for a run that writes no report. */
void report_failure(const struct report *r);

#endif
