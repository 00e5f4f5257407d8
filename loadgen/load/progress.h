/*
 * progress.h - the line on the terminal that shows how the run goes.
 *
 * Rate and percentiles are those of the last second. Shown only if standard error is a terminal.
 * Main thread.
 */
#ifndef DARKROOM_LOADGEN_LOAD_PROGRESS_H
#define DARKROOM_LOADGEN_LOAD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "command_line.h"
#include "request_stats.h"

struct progress {
	struct request_stats *earlier, *now; /* sums of all threads: a second ago, and now */
	uint64_t start_ns, earlier_ns;
	uint64_t total;       /* requests; 0: unknown */
	uint64_t duration_ns; /* 0: unknown */
	bool is_open;         /* shows the latency since requests were due */
	bool is_shown;
};

/* Returns 0 or -ENOMEM. */
int progress_init(struct progress *p, const struct command_line *args, uint64_t total,
                  uint64_t start_ns);
void progress_fini(struct progress *p);

/* Returns zeroed statistics into which the caller merges those of all threads. */
struct request_stats *progress_stats(struct progress *p);

/* Writes the line from them. */
void progress_show(struct progress *p, uint64_t now_ns);

/* Removes the line. */
void progress_clear(const struct progress *p);

#endif
