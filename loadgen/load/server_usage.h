/*
 * server_usage.h - CPU time and memory of the server and its children, read from /proc.
 *
 * Values that cannot be read are not reported. Main thread.
 */
#ifndef DARKROOM_LOADGEN_LOAD_SERVER_USAGE_H
#define DARKROOM_LOADGEN_LOAD_SERVER_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "url.h"

#define SERVER_ROOTS_MAX 64

struct server_usage {
	pid_t roots[SERVER_ROOTS_MAX]; /* the named process, or all that listen at the port */
	unsigned root_count;           /* 0: unknown */
	uint64_t cpu_start_ns;
	uint64_t cpu_ns;         /* of all processes, since the start */
	uint64_t peak_rss_bytes; /* the highest sum of the processes' own peaks; 0: unknown */
};

/* Finds the server: `pid`, or with pid 0 the processes that listen at a loopback address. Returns
 * -1 with errno if there is no process `pid`. */
int server_usage_find(struct server_usage *s, pid_t pid, const struct url_address *address);

/* Call start() at the start of the run and sample() from then on until its end. */
void server_usage_start(struct server_usage *s);
void server_usage_sample(struct server_usage *s);

#endif
