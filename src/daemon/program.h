/*
 * program.h - what the daemon calls of the program that it runs.
 *
 * main.c fills it in with functions of stages/app.h, so that src/ includes nothing of stages/. All
 * functions run on the main thread.
 */
#ifndef DARKROOM_DAEMON_PROGRAM_H
#define DARKROOM_DAEMON_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app;
struct conf;
struct graph;
struct text;
struct tokens;

struct program {
	struct app *app; /* the program's own state, passed to its functions */

	/* Checks the operations of all variants. Returns 0, or -EINVAL with the problem in error
	 * and the index of the variant. */
	int (*check_variants)(const struct conf *conf, unsigned *variant, char *error,
	                      size_t error_size);
	/* Checks whether a running program has room for the configuration. Returns 0, or -EINVAL
	 * with the problem as a line of errors. */
	int (*check_room)(struct app *a, const struct conf *conf, struct text *errors);

	/* Logs each address to listen on whose host cannot be resolved. */
	void (*check_addresses)(const struct conf *conf);

	/* A change of the configuration: prepare, then commit or cancel. prepare returns 0, or
	 * -errno with the problem as a line of errors and nothing to cancel. */
	int (*prepare)(struct app *a, const struct conf *conf, struct text *errors);
	void (*commit)(struct app *a);
	void (*cancel)(struct app *a);

	/* Opens files and sockets and makes the graph. Returns 0 or -errno, logged. */
	int (*init)(struct app *a, const struct conf *conf);
	/* Starts all threads. Returns 0 or -errno, logged. */
	int (*start)(struct app *a);
	/* Makes /readyz return 503; everything else is served as before. */
	void (*announce_end)(struct app *a);
	/* Stops accepting connections and images. */
	void (*drain)(struct app *a);
	/* During a drain: whether connections or images are left. */
	bool (*is_busy)(const struct app *a);
	/* Does what is due on the main thread. Returns the ms until the next call, or -1: the next
	 * call is due when wake_fd() is readable, which this call ends. */
	int (*tick)(struct app *a);
	int (*wake_fd)(const struct app *a);
	/* Whether the program can be of use again only by a restart; logged. */
	bool (*must_restart)(const struct app *a);
	/* A descriptor that is readable when serve_agent() has something to do; -1: never. */
	int (*agent_fd)(const struct app *a);
	void (*serve_agent)(struct app *a);
	/* A setting that a client asks for, or NULL; and its result: 0, or -errno and why.
	 * wake_fd() is readable when one arrives. */
	const char *(*first_setting)(struct app *a);
	void (*end_setting)(struct app *a, int result, const char *report);
	/* Whether a trace is on. If not: the socket of a client that asks for one of some seconds,
	 * which the caller then owns; otherwise -1. wake_fd() is readable when one asks. */
	int (*take_trace)(struct app *a, bool is_on, unsigned *seconds);
	/* After a drain: ends administrative connections. */
	void (*close_admin)(struct app *a);
	bool (*has_closed_admin)(const struct app *a);
	/* Stops all threads. */
	void (*stop)(struct app *a);
	void (*fini)(struct app *a);

	struct graph *(*graph)(const struct app *a);
	struct tokens *(*tokens)(struct app *a);
	const char *(*url)(const struct app *a);                /* of the first listener */
	void (*describe)(const struct app *a, struct text *to); /* "3 images in flight, ..." */
	uint64_t (*images_stored)(const struct app *a);
	/* Whether another client can read the figures; and writes them to a copy of its socket, as
	 * events of /stats/stream. */
	bool (*has_watch_room)(const struct app *a);
	void (*watch)(struct app *a, int fd);
	/* Looks for images that are to be remade, and appends the counters as a line of JSON. */
	void (*remake)(struct app *a, struct text *to);
	/* Processes images that were added to the spool. */
	void (*recover)(struct app *a);
	/* Appends what each token may use, and uses. */
	void (*quotas)(struct app *a, struct text *to);
};

#endif
