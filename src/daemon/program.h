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

struct conf;
struct graph;
struct server;
struct text;
struct tokens;

struct program {
	struct server *server; /* the program's own state, passed to its functions */

	/* Checks the operations of all variants. Returns 0, or -EINVAL with the problem in error
	 * and the index of the variant. */
	int (*check_variants)(const struct conf *conf, unsigned *variant, char *error,
	                      size_t error_size);
	/* Checks whether a running server has room for the configuration. Returns 0, or -EINVAL
	 * with the problem as a line of errors. */
	int (*check_room)(struct server *s, const struct conf *conf, struct text *errors);

	/* A change of the configuration: prepare, then commit or cancel. prepare returns 0, or
	 * -errno with the problem as a line of errors and nothing to cancel. */
	int (*prepare)(struct server *s, const struct conf *conf, struct text *errors);
	void (*commit)(struct server *s);
	void (*cancel)(struct server *s);

	/* Opens files and sockets and makes the graph. Returns 0 or -errno, logged. */
	int (*init)(struct server *s, const struct conf *conf);
	/* Starts all threads. Returns 0 or -errno, logged. */
	int (*start)(struct server *s);
	/* Makes /readyz return 503; everything else is served as before. */
	void (*announce_end)(struct server *s);
	/* Stops accepting connections and images. */
	void (*drain)(struct server *s);
	/* During a drain: whether connections or images are left. */
	bool (*is_busy)(const struct server *s);
	/* After a drain: ends administrative connections. */
	void (*close_admin)(struct server *s);
	bool (*has_closed_admin)(const struct server *s);
	/* Stops all threads. */
	void (*stop)(struct server *s);
	void (*fini)(struct server *s);

	struct graph *(*graph)(const struct server *s);
	struct tokens *(*tokens)(struct server *s);
	const char *(*url)(const struct server *s);                /* of the first listener */
	void (*describe)(const struct server *s, struct text *to); /* "3 images in flight, ..." */
	uint64_t (*images_stored)(const struct server *s);
};

#endif
