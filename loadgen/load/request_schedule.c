/*
 * request_schedule.c - computes arrivals and hands out tickets.
 *
 * Knows no files and no connections. A mutex suffices, because it is held for tens of nanoseconds
 * per request.
 */
#include "request_schedule.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"

/*
 * In an open loop, requests due before the end may be taken for this long after it. The rest of the
 * backlog counts as unsent, because an overloaded server could double the length of the run.
 */
#define GRACE_NS (100 * NS_PER_MS)

/* Returns an exponential number with mean 1, the gap of a Poisson process of rate 1. */
static double exponential(struct random *random)
{
	double uniform = (double)(random_next(random) >> 11) * 0x1p-53; /* [0, 1) */

	return -log1p(-uniform);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void rate_profile_make(struct rate_profile *p, const struct request_schedule_conf *conf)
{
	double cuts[RATE_PIECES_MAX];
	unsigned count = 0;

	assert(conf->spike_count <= RATE_SPIKES_MAX);
	cuts[count++] = 0;
	if (conf->ramp_s > 0)
		cuts[count++] = conf->ramp_s;
	for (unsigned i = 0; i < conf->spike_count; i++) {
		cuts[count++] = conf->spikes[i].start_s;
		cuts[count++] = conf->spikes[i].start_s + conf->spikes[i].length_s;
	}
	qsort(cuts, count, sizeof cuts[0], compare_doubles);
	p->count = 0;
	for (unsigned i = 0; i < count; i++) {
		bool in_ramp = cuts[i] < conf->ramp_s;
		double slope = in_ramp ? (conf->rate_to - conf->rate_from) / conf->ramp_s : 0;
		double rate = in_ramp ? conf->rate_from + slope * cuts[i] : conf->rate_to;
		double factor = 1;

		if (i + 1 < count && cuts[i + 1] <= cuts[i])
			continue;
		for (unsigned k = 0; k < conf->spike_count; k++) {
			const struct rate_spike *spike = &conf->spikes[k];

			if (spike->start_s <= cuts[i] && cuts[i] < spike->start_s + spike->length_s)
				factor *= spike->factor;
		}
		p->start_s[p->count] = cuts[i];
		p->rate[p->count] = rate * factor;
		p->slope[p->count++] = slope * factor;
	}
}

double rate_profile_advance(const struct rate_profile *p, double at_s, double arrivals)
{
	unsigned i = p->count - 1;

	while (i > 0 && p->start_s[i] > at_s)
		i--;
	for (; i < p->count; i++) {
		double slope = p->slope[i], rate = p->rate[i] + slope * (at_s - p->start_s[i]);
		double left = i + 1 < p->count ? p->start_s[i + 1] - at_s : INFINITY;
		/* solves rate x + slope x^2 / 2 = arrivals */
		double root = rate * rate + 2 * slope * arrivals;
		double x = root >= 0 && rate + sqrt(root) > 0 ? 2 * arrivals / (rate + sqrt(root))
		                                              : INFINITY;

		if (arrivals <= 0)
			return at_s;
		if (x <= left)
			return at_s + x;
		if (i + 1 < p->count) {
			arrivals -= left * (rate + slope * left / 2);
			at_s = p->start_s[i + 1];
		}
	}
	return INFINITY;
}

int request_schedule_init(struct request_schedule *s, const struct request_schedule_conf *conf)
{
	assert(conf->requests_max > 0 || conf->duration_ns > 0);
	*s = (struct request_schedule){ .conf = *conf, .random = { .state = conf->seed } };
	if (conf->is_open) {
		rate_profile_make(&s->profile, conf);
		/* evenly spaced arrivals start at once, a Poisson process with its first gap */
		if (conf->is_poisson)
			s->next_s = rate_profile_advance(&s->profile, 0, exponential(&s->random));
	}
	return -pthread_mutex_init(&s->lock, NULL);
}

void request_schedule_fini(struct request_schedule *s)
{
	pthread_mutex_destroy(&s->lock);
}

void request_schedule_start(struct request_schedule *s, uint64_t start_ns)
{
	s->start_ns = start_ns;
}

/* Returns when the next open-loop request is due, or UINT64_MAX after the end of the run. */
static uint64_t next_due(const struct request_schedule *s)
{
	const struct request_schedule_conf *conf = &s->conf;
	double ns = round(s->next_s * 1e9); /* rounding errors of the sum are far below 1 ns */

	if (conf->requests_max > 0 && s->taken >= conf->requests_max)
		return UINT64_MAX;
	if (!(ns < 9e18) || (conf->duration_ns > 0 && ns >= (double)conf->duration_ns))
		return UINT64_MAX;
	return s->start_ns + (uint64_t)ns;
}

static void step(struct request_schedule *s)
{
	double gap = s->conf.is_poisson ? exponential(&s->random) : 1;

	s->taken++;
	s->next_s = rate_profile_advance(&s->profile, s->next_s, gap);
}

static enum request_schedule_answer take_open(struct request_schedule *s, uint64_t now_ns,
                                              struct request_ticket *ticket)
{
	uint64_t due = next_due(s);

	if (due == UINT64_MAX)
		return TICKET_END;
	if (s->conf.duration_ns > 0 && now_ns >= s->start_ns + s->conf.duration_ns + GRACE_NS)
		return TICKET_END;
	*ticket = (struct request_ticket){ .number = s->taken, .intended_ns = due };
	if (due > now_ns)
		return TICKET_LATER;
	step(s);
	return TICKET_TAKEN;
}

static enum request_schedule_answer take_closed(struct request_schedule *s, uint64_t now_ns,
                                                struct request_ticket *ticket)
{
	const struct request_schedule_conf *conf = &s->conf;

	if (conf->requests_max > 0 && s->taken >= conf->requests_max)
		return TICKET_END;
	if (conf->duration_ns > 0 && now_ns >= s->start_ns + conf->duration_ns)
		return TICKET_END;
	*ticket = (struct request_ticket){ .number = s->taken++, .intended_ns = now_ns };
	return TICKET_TAKEN;
}

enum request_schedule_answer request_schedule_take(struct request_schedule *s, uint64_t now_ns,
                                                   struct request_ticket *ticket)
{
	enum request_schedule_answer answer;

	pthread_mutex_lock(&s->lock);
	answer = s->conf.is_open ? take_open(s, now_ns, ticket) : take_closed(s, now_ns, ticket);
	pthread_mutex_unlock(&s->lock);
	return answer;
}

bool request_schedule_unsent(struct request_schedule *s, uint64_t now_ns, uint64_t *due_ns)
{
	if (!s->conf.is_open)
		return false;
	*due_ns = next_due(s);
	if (*due_ns > now_ns)
		return false;
	step(s);
	return true;
}
