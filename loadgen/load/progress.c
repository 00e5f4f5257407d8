/* progress.c - composes the progress line and cuts it to the width of the terminal. */
#include "progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "figure.h"

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

/* Returns the seconds until the earlier end of the run, or a negative number if it is unknown. */
static double remaining_s(const struct progress *p, double elapsed_s, uint64_t done)
{
	double rate = elapsed_s > 0 ? (double)done / elapsed_s : 0;
	double left = p->total > done && rate > 0 ? (double)(p->total - done) / rate : -1;
	double until = (double)p->duration_ns / 1e9 - elapsed_s;

	if (p->duration_ns > 0 && (left < 0 || until < left))
		left = until > 0 ? until : 0;
	return left;
}

/* A line longer than the terminal is wide could not be overwritten. */
static void write_line(const struct text *line)
{
	struct winsize window;
	int columns = 80;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
		columns = window.ws_col;
	fprintf(stderr, "\r\033[K%.*s", columns - 1, line->data);
	fflush(stderr);
}

static void put_quantile(struct text *line, const char *name, const struct latency *h,
                         double quantile)
{
	char figure[FIGURE_SIZE];

	text_printf(line, "  %s %s", name,
	            figure_duration((double)latency_quantile(h, quantile), figure));
}

/* Turns the histogram of a second ago, which is not needed any more, into that of this second. */
static struct latency *last_second(struct progress *p)
{
	struct latency *last = &p->earlier->response;

	memset(last, 0, sizeof *last);
	latency_merge(last, p->is_open ? &p->now->latency : &p->now->exchange);
	latency_subtract(last, p->is_open ? &p->earlier->latency : &p->earlier->exchange);
	return last;
}

void progress_show(struct progress *p, uint64_t now_ns)
{
	uint64_t done = request_stats_answered(p->now), failed = request_stats_failed(p->now);
	uint64_t in_last = done - request_stats_answered(p->earlier);
	double elapsed_s = (double)(now_ns - p->start_ns) / 1e9;
	double lapse_s = (double)(now_ns - p->earlier_ns) / 1e9;
	double left_s = remaining_s(p, elapsed_s, done + failed);
	const struct latency *last = last_second(p);
	struct request_stats *now = p->now;
	char memory[256], figure[FIGURE_SIZE];
	struct text line;

	text_init(&line, memory, sizeof memory);
	text_printf(&line, "%5.0f s  %" PRIu64, elapsed_s, done);
	if (p->total > 0)
		text_printf(&line, " of %" PRIu64, p->total);
	text_printf(&line, " answers, %s",
	            figure_rate(lapse_s > 0 ? (double)in_last / lapse_s : 0, figure));
	put_quantile(&line, "p50", last, 0.5);
	put_quantile(&line, "p99", last, 0.99);
	text_printf(&line, "  errors %" PRIu64, failed + counter_read(&now->unexpected));
	if (left_s >= 0)
		text_printf(&line, "  ETA %d:%02d", (int)left_s / 60, (int)left_s % 60);
	write_line(&line);
	p->now = p->earlier;
	p->earlier = now;
	p->earlier_ns = now_ns;
}

void progress_clear(const struct progress *p)
{
	if (p->is_shown)
		fputs("\r\033[K", stderr);
}
