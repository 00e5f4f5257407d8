/*
 * options.h - the command line as a struct.
 *
 * Main thread, before everything else.
 */
#ifndef DARKROOM_DAEMON_OPTIONS_H
#define DARKROOM_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_EXIT_USAGE 2

/* What the command line asks for. If there are several, the last of this list wins. */
enum verb {
	VERB_RUN = 0,  /* run the daemon */
	VERB_CTL,      /* ctl COMMAND */
	VERB_TOP,      /* ctl top */
	VERB_STORE,    /* store COMMAND */
	VERB_CHECK,    /* -t */
	VERB_DUMP,     /* -T */
	VERB_TOPOLOGY, /* --topology */
	VERB_TOKEN,    /* token NAME ... */
	VERB_VERSION,  /* -V */
	VERB_KEYS,     /* --keys, --keys=all */
	VERB_HELP      /* --help */
};

struct options {
	enum verb verb;
	const char *config_path; /* -c; NULL: the defaults */
	const char **overrides;  /* -o, in order, for conf_load(); the texts are those of argv */
	size_t override_count;
	char *const *words; /* ctl, store, token: the words after it, in argv */
	size_t word_count;
	bool verbose;      /* -v, -VV: with the versions of compiler and libraries */
	const char *trace; /* --trace: file for the visits of workers; NULL: none */
	bool all_keys;     /* --keys=all: also those of experiments */
	bool once;         /* --once: ctl top prints one table */
	bool quiet;        /* -q: only warnings and errors; -t prints nothing if all is well */
};

/* Parses the command line. Returns 0, or the exit status: wrong usage, which is reported. The
 * caller calls options_fini() in any case. */
int options_parse(struct options *o, int argc, char **argv);
void options_fini(struct options *o);

/* --help: prints the usage. Returns the exit status. */
int options_print_help(void);

/* Flushes standard output. Returns 0, or the exit status if something could not be written, which
 * is reported. */
int options_finish_output(void);

#endif
