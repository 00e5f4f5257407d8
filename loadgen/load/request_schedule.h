/*
 * request_schedule.h - the one queue of requests that all connections share: which request is next
 * and when it is due.
 *
 * In a closed loop a request is due when a connection asks for it. In an open loop requests arrive
 * at a rate that may ramp and spike, evenly spaced or as a Poisson process. The same configuration
 * and seed give the same arrivals with any number of threads.
 */
#ifndef DARKROOM_LOADGEN_LOAD_REQUEST_SCHEDULE_H
#define DARKROOM_LOADGEN_LOAD_REQUEST_SCHEDULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

#define RATE_SPIKES_MAX 16
#define RATE_PIECES_MAX (2 * RATE_SPIKES_MAX + 2)

struct rate_spike {
	double factor;
	double length_s;
	double start_s;
};

struct request_schedule_conf {
	uint64_t requests_max; /* 0: unbounded */
	uint64_t duration_ns;  /* 0: unbounded; at least one of the two is set */
	bool is_open;
	bool is_poisson;
	double rate_from, rate_to; /* per second: at the start, and after ramp_s */
	double ramp_s;
	struct rate_spike spikes[RATE_SPIKES_MAX];
	unsigned spike_count;
	uint64_t seed;
};

/* The rate over time as linear pieces. The last piece has no end. */
struct rate_profile {
	unsigned count;
	double start_s[RATE_PIECES_MAX];
	double rate[RATE_PIECES_MAX];  /* at the start of the piece */
	double slope[RATE_PIECES_MAX]; /* per second squared */
};

struct request_ticket {
	uint64_t number; /* counts from 0 */
	uint64_t intended_ns;
};

enum request_schedule_answer {
	TICKET_TAKEN = 1, /* the caller has the ticket */
	TICKET_LATER,     /* nothing is due before ticket->intended_ns */
	TICKET_END,       /* there are no more tickets */
};

struct request_schedule {
	pthread_mutex_t lock;
	struct request_schedule_conf conf; /* fixed after init */
	struct rate_profile profile;       /* fixed after init */
	uint64_t start_ns;                 /* fixed after start */
	/* under the lock */
	uint64_t taken;
	double next_s; /* when the next request is due, since the start */
	struct random random;
};

void rate_profile_make(struct rate_profile *p, const struct request_schedule_conf *conf);

/* Returns the time by which `arrivals` more are expected after at_s, or INFINITY if there will
 * never be as many. */
double rate_profile_advance(const struct rate_profile *p, double at_s, double arrivals);

/* Returns 0 or -errno. */
int request_schedule_init(struct request_schedule *s, const struct request_schedule_conf *conf);
void request_schedule_fini(struct request_schedule *s);

/* Sets the start of the run. Call before any thread takes a ticket. */
void request_schedule_start(struct request_schedule *s, uint64_t start_ns);

/* Takes the next ticket if it is due. Any thread. */
enum request_schedule_answer request_schedule_take(struct request_schedule *s, uint64_t now_ns,
                                                   struct request_ticket *ticket);

/* Takes the next open-loop request that was due before now_ns and the end of the run but was not
 * taken. Returns false if none is left. Call after the run. */
bool request_schedule_unsent(struct request_schedule *s, uint64_t now_ns, uint64_t *due_ns);

#endif
