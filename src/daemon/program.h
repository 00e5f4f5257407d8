/*
 * program.h - what the daemon calls of the program that it runs.
 *
 * stages/app.c defines it all, so that src/ includes nothing of stages/. All functions run on the
 * main thread. Includes none of the tree: stages/ may include this header and no other of daemon/.
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

/* What the daemon uses of the program itself. */
struct program {
	struct graph *const *graph; /* after program_init() */
	struct tokens *tokens;
	const char *url; /* of the first listener */
	const _Atomic uint64_t *images_stored;
	const int *wake_fd;  /* readable when program_tick() is due */
	const int *agent_fd; /* when program_serve_agent() is; -1: never. It may change. */
};

extern const struct program program;

/* Checks the operations of all variants. Returns 0, or -EINVAL with the problem in error and the
 * index of the variant. */
int program_check_variants(const struct conf *conf, unsigned *variant, char *error,
                           size_t error_size);
/* Logs each address to listen on that cannot be used. Returns 0 or -errno. */
int program_check_addresses(const struct conf *conf);

/* A change of the configuration: prepare, then commit or cancel. prepare also checks that the
 * running program has room. It returns 0, or -errno with the problem as a line of errors and
 * nothing to cancel. */
int program_prepare(const struct conf *conf, struct text *errors);
void program_commit(void);
void program_cancel(void);

/* Opens files and sockets and makes the graph. Returns 0 or -errno, logged. */
int program_init(const struct conf *conf);
/* Starts all threads. Returns 0 or -errno, logged. */
int program_start(void);
/* Makes /readyz return 503; everything else is served as before. */
void program_announce_end(void);
/* Stops accepting connections and images. */
void program_drain(void);
/* During a drain: whether connections or images are left. */
bool program_is_busy(void);
/* Does what is due on the main thread. Returns the ms until the next call, or -1: the next call is
 * due when wake_fd is readable, which this call ends. */
int program_tick(void);
/* Whether the program can be of use again only by a restart; logged. */
bool program_must_restart(void);
/* Stops all threads. */
void program_stop(void);
void program_fini(void);

void program_describe(struct text *to); /* "3 images in flight, ..." */
/* Looks for images that are to be remade, and appends the counters as a line of JSON. */
void program_remake(struct text *to);
/* Appends what each token may use, and uses. */
void program_quotas(struct text *to);

/* ---- what administrative clients ask of the main thread ---- */

void program_serve_agent(void);
/* A setting that a client asks for, or NULL; and its result: 0, or -errno and why. wake_fd is
 * readable when one arrives. */
const char *program_first_setting(void);
void program_end_setting(int result, const char *report);
/* Writes the figures to a copy of the socket, as events of /stats/stream. Returns false if too many
 * clients read them. */
bool program_watch(int fd);
/* After a drain: ends the connections of such clients. */
void program_close_admin(void);
bool program_has_closed_admin(void);

#endif
