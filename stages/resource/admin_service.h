/*
 * admin_service.h - what operators get from the main thread: the event stream, settings, and the
 * agent-check of HAProxy.
 *
 * POST /control asks for a setting: the I/O thread submits it with the event of its connection, the
 * main thread applies it and sends the event back.
 */
#ifndef DARKROOM_RESOURCE_ADMIN_SERVICE_H
#define DARKROOM_RESOURCE_ADMIN_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct conf;
struct document;
struct event;
struct graph;
struct http_server;
struct report_source;
struct text;

/* ---- settings ---- */

#define SETTING_MAX 96
#define SETTING_REPORT_MAX 1024

struct setting_job {
	STAILQ_ENTRY(setting_job) next;
	struct event *event; /* parked by its owner, in accept_read's instance */
	unsigned instance;
	char setting[SETTING_MAX];       /* SECTION.KEY=VALUE */
	int result;                      /* 0 or -errno, set with the report */
	char report[SETTING_REPORT_MAX]; /* lines */
};

/* Jobs in the order of their arrival: at most one per administrative connection. */
struct setting_queue {
	pthread_mutex_t lock;
	STAILQ_HEAD(setting_jobs, setting_job) jobs;
};

/* Borrows the job until its event comes back. The caller then wakes the main thread. */
void setting_queue_submit(struct setting_queue *c, struct setting_job *job);

/* Returns the oldest job, or NULL; and sends its event back. Main thread. */
struct setting_job *setting_queue_first(struct setting_queue *c);
void setting_queue_end(struct setting_queue *c, struct graph *graph, int result,
                       const char *report);

/* ---- GET /stats/stream: the document of /stats twice a second, as server-sent events ---- */

/*
 * HTML Living Standard, 9.2. The I/O thread writes the header and passes a copy of the socket on.
 * The main thread writes the events: one document serves all watchers, and none is made without
 * them. So neither workers nor limits.connections are used, under any policy. A watcher that reads
 * slowly misses documents, and is closed when it has not read one for ten seconds.
 */
#define STATS_WATCHERS_MAX 64 /* more are refused */

struct stats_watcher {
	int fd;
	struct document *document; /* a reference; NULL: all is sent */
	size_t sent;               /* of it */
	uint64_t since_ns;         /* it is being sent */
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

/* ---- the service ---- */

/* Write the documents of the whole program; stages/ sets them. Any thread, in a visit. */
struct http_reports {
	void (*stats)(const struct report_source *source, struct text *to);   /* JSON */
	void (*metrics)(const struct report_source *source, struct text *to); /* Prometheus text */
	const struct report_source *source;
};

struct admin_service {
	struct http_reports reports;   /* fixed after start, as is the agent */
	int agent_fd;                  /* readable when an agent-check waits; -1: off */
	struct setting_queue settings; /* locked inside */
	struct stats_stream stream;    /* locked inside; its watchers are the main thread's */
};

/* Returns 0, or -errno. The reports are set before. Main thread, as are the others. */
int admin_service_init(struct admin_service *a);
void admin_service_fini(struct admin_service *a);

/* Listens at server.agent_listen, if that is set. Returns 0, or -errno with the reason logged. */
int admin_open_agent(struct admin_service *a, const struct conf *conf);

/* Answers the clients that wait. Waits for none of them. */
void admin_serve_agent(const struct admin_service *a, struct http_server *http);

/*
 * Returns the weight in percent of a server with room for images_max images, and for work of
 * limit_s seconds (0: not known): the free share of its room, by whichever is less. It is 1 to 100.
 * HAProxy gets 0 before the threads have started and once the end is announced. The answer never
 * has the words drain, maint or ready: they would overrule what an operator has set in HAProxy. Any
 * thread.
 */
unsigned agent_weight(double images, double images_max, double backlog_s, double limit_s);

#endif
