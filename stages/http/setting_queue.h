/*
 * setting_queue.h - settings that POST /control asks for. The I/O thread submits one with the event
 * of its connection, the main thread applies it and sends the event back.
 */
#ifndef DARKROOM_HTTP_SETTING_QUEUE_H
#define DARKROOM_HTTP_SETTING_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "field.h"

struct event;
struct graph;

#define SETTING_MAX 96
#define SETTING_REPORT_MAX 1024

struct setting_job {
	struct setting_job *next;
	struct event *event; /* parked by its owner, in accept_read's instance */
	unsigned instance;
	char setting[SETTING_MAX];       /* SECTION.KEY=VALUE */
	int result;                      /* 0 or -errno, set with the report */
	char report[SETTING_REPORT_MAX]; /* lines */
};

/* Jobs in the order of their arrival: at most one per administrative connection. */
struct setting_queue {
	pthread_mutex_t lock;
	struct setting_job *first, **last;
};

void setting_queue_init(struct setting_queue *c);

/* Returns the key at the index that /control may change, as "scheduler.KEY"; NULL after the last.
 */
const char *setting_key_at(unsigned index);

/* Copies a setting "KEY=VALUE" of these keys. Returns false if it is none, or has characters other
 * than letters, digits and "-_.". */
bool setting_read(struct slice text, char setting[SETTING_MAX]);

/* Borrows the job until its event comes back. The caller then wakes the main thread. */
void setting_queue_submit(struct setting_queue *c, struct setting_job *job);

/* Returns the oldest job, or NULL; and sends its event back. Main thread. */
struct setting_job *setting_queue_first(struct setting_queue *c);
void setting_queue_end(struct setting_queue *c, struct graph *graph, int result,
                       const char *report);

#endif
