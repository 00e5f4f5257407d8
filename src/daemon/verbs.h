/*
 * verbs.h - what the command line asks for: the daemon itself, and the verbs that print something
 * and exit: -t, -T, --topology, --keys and token.
 *
 * All return the exit status. Main thread.
 */
#ifndef DARKROOM_DAEMON_VERBS_H
#define DARKROOM_DAEMON_VERBS_H

#include <stdbool.h>
#include <stddef.h>

struct conf;
struct options;

/* Makes descriptors 0 to 2 exist, before anything is opened. Otherwise a file that is opened later
 * could receive messages. */
void daemon_open_standard(void);

/* No verb: runs the program with a checked configuration until a signal ends it. */
int daemon_run(const struct options *o, const struct conf *conf);

/* -t: reports that the configuration is valid, what would keep it from starting here, and what the
 * sandbox will do. */
int verb_check(const struct options *o, const struct conf *conf);

/* -T: prints the configuration as an INI file. */
int verb_dump(const struct conf *conf);

/* --topology: prints the machine and the place of each thread. */
int verb_topology(const struct conf *conf);

/* --keys: prints the keys with their defaults and meanings; has_experiments: all. */
int verb_keys(bool has_experiments);

/* token: prints a new token and its line for access.tokens_file, or a signed permission. */
int verb_token(char *const *words, size_t count);

#endif
