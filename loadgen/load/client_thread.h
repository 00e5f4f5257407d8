/*
 * client_thread.h - a thread with its clients, each of which has one connection.
 *
 * Takes requests from the shared schedule and counts their results.
 */
#ifndef DARKROOM_LOADGEN_LOAD_CLIENT_THREAD_H
#define DARKROOM_LOADGEN_LOAD_CLIENT_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client_list.h"
#include "command_line.h"
#include "connection.h"
#include "corpus.h"
#include "request_records.h"
#include "request_schedule.h"
#include "request_stats.h"

/* Shared by all threads and fixed after the start. */
struct client_run {
	const struct command_line *args;
	const struct corpus *files;
	struct request_schedule *schedule; /* has its own lock */
	struct url_address address;
	int stop_fd; /* eventfd: readable when all threads must end at once */
	int done_fd; /* eventfd: each thread adds 1 at its end */
};

struct client {
	struct connection connection; /* first, as epoll's data points here */
	struct client_link link;      /* in one of the thread's lists */
	uint32_t index;               /* among the clients of all threads */
	uint32_t file;                /* index of the picture */
	struct request_ticket ticket;
	uint64_t responses; /* in the whole run */
	struct verify *verify;
	bool is_verifying;
	char field[48]; /* of --clients */
	struct iovec parts[REQUEST_PARTS_MAX];
	struct retry *retry; /* NULL: failed uploads are not repeated */
	bool is_repeating;   /* while it rests */
};

struct client_thread {
	struct client_run *run;
	pthread_t thread;
	int epoll_fd;
	char *scratch;
	struct client *clients;
	unsigned client_count;
	struct client **free_clients; /* without a request; the last one used is taken first */
	unsigned free_count;
	unsigned busy_count; /* clients with a request */
	struct client_link active, thinking, resting;
	uint64_t due_ns;       /* open loop: nothing is due before */
	bool has_ended;        /* the schedule is empty */
	bool can_wait_exactly; /* the kernel has epoll_pwait2 */
	bool is_failed;
	struct request_stats stats;
	struct request_records records;
};

/* Makes a thread whose clients are numbered from first_index. Returns NULL with errno if there is
 * no memory or file descriptor. */
struct client_thread *client_thread_new(struct client_run *run, unsigned client_count,
                                        unsigned first_index);
void client_thread_free(struct client_thread *t);

/* Starts the thread, after the schedule was started. Returns 0 or -errno. */
int client_thread_start(struct client_thread *t);
void client_thread_join(struct client_thread *t);

#endif
