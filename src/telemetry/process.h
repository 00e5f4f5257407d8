/*
 * process.h - memory, CPU time and descriptors of this process, as the process_* families that are
 * common to all programs.
 *
 * /proc is read through descriptors that are opened before the sandbox.
 */
#ifndef DARKROOM_TELEMETRY_PROCESS_H
#define DARKROOM_TELEMETRY_PROCESS_H

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct metrics;

struct process {
	struct timespec start;
	int statm_fd;         /* -1: without /proc its families are left out */
	pthread_mutex_t lock; /* of fds, which has one position */
	DIR *fds;             /* or NULL */
};

/* Main thread. */
void process_open(struct process *p);
void process_close(struct process *p);

/* Records the result of a reload; the start counts as one. Main thread. */
void process_set_reload(bool has_failed);

/* Appends the families to /metrics. Any thread. */
void process_metrics(struct process *p, struct metrics *m);

#endif
