/*
 * stats_stream.h - GET /stats/stream: the document of /stats twice a second, as server-sent events
 * (HTML Living Standard, 9.2).
 *
 * The I/O thread writes the header and passes a copy of the socket on. The main thread writes the
 * events: one document serves all watchers, and none is made without them. So neither workers nor
 * limits.connections are used, under any policy. A watcher that reads slowly misses documents, and
 * is closed when it has not read one for ten seconds.
 */
#ifndef DARKROOM_RESOURCE_STATS_STREAM_H
#define DARKROOM_RESOURCE_STATS_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_WATCHERS_MAX 64 /* more are refused */

struct report_source;
struct stats_document;
struct text;

struct stats_watcher {
	int fd;
	struct stats_document *document; /* a reference; NULL: all is sent */
	size_t sent;                     /* of it */
	uint64_t since_ns;               /* it is being sent */
};

struct stats_stream {
	int wake_fd; /* eventfd, readable after stats_stream_wake(); fixed after start */
	/* any thread */
	_Atomic unsigned count; /* watchers, also those that have just arrived */
	pthread_mutex_t lock;
	int arrived[STATS_WATCHERS_MAX]; /* under the lock, as is the number */
	unsigned arrived_count;
	/* main thread */
	struct stats_watcher watcher[STATS_WATCHERS_MAX];
	unsigned watcher_count;
	uint64_t next_ns; /* when the next document is due */
};

/* Returns 0 or -errno. Main thread, as are the next three. */
int stats_stream_open(struct stats_stream *s);

/* Ends all watchers. It may be called twice. */
void stats_stream_close(struct stats_stream *s);

/* Sends what is due at now_ns; write(source, to) appends the document, which has one line. Returns
 * the ms until the next call, or -1 without watchers: then the next call is due when wake_fd is
 * readable. */
int stats_stream_tick(struct stats_stream *s, uint64_t now_ns,
                      void (*write)(const struct report_source *source, struct text *to),
                      const struct report_source *source);

/* Wakes the main thread. Any thread. */
void stats_stream_wake(struct stats_stream *s);

/* Returns whether there is room for another watcher. Any thread. */
bool stats_stream_has_room(const struct stats_stream *s);

/* Adds a watcher whose header is written. fd is borrowed: the stream has a copy of it. Without room
 * or a descriptor there is no copy, and the client finds an empty stream. Any thread. */
void stats_stream_add(struct stats_stream *s, int fd);

#endif
