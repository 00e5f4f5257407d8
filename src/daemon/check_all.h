/*
 * check_all.h - the checks that compare several keys of a configuration, all in one place.
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
struct program;
struct text;

struct check {
	const struct program *program;
	const struct conf_source *source; /* the places of settings; NULL: not known */
	bool has_errors;  /* values were refused: checks that their defaults could fail are skipped
	                   */
	bool check_files; /* also the files of profile and tokens; needs the source */
};

/* Returns 0, or -EINVAL or -errno of a file, with one line per problem in errors. */
int check_all(const struct check *check, const struct conf *conf, struct text *errors);

/* Loads the configuration that the options name and checks it. Returns as conf_load() and
 * check_all(). */
int check_load(const struct program *program, const struct options *o, bool check_files,
               struct conf *conf, struct text *errors);

/* Applies one setting SECTION.KEY=VALUE to a valid configuration and checks the result. Returns 0,
 * or -EINVAL with the problem in errors. */
int check_change(const struct program *program, const char *setting, struct conf *conf,
                 struct text *errors);

#endif
