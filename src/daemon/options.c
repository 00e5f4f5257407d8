/*
 * options.c - the command line. Knows nothing of what the options lead to. Main thread.
 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "conf/conf.h"
#include "ctl.h"
#include "policy/policy.h"

#define EXIT_USAGE 2


enum { OPTION_TOPOLOGY = 256, OPTION_PROFILE }; /* without a letter */

static const struct option long_options[] = { { "config", required_argument, NULL, 'c' },
	                                      { "check", no_argument, NULL, 't' },
	                                      { "dump", no_argument, NULL, 'T' },
	                                      { "override", required_argument, NULL, 'o' },
	                                      { "quiet", no_argument, NULL, 'q' },
	                                      { "verbose", no_argument, NULL, 'v' },
	                                      { "keys", no_argument, NULL, 'K' },
	                                      { "help", no_argument, NULL, 'h' },
	                                      { "topology", no_argument, NULL, OPTION_TOPOLOGY },
	                                      { "profile", required_argument, NULL,
	                                        OPTION_PROFILE },
	                                      { "version", no_argument, NULL, 'V' },
	                                      { NULL, 0, NULL, 0 } };

static const char help_text[] =
	"usage: darkroomd [-t | -T | --topology] [-q] [-c FILE] [-o SECTION.KEY=VALUE]... [--profile FILE]\n"
	"       darkroomd [-c FILE] [-o SECTION.KEY=VALUE]... ctl COMMAND\n"
	"       darkroomd token NAME [upload] [delete]\n"
	"       darkroomd --keys | --help | --version [-v]\n"
	"\n"
	"An HTTP daemon that turns every uploaded JPEG into scaled, blurred and re-encoded variants and stores them.\n"
	"It stays in the foreground and logs to standard error.\n"
	"\n"
	"  -c, --config FILE       read the configuration from FILE (default: built-in values, three variants)\n"
	"  -o, --override SECTION.KEY=VALUE\n"
	"                          set a key, whatever the file says; may be given several times\n"
	"  -t, --check             check the configuration, say what is wrong with it, and end\n"
	"  -T, --dump              the same, and print all that is in force, as an INI file\n"
	"      --topology          print the machine's cores and caches, and where the configuration puts its threads\n"
	"      --profile FILE      at the end, write what each stage took and sent to FILE, for layout.profile\n"
	"  -q, --quiet             nothing but warnings and errors\n"
	"  -K, --keys              print every configuration key with its default and meaning, as an INI file\n"
	"  -h, --help              print this\n"
	"  -V, --version           print the version\n"
	"  -v, --verbose           with -V: also compiler and libraries; so does -VV\n"
	"\n"
	"For example:\n"
	"  darkroomd -o server.root=/tmp/store -o server.listen=127.0.0.1:8080\n"
	"  curl -F file=@photo.jpg http://127.0.0.1:8080/images\n"
	"\n"
	"Requests:  POST /images   GET, DELETE /images/ID   GET /images/ID/VARIANT.jpg   GET /healthz, /readyz,\n"
	"           /stats, /metrics\n"
	"Signals:   TERM, INT  finish what is in flight and end; a second one ends at once\n"
	"           HUP        read the configuration again; what is live in --keys changes at once, a wrong file changes nothing;\n"
	"                      open log.access_file anew\n"
	"Exit:      0  ended as asked     1  failed at run time\n"
	"           2  wrong usage        78 wrong configuration\n";

static void print_help(void)
{
	char policies[256], commands[1024];
	struct text t;

	policy_list(policies, sizeof policies);
	text_init(&t, commands, sizeof commands);
	ctl_print_commands(&t);
	printf("%s\nPolicies:  %s\n\n", help_text, policies);
	printf("token makes a token for uploads and DELETE, and its line of access.tokens_file.\n\n");
	printf("Commands of ctl, to the running daemon that the configuration describes (server.control):\n%s",
	       commands);
}

static int usage(void)
{
	fputs("Try 'darkroomd --help'.\n", stderr);
	return EXIT_USAGE;
}

int options_finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror("darkroomd: standard output");
	return EXIT_FAILURE;
}

/* Handles one option. Returns -1 to go on, else the exit status. */
static int take_option(struct options *o, int option)
{
	switch (option) {
	case 'c':
		o->config_path = optarg;
		return -1;
	case 'o':
		o->overrides[o->override_count++] = optarg;
		return -1;
	case 't':
		o->check_only = true;
		return -1;
	case 'T':
		o->check_only = o->dump = true;
		return -1;
	case OPTION_TOPOLOGY:
		o->topology = true;
		return -1;
	case OPTION_PROFILE:
		o->profile = optarg;
		return -1;
	case 'v':
		o->verbose = true;
		return -1;
	case 'V':
		o->version++;
		return -1;
	case 'q':
		o->quiet = true;
		return -1;
	case 'K':
		conf_print_keys(stdout);
		return options_finish_output();
	case 'h':
		print_help();
		return options_finish_output();
	default:
		return usage(); /* getopt has said what is wrong */
	}
}

/* What is no option: nothing, or ctl or token with what belongs to it. Returns -1 to go on, else
 * the exit status. */
static int take_words(struct options *o, char *const *words, size_t count)
{
	if (count == 0)
		return -1;
	o->makes_token = strcmp(words[0], "token") == 0;
	if (!o->makes_token && strcmp(words[0], "ctl") != 0) {
		fprintf(stderr, "darkroomd: unexpected argument '%s'\n", words[0]);
		return usage();
	}
	if (count == 1 && !o->makes_token) {
		fputs("darkroomd: ctl what? Expected a command\n", stderr);
		return usage();
	}
	o->command = words + 1;
	o->command_length = count - 1;
	return -1;
}

int options_parse(struct options *o, int argc, char **argv)
{
	int option, status = -1;

	assert(argc >= 1);
	*o = (struct options){
		.overrides = calloc((size_t)argc, sizeof *o->overrides)
	}; /* there cannot be more */
	if (!o->overrides) {
		perror("darkroomd");
		return EXIT_FAILURE;
	}
	optind = 0; /* start anew, even after an earlier call */
	while (status < 0 &&
	       (option = getopt_long(argc, argv, "c:o:tTqvKhV", long_options, NULL)) != -1)
		status = take_option(o, option);
	return status < 0 ? take_words(o, argv + optind, (size_t)(argc - optind)) : status;
}

void options_fini(struct options *o)
{
	free(o->overrides);
	*o = (struct options){ 0 };
}
