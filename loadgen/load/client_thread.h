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
#include "corpus.h"
#include "exchange.h"
#include "request_schedule.h"
#include "request_stats.h"

/* What all workers share; fixed after the start. */
struct load_run {
	const struct load_args *args;
	const struct load_files *files;
	struct load_schedule *schedule; /* has its lock */
	struct load_address address;
	int stop_fd; /* eventfd: readable when all shall end at once */
	int done_fd; /* eventfd: each worker adds 1 at its end */
};

struct load_worker {
	struct load_run *run;
	pthread_t thread;
	int epoll_fd;
	char *scratch;
	struct load_conn *conns;
	unsigned conn_count;
	struct load_conn **free_conns; /* without a request: the last one used is taken first */
	unsigned free_count;
	unsigned busy_count;       /* connections with a request */
	struct load_link active;   /* by the time their exchange must be over */
	struct load_link thinking; /* by the time they may go on */
	struct load_link
		resting; /* after a failure, or before they ask again whether an image is made */
	uint64_t due_ns; /* open loop: nothing is due before */
	bool has_ended;  /* the queue is empty for good */
	bool can_wait_exactly; /* the kernel has epoll_pwait2 */
	bool is_failed;
	struct load_stats stats;
	struct load_records records;
};

/*
 * Makes a worker with connections numbered from first_index on. Returns NULL if there is no memory
 * or no file descriptor: errno.
 */
struct load_worker *load_worker_new(struct load_run *run, unsigned conn_count,
                                    unsigned first_index);
void load_worker_free(struct load_worker *w);

/* Returns 0 or -errno. After the schedule's start. */
int load_worker_start(struct load_worker *w);
void load_worker_join(struct load_worker *w);

#endif
