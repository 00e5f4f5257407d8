/*
 * s3_loop.h - the event loop of an S3 client: operations that wait for a connection, that run, and
 * that wait for another attempt. Private to s3_client.c, s3_loop.c and s3_socket.c.
 */
#ifndef DARKROOM_S3_LOOP_H
#define DARKROOM_S3_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/random.h"
#include "base/reactor.h"
#include "s3_breaker.h"
#include "s3_client.h"
#include "s3_transfer.h"

#define S3_PROBES_MAX 4 /* at once, of a store that does not answer */

struct s3_ops {
	struct s3_op *first, *last;
	size_t count;
};

struct s3_client {
	struct s3_target target;
	struct reactor *reactor;
	CURLM *multi;
	int wake_fd;
	struct reactor_watch woken;
	struct reactor_timer curl_timer, retry_timer, probe_timer;
	pthread_t thread;
	bool is_started, has_timer_failed;
	/* under the lock */
	pthread_mutex_t lock;
	struct s3_ops inbox;
	struct s3_secret secret;
	bool is_stopping;
	_Atomic size_t waiting; /* operations that have no connection */
	/* of the thread */
	struct s3_ops ready, later;          /* later: for another attempt */
	struct s3_transfer *transfer, *idle; /* all; a list of those that are free */
	unsigned transfer_count;
	struct s3_breaker breaker;
	struct random random;
	struct s3_op probe[S3_PROBES_MAX];
	bool is_probing[S3_PROBES_MAX];
	struct s3_counters counters;
};

/* Makes the loop, with a handle for each connection. Returns 0 or -errno; s3_loop_close() follows
 * in any case. */
int s3_loop_open(struct s3_client *c, unsigned connections);
void s3_loop_close(struct s3_client *c);

/* The thread: runs until is_stopping, and ends all operations. */
void *s3_loop_run(void *client);

/* Ends an operation with its error. */
void s3_loop_finish(struct s3_client *c, struct s3_op *op, int err);

/* Tells libcurl that a socket is ready, or CURL_SOCKET_TIMEOUT, and ends what has ended. */
void s3_loop_act(struct s3_client *c, int fd, int what);

/* Called by libcurl: CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION. */
int s3_socket_changed(CURL *easy, curl_socket_t fd, int what, void *client, void *of_socket);
int s3_timeout_changed(CURLM *multi, long ms, void *client);

/* Appends to a list. */
void s3_ops_append(struct s3_ops *list, struct s3_op *op);

#endif
