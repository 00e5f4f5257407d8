/* store_progress.c - the progress of a command. Main thread. */
#include "store_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SHOW_NS NS_PER_S

void store_progress_start(struct store_progress *p, uint64_t all)
{
	*p = (struct store_progress){ .all = all, .start_ns = clock_ns() };
}

void store_progress_show(struct store_progress *p, bool is_last)
{
	uint64_t now = clock_ns();

	if ((!is_last && now - p->shown_ns < SHOW_NS) || !isatty(STDERR_FILENO))
		return;
	p->shown_ns = now;
	double seconds = (double)(now - p->start_ns) / NS_PER_S;
	double rate = seconds > 0 ? (double)p->ended / seconds : 0;
	double left = rate > 0 && p->all > p->ended ? (double)(p->all - p->ended) / rate : 0;

	fprintf(stderr, "\r%" PRIu64, p->ended);
	if (p->all)
		fprintf(stderr, " of %" PRIu64, p->all);
	fprintf(stderr, " images, %.0f in a second", rate);
	if (p->all)
		fprintf(stderr, ", %.0f min %02.0f s left",
		        (left - (double)((uint64_t)left % 60)) / 60, (double)((uint64_t)left % 60));
	fputs(is_last ? "  \n" : "  ", stderr);
}
