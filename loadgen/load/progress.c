/* progress.c - the line on the terminal. Rate and percentiles are those of the last second. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "report.h"

int progress_init(struct progress *p, const struct command_line *args, uint64_t total,
                  uint64_t start_ns)
{
	*p = (struct progress){ .start_ns = start_ns,
		                .earlier_ns = start_ns,
		                .total = total,
		                .duration_ns = args->schedule.duration_ns,
		                .is_open = args->schedule.is_open,
		                .is_shown = !args->quiet && isatty(STDERR_FILENO) };
	if (!p->is_shown)
		return 0;
	p->earlier = calloc(1, sizeof *p->earlier);
	p->now = calloc(1, sizeof *p->now);
	return p->earlier && p->now ? 0 : -ENOMEM;
}

void progress_fini(struct progress *p)
{
	free(p->earlier);
	free(p->now);
	*p = (struct progress){ 0 };
}

struct request_stats *progress_stats(struct progress *p)
{
	memset(p->now, 0, sizeof *p->now);
	return p->now;
}

/* Seconds until the end, by whichever bound comes first; negative if nobody knows. */
static double remaining_s(const struct progress *p, double elapsed_s, uint64_t done, double rate)
{
	double left = -1;

	if (p->total > done && rate > 0)
		left = (double)(p->total - done) / rate;
	if (p->duration_ns > 0) {
		double until = (double)p->duration_ns / 1e9 - elapsed_s;

		if (left < 0 || until < left)
			left = until > 0 ? until : 0;
	}
	return left;
}

void progress_show(struct progress *p, uint64_t now_ns)
{
	struct request_stats *earlier = p->earlier, *now = p->now;
	struct latency *last =
		&earlier->response; /* of the last second; what was there is not needed */
	uint64_t done = request_stats_answered(now), failed = request_stats_failed(now);
	double elapsed_s = (double)(now_ns - p->start_ns) / 1e9,
	       lapse_s = (double)(now_ns - p->earlier_ns) / 1e9;
	double rate = lapse_s > 0 ? (double)(done - request_stats_answered(earlier)) / lapse_s : 0;
	double left_s = remaining_s(p, elapsed_s, done + failed,
	                            elapsed_s > 0 ? (double)(done + failed) / elapsed_s : 0);

	p->earlier = now;
	p->now = earlier;
	p->earlier_ns = now_ns;
	memset(last, 0, sizeof *last);
	latency_merge(last, p->is_open ? &now->latency : &now->exchange);
	latency_subtract(last, p->is_open ? &earlier->latency : &earlier->exchange);
	fprintf(stderr, "\r\033[K%5.0f s  %" PRIu64, elapsed_s, done);
	if (p->total > 0)
		fprintf(stderr, "/%" PRIu64, p->total);
	/* short: a line that does not fit the terminal cannot be written over */
	fprintf(stderr, "  %.1f/s  p50 %.3g p99 %.3g ms  errors %" PRIu64, rate,
	        (double)latency_quantile(last, 0.5) / 1e6,
	        (double)latency_quantile(last, 0.99) / 1e6,
	        failed + counter_read(&now->unexpected));
	if (left_s >= 0)
		fprintf(stderr, "  ETA %d:%02d", (int)left_s / 60, (int)left_s % 60);
	fflush(stderr);
}

void progress_clear(const struct progress *p)
{
	if (p->is_shown)
		fputs("\r\033[K", stderr);
}
