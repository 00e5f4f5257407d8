/*
 * overload_sim.h - admission in a simulation: uploads arrive at random times, two cores serve them
 * in order, by their clients' turns or by size, and the service time is known.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_OVERLOAD_SIM_H
#define DARKROOM_TESTS_UNIT_SUPPORT_OVERLOAD_SIM_H

#include "admission/client_turns.h"
#include "admission/overload.h"
#include "base/clock.h"
#include "conf/conf_degrade.h"

#define SIM_CORES 2
#define WORK_PER_IMAGE 5000000 /* ns: half of what the average one takes */
#define SIM_QUEUE_MAX 100000
#define SIM_RESPONSES_MAX 200000
#define SIM_NEVER 1e18
#define SIM_AGE_S 0.01         /* the default of experiment.age */
#define SIM_IN_FLIGHT_MAX 1024 /* the default of limits.images_in_flight */

struct sim_job {
	double arrived_s, service_s;
	uint64_t work;
	unsigned class, client;
	bool is_large;
	struct turn turn;
};

#define SIM_RARE 1000 /* a client that sends a large file when rare_s have passed */

/* Uploads of one size of file, since the run began. */
struct sim_size {
	double offered, admitted; /* service time */
	unsigned responses;
	double response_s[SIM_RESPONSES_MAX];
};

struct sim {
	struct overload overload;
	double now_s;
	uint64_t random;
	double service_s; /* on average */
	struct sim_job queue[SIM_QUEUE_MAX];
	unsigned first, last;
	struct sim_job serving[SIM_CORES];
	double ends_s[SIM_CORES];
	double response_s[CONTROL_CLASSES_MAX][SIM_RESPONSES_MAX];
	/* of each level of overload.degrade: service time compared with that of level 0; 0: the
	 * same */
	double cost[CONF_DEGRADE_MAX + 1];
	/* many clients; each upload is of one of them by chance */
	unsigned clients;   /* 0: one, which stands for many */
	double large_share; /* of the uploads; they take `large` times as long, from a file as large
	                     */
	double large;
	/* the order of service; otherwise that of arrival */
	bool is_srpt, has_turns;
	struct client_turns turns;
	struct turn *stage[SIM_QUEUE_MAX], *urgent[SIM_QUEUE_MAX];
	unsigned stage_first, stage_last, urgent_first, urgent_last;
	double rare_s, rare_next_s;               /* 0: no such client */
	unsigned rare_refused, rare_refused_most; /* in a row */
	bool does_rare_heed, is_rare_returning;   /* when Retry-After says */
	unsigned rare_returns, rare_returns_refused;
	double served[SIM_RARE + 1]; /* service time by client */
	struct sim_size size[2];     /* small, large */
	unsigned changes[CONTROL_CLASSES_MAX], level[CONTROL_CLASSES_MAX]; /* of levels */
	unsigned refused_early[CONTROL_CLASSES_MAX]; /* while a step was left */
	unsigned by_level[CONF_DEGRADE_MAX + 1];     /* admitted */
	unsigned responses[CONTROL_CLASSES_MAX], refused[CONTROL_CLASSES_MAX];
};

extern struct sim sim;

/* The defaults of the keys of Welsh's controller. */
extern const struct control_params sim_control_params;

/* The keys' defaults, and a target of 1 s. */
struct overload_params sim_params(uint64_t controller, unsigned classes);

/* Begins with idle cores and a service time of 10 ms. steps: of overload.degrade. */
void sim_begin(uint64_t controller, unsigned classes);
void sim_begin_degrading(uint64_t controller, unsigned classes, unsigned steps);

/* Uploads arrive for some seconds, at these rates per class. What was counted before is
 * forgotten. */
void sim_run(double seconds, double rate, double rate_of_lower);

uint64_t sim_now_ns(void);
double sim_p90(unsigned class);
double sim_p90_of_size(bool is_large);
double sim_capacity(void); /* of level 0, in uploads per second */
double sim_goodput(double seconds);

/* Prints what happened if VERBOSE is set. */
void sim_report(const char *what);

#endif
