/*
 * options.h - the command line, parsed into a struct.
 *
 * Main thread, before anything else.
 */
#ifndef DARKROOM_DAEMON_OPTIONS_H
#define DARKROOM_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct options {
	const char *config_path; /* -c; NULL: built-in values */
	const char **overrides;  /* -o, in order, for conf_load(); the texts are argv's */
	size_t override_count;
	char *const
		*command; /* ctl, token: the words after it, argv's own; NULL: the daemon itself */
	size_t command_length;
	bool makes_token;    /* the command is token's */
	unsigned version;    /* -V: how often */
	bool verbose;        /* -v: with -V, of what the program is made, too */
	bool check_only;     /* -t: check the configuration and end */
	bool dump;           /* -T: the same, and print what it comes to */
	bool topology;       /* --topology: print machine and layout, and end */
	const char *profile; /* --profile: where to write what stages weighed, at the end; NULL:
	                        nowhere */
	bool quiet; /* -q: -t says nothing if all is well; else only warnings and errors are logged
	             */
};

/* What was printed on standard output must have got there: 0, or the exit status. */
int options_finish_output(void);


/*
 * Fills *o, or does what --help and --keys ask for. Returns -1 if the program shall go on, else its
 * exit status: 0 after those, 2 after wrong usage, which is explained on standard error.
 * options_fini() in any case.
 */
int options_parse(struct options *o, int argc, char **argv);
void options_fini(struct options *o);

#endif
