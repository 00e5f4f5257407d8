/*
 * client_thread.h - a thread with its connections: takes requests from the shared queue, and counts
 * what comes of them.
 */
#ifndef DARKROOM_LOADGEN_LOAD_CLIENT_THREAD_H
#define DARKROOM_LOADGEN_LOAD_CLIENT_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "command_line.h"
#include "connection.h"
#include "corpus.h"
#include "request_schedule.h"
#include "request_stats.h"

/* What all workers share; fixed after the start. */
struct client_run {
	const struct command_line *args;
	const struct corpus *files;
	struct request_schedule *schedule; /* has its lock */
	struct url_address address;
	int stop_fd; /* eventfd: readable when all shall end at once */
	int done_fd; /* eventfd: each worker adds 1 at its end */
};

struct client_thread {
	struct client_run *run;
	pthread_t thread;
	int epoll_fd;
	char *scratch;
	struct connection *conns;
	unsigned conn_count;
	struct connection **free_conns; /* without a request: the last one used is taken first */
	unsigned free_count;
	unsigned busy_count;       /* connections with a request */
	struct list_link active;   /* by the time their exchange must be over */
	struct list_link thinking; /* by the time they may go on */
	struct list_link
		resting; /* after a failure, or before they ask again whether an image is made */
	uint64_t due_ns; /* open loop: nothing is due before */
	bool has_ended;  /* the queue is empty for good */
	bool can_wait_exactly; /* the kernel has epoll_pwait2 */
	bool is_failed;
	struct request_stats stats;
	struct request_records records;
};

/*
 * Makes a worker with connections numbered from first_index on. Returns NULL if there is no memory
 * or no file descriptor: errno.
 */
struct client_thread *client_thread_new(struct client_run *run, unsigned conn_count,
                                        unsigned first_index);
void client_thread_free(struct client_thread *w);

/* Returns 0 or -errno. After the schedule's start. */
int client_thread_start(struct client_thread *w);
void client_thread_join(struct client_thread *w);

#endif
