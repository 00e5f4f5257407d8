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

#define LOAD_SPIKES_MAX 16
#define LOAD_PIECES_MAX (2 * LOAD_SPIKES_MAX + 2)

struct load_spike {
	double factor;
	double length_s;
	double start_s;
};

struct load_schedule_conf {
	uint64_t requests_max; /* 0: no bound */
	uint64_t duration_ns;  /* 0: no bound; at least one of the two is set */
	bool is_open;
	bool is_poisson;
	double rate_from,
		rate_to; /* per second; from is the rate at the start, to the one after ramp_s */
	double ramp_s;
	struct load_spike spikes[LOAD_SPIKES_MAX];
	unsigned spike_count;
	uint64_t seed;
};

/* The rate over time: linear pieces, the last one has no end. */
struct load_profile {
	unsigned count;
	double start_s[LOAD_PIECES_MAX];
	double rate[LOAD_PIECES_MAX];  /* at its start */
	double slope[LOAD_PIECES_MAX]; /* per second, per second */
};

struct load_ticket {
	uint64_t number; /* counts from 0 */
	uint64_t intended_ns;
};

enum load_answer {
	LOAD_TAKEN = 1, /* the ticket is the caller's */
	LOAD_LATER,     /* none is due before ticket->intended_ns */
	LOAD_END,       /* there will be no more */
};

struct load_schedule {
	pthread_mutex_t lock;
	struct load_schedule_conf conf; /* fixed after init */
	struct load_profile profile;    /* fixed after init */
	uint64_t start_ns;              /* fixed after start */
	/* under the lock */
	uint64_t taken;
	double next_s; /* when the next one is due, since the start */
	uint64_t random;
};

void load_profile_make(struct load_profile *p, const struct load_schedule_conf *conf);

/* The moment until which `arrivals` more are expected after the moment at_s; INFINITY if that never
 * comes. */
double load_profile_advance(const struct load_profile *p, double at_s, double arrivals);

/* Returns 0 or -errno. */
int load_schedule_init(struct load_schedule *s, const struct load_schedule_conf *conf);
void load_schedule_fini(struct load_schedule *s);

/* The run begins at start_ns. Before any thread asks. */
void load_schedule_start(struct load_schedule *s, uint64_t start_ns);

/* Any thread. */
enum load_answer load_schedule_take(struct load_schedule *s, uint64_t now_ns,
                                    struct load_ticket *ticket);

/* After the run, open loop: how many requests were due before now_ns and the end of the run, but
 * never taken. */
uint64_t load_schedule_unsent(struct load_schedule *s, uint64_t now_ns);

/* A pseudo-random generator (splitmix64), also for the shuffled order of the files. */
uint64_t load_random(uint64_t *state);

#endif
