/* report.h - the run in figures: as text, as JSON, and as a line that changes while it lasts. Main
 * thread. */
#ifndef DARKROOM_LOADGEN_LOAD_REPORT_H
#define DARKROOM_LOADGEN_LOAD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "command_line.h"
#include "corpus.h"
#include "request_stats.h"
#include "server_usage.h"

struct load_report {
	const struct load_args *args;
	const struct load_files *files;
	const struct load_stats *stats; /* of all workers */
	const struct load_server *server;
	const uint64_t *per_connection; /* responses; args->connections of them */
	double makespan_s;              /* first byte sent to last response received */
	uint64_t unsent;                /* open loop: due, but never sent */
	bool is_interrupted;
	bool is_ok;
};

/* Jain, Chiu and Hawe's index: 1 if all have the same, 1/n if one has all. 1 if nobody has
 * anything. */
double load_fairness(const uint64_t *shares, unsigned count);

/* On standard output. Returns 0, or -1 if it could not be written. */
int load_report_text(const struct load_report *r);
int load_report_json(const struct load_report *r);

struct load_progress {
	struct load_stats *earlier, *now; /* sums of all workers, and of a second ago */
	uint64_t start_ns, earlier_ns;
	uint64_t total;       /* requests; 0: unknown */
	uint64_t duration_ns; /* 0: unknown */
	bool is_open;         /* shows the latency from when requests were due */
	bool is_shown;
};

/* Returns 0 or -ENOMEM. */
int load_progress_init(struct load_progress *p, const struct load_args *args, uint64_t total,
                       uint64_t start_ns);
void load_progress_fini(struct load_progress *p);

/* Where the sum of all workers is to be made, zeroed, for the next line. */
struct load_stats *load_progress_stats(struct load_progress *p);

/* Writes the line from it. */
void load_progress_show(struct load_progress *p, uint64_t now_ns);

/* Takes the line away. */
void load_progress_clear(const struct load_progress *p);

#endif
