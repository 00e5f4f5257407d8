/*
 * program.h - what the daemon calls of the program that it runs.
 *
 * stages/app.c defines the one instance, so that src/ includes nothing of stages/. All functions
 * run on the main thread. Includes none of the tree: stages/ may include this header and no other
 * of daemon/.
 */
#ifndef DARKROOM_DAEMON_PROGRAM_H
#define DARKROOM_DAEMON_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;
struct graph;
struct text;
struct tokens;

/* What administrative clients ask of the main thread. */
struct program_admin {
	/* A descriptor that is readable when serve_agent() has something to do; -1: never. It may
	 * change. */
	const int *agent_fd;
	void (*serve_agent)(void);
	/* A setting that a client asks for, or NULL; and its result: 0, or -errno and why.
	 * wake_fd is readable when one arrives. */
	const char *(*first_setting)(void);
	void (*end_setting)(int result, const char *report);
	/* Writes the figures to a copy of the socket, as events of /stats/stream. Returns false if
	 * too many clients read them. */
	bool (*watch)(int fd);
	/* After a drain: ends the connections of such clients. */
	void (*close)(void);
	bool (*has_closed)(void);
};

struct program {
	/* Checks the operations of all variants. Returns 0, or -EINVAL with the problem in error
	 * and the index of the variant. */
	int (*check_variants)(const struct conf *conf, unsigned *variant, char *error,
	                      size_t error_size);
	/* Logs each address to listen on that cannot be used. Returns 0 or -errno. */
	int (*check_addresses)(const struct conf *conf);

	/* A change of the configuration: prepare, then commit or cancel. prepare also checks that
	 * the running program has room. It returns 0, or -errno with the problem as a line of
	 * errors and nothing to cancel. */
	int (*prepare)(const struct conf *conf, struct text *errors);
	void (*commit)(void);
	void (*cancel)(void);

	/* Opens files and sockets and makes the graph. Returns 0 or -errno, logged. */
	int (*init)(const struct conf *conf);
	/* Starts all threads. Returns 0 or -errno, logged. */
	int (*start)(void);
	/* Makes /readyz return 503; everything else is served as before. */
	void (*announce_end)(void);
	/* Stops accepting connections and images. */
	void (*drain)(void);
	/* During a drain: whether connections or images are left. */
	bool (*is_busy)(void);
	/* Does what is due on the main thread. Returns the ms until the next call, or -1: the next
	 * call is due when wake_fd is readable, which this call ends. */
	int (*tick)(void);
	const int *wake_fd;
	/* Whether the program can be of use again only by a restart; logged. */
	bool (*must_restart)(void);
	/* Stops all threads. */
	void (*stop)(void);
	void (*fini)(void);

	struct graph *const *graph; /* after init() */
	struct tokens *tokens;
	const char *url; /* of the first listener */
	const _Atomic uint64_t *images_stored;
	void (*describe)(struct text *to); /* "3 images in flight, ..." */
	/* Looks for images that are to be remade, and appends the counters as a line of JSON. */
	void (*remake)(struct text *to);
	/* Appends what each token may use, and uses. */
	void (*quotas)(struct text *to);

	struct program_admin admin;
};

#endif
