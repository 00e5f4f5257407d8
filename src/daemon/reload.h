/*
 * reload.h - another configuration, taken up while the daemon serves.
 *
 * The struct conf that the daemon was started with is never written again, so that any thread may
 * read it; of its live keys it tells only how they were at the start. What is in force of those is
 * here, and with the main thread alone: it hands them to the graph, which passes them on to the
 * workers. Main thread.
 */
#ifndef DARKROOM_DAEMON_RELOAD_H
#define DARKROOM_DAEMON_RELOAD_H

#include "conf/conf.h"

struct graph;
struct options;
struct text;
struct tokens;

/* Whoever else goes by the configuration: prepare, then commit, or cancel if the graph cannot go by
 * it. */
struct reload_user {
	int (*prepare)(void *arg, const struct conf *conf,
	               struct text *errors); /* 0, or -errno, why being a line of errors */
	void (*commit)(void *arg);
	void (*cancel)(void *arg);
};

struct reload {
	const struct options *options; /* borrowed */
	/* Reads the configuration anew and checks all of it; 0, or -errno with every problem as a
	 * line of errors. */
	int (*load)(const struct options *options, struct conf *conf, struct text *errors);
	struct graph *graph;            /* borrowed */
	const struct reload_user *user; /* borrowed */
	void *user_arg;
	struct tokens *tokens; /* borrowed: read again as well */
	struct conf conf;      /* in force */
	bool has_failed;       /* the file was wrong when it was read last */
};

/*
 * Reads the file again, with the overrides of the command line on top, and goes by it as far as
 * that needs no restart; what has been set by reload_set() is forgotten. Opens the access log anew
 * in any case. All of it is logged, and appended to said as lines. 0, or -errno: then the
 * configuration in force is the one of before.
 */
int reload_file(struct reload *r, struct text *said);

/* Changes one key: setting is SECTION.KEY=VALUE. As above; -ENOTSUP if that key needs a restart. */
int reload_set(struct reload *r, const char *setting, struct text *said);

/* Appends what is in force, as one line without an end. */
void reload_print(const struct reload *r, struct text *to);

/* Sets what is logged as the configuration asks for, or -q. */
void reload_log(const struct options *options, const struct conf *conf);

#endif
