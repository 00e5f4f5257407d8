/*
 * server_usage.h - CPU time and memory of the server, with its children, read from /proc while the
 * run lasts.
 *
 * Main thread. All of it is a courtesy: what cannot be read is not reported.
 */
#ifndef DARKROOM_LOADGEN_LOAD_SERVER_USAGE_H
#define DARKROOM_LOADGEN_LOAD_SERVER_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "url.h"

#define SERVER_ROOTS_MAX 64

struct server_usage {
	pid_t roots[SERVER_ROOTS_MAX]; /* who was named, or listens there */
	unsigned root_count;           /* 0: not known */
	uint64_t cpu_start_ns;
	uint64_t cpu_ns;         /* of all, since the start */
	uint64_t peak_rss_bytes; /* the sum of their peaks since they began, at most; 0: unknown */
};

/* pid: the server, or 0 to look for who listens at a loopback address. -1 with errno if a pid is
 * given and there is no such process. */
int server_usage_find(struct server_usage *s, pid_t pid, const struct url_address *address);

/* Takes the state at the start of the run, and then from time to time until its end. */
void server_usage_start(struct server_usage *s);
void server_usage_sample(struct server_usage *s);

#endif
