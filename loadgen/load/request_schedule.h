/*
 * request_schedule.h - which request is next and when it ought to be sent: the one queue that all
 * connections share.
 *
 * Closed loop: the next request is due as soon as somebody asks. Open loop: arrivals at a rate that
 * may ramp and spike, evenly spaced or as a Poisson process. Same configuration and seed, same
 * arrivals, however many threads ask.
 */
#ifndef DARKROOM_LOADGEN_LOAD_REQUEST_SCHEDULE_H
#define DARKROOM_LOADGEN_LOAD_REQUEST_SCHEDULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "random.h"

#define RATE_SPIKES_MAX 16
#define RATE_PIECES_MAX (2 * RATE_SPIKES_MAX + 2)

struct rate_spike {
	double factor;
	double length_s;
	double start_s;
};

struct request_schedule_conf {
	uint64_t requests_max; /* 0: no bound */
	uint64_t duration_ns;  /* 0: no bound; at least one of the two is set */
	bool is_open;
	bool is_poisson;
	double rate_from,
		rate_to; /* per second; from is the rate at the start, to the one after ramp_s */
	double ramp_s;
	struct rate_spike spikes[RATE_SPIKES_MAX];
	unsigned spike_count;
	uint64_t seed;
};

/* The rate over time: linear pieces, the last one has no end. */
struct rate_profile {
	unsigned count;
	double start_s[RATE_PIECES_MAX];
	double rate[RATE_PIECES_MAX];  /* at its start */
	double slope[RATE_PIECES_MAX]; /* per second, per second */
};

struct request_ticket {
	uint64_t number; /* counts from 0 */
	uint64_t intended_ns;
};

enum request_schedule_answer {
	TICKET_TAKEN = 1, /* the ticket is the caller's */
	TICKET_LATER,     /* none is due before ticket->intended_ns */
	TICKET_END,       /* there will be no more */
};

struct request_schedule {
	pthread_mutex_t lock;
	struct request_schedule_conf conf; /* fixed after init */
	struct rate_profile profile;       /* fixed after init */
	uint64_t start_ns;                 /* fixed after start */
	/* under the lock */
	uint64_t taken;
	double next_s; /* when the next one is due, since the start */
	struct random random;
};

void rate_profile_make(struct rate_profile *p, const struct request_schedule_conf *conf);

/* The moment until which `arrivals` more are expected after the moment at_s; INFINITY if that never
 * comes. */
double rate_profile_advance(const struct rate_profile *p, double at_s, double arrivals);

/* Returns 0 or -errno. */
int request_schedule_init(struct request_schedule *s, const struct request_schedule_conf *conf);
void request_schedule_fini(struct request_schedule *s);

/* The run begins at start_ns. Before any thread asks. */
void request_schedule_start(struct request_schedule *s, uint64_t start_ns);

/* Any thread. */
enum request_schedule_answer request_schedule_take(struct request_schedule *s, uint64_t now_ns,
                                                   struct request_ticket *ticket);

/* After the run, open loop: how many requests were due before now_ns and the end of the run, but
 * never taken. */
uint64_t request_schedule_unsent(struct request_schedule *s, uint64_t now_ns);

#endif
