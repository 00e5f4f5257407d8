/*
 * process.h - what the process takes of the machine, under the names that all programs have for it:
 * process_*.
 *
 * What /proc tells is read through descriptors that are opened before the sandbox closes the way
 * there.
 */
#ifndef DARKROOM_TELEMETRY_PROCESS_H
#define DARKROOM_TELEMETRY_PROCESS_H

#include <dirent.h>
#include <pthread.h>
#include <time.h>

struct text;

struct process {
	struct timespec start;
	int statm_fd;         /* -1: there is no /proc, and what it tells is left out */
	pthread_mutex_t lock; /* for fds, which has one position */
	DIR *fds;             /* or NULL */
};

/* Main thread. */
void process_open(struct process *p);
void process_close(struct process *p);

/* Appends the families. Any thread. */
void process_metrics(struct process *p, struct text *t);

#endif
