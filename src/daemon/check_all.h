/*
 * check_all.h - the checks that compare several keys of a configuration, all in one place; and what
 * would keep a valid one from starting here.
 *
 * The values of single keys are checked by conf_load(). These checks cover variants, limits,
 * stages, schedule and layout; on request also the files of profile and tokens. Used at startup, by
 * -t, -T, --topology and ctl, and at every reload. Main thread.
 */
#ifndef DARKROOM_DAEMON_CHECK_ALL_H
#define DARKROOM_DAEMON_CHECK_ALL_H

#include <stdbool.h>

struct conf;
struct conf_source;
struct options;
struct text;

struct check {
	const struct conf_source *source; /* the places of settings; NULL: not known */
	bool has_errors;  /* values were refused: checks that their defaults could fail are skipped
	                   */
	bool check_files; /* also the files of profile and tokens; needs the source */
};

/* Returns 0, or -EINVAL or -errno of a file, with one line per problem in errors. */
int check_all(const struct check *check, const struct conf *conf, struct text *errors);

/* Loads the configuration that the options name and checks it. Returns as conf_load() and
 * check_all(). */
int check_load(const struct options *o, bool check_files, struct conf *conf, struct text *errors);

/* Applies one setting SECTION.KEY=VALUE to a valid configuration and checks the result. Returns 0,
 * or -EINVAL with the problem in errors. */
int check_change(const char *setting, struct conf *conf, struct text *errors);

/* ---- check_start.c: users, directories, addresses, memory ---- */

/* For -t: returns 0, or -EINVAL with each fault logged: an unknown user, a directory that is
 * missing or that server.user cannot write, a file that cannot be read, an address that is not one
 * of this machine. Warns of a memory budget above the machine's memory. */
int check_start(const struct conf *conf);

/* Logs a warning if limits.memory_budget is more than the memory of this machine or of a control
 * group of this process. */
void check_start_memory(const struct conf *conf);

#endif
