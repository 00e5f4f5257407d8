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

struct report {
	const struct command_line *args;
	const struct corpus *files;
	const struct request_stats *stats; /* of all workers */
	const struct server_usage *server;
	const uint64_t *per_connection; /* responses; args->connections of them */
	double makespan_s;              /* first byte sent to last response received */
	uint64_t unsent;                /* open loop: due, but never sent */
	bool is_interrupted;
	bool is_ok;
};

/* Jain, Chiu and Hawe's index: 1 if all have the same, 1/n if one has all. 1 if nobody has
 * anything. */
double report_fairness(const uint64_t *shares, unsigned count);

/* On standard output. Returns 0, or -1 if it could not be written. */
int report_text(const struct report *r);
int report_json(const struct report *r);

struct progress {
	struct request_stats *earlier, *now; /* sums of all workers, and of a second ago */
	uint64_t start_ns, earlier_ns;
	uint64_t total;       /* requests; 0: unknown */
	uint64_t duration_ns; /* 0: unknown */
	bool is_open;         /* shows the latency from when requests were due */
	bool is_shown;
};

/* Returns 0 or -ENOMEM. */
int progress_init(struct progress *p, const struct command_line *args, uint64_t total,
                  uint64_t start_ns);
void progress_fini(struct progress *p);

/* Where the sum of all workers is to be made, zeroed, for the next line. */
struct request_stats *progress_stats(struct progress *p);

/* Writes the line from it. */
void progress_show(struct progress *p, uint64_t now_ns);

/* Takes the line away. */
void progress_clear(const struct progress *p);

#endif
