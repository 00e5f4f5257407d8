/*
 * options.c - parses the command line. Knows nothing of what the options lead to. Main thread.
 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/suggest.h"
#include "base/text.h"
#include "conf/conf_keys.h"
#include "ctl_socket.h"
#include "policy/policy.h"

enum { OPTION_TOPOLOGY = 256, OPTION_TRACE, OPTION_ONCE }; /* without a letter */

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "check", no_argument, NULL, 't' },
	{ "dump", no_argument, NULL, 'T' },
	{ "override", required_argument, NULL, 'o' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "keys", optional_argument, NULL, 'K' },
	{ "help", no_argument, NULL, 'h' },
	{ "topology", no_argument, NULL, OPTION_TOPOLOGY },
	{ "trace", required_argument, NULL, OPTION_TRACE },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"usage: darkroomd [-t | -T | --topology] [-q] [-c FILE] [-o SECTION.KEY=VALUE]...\n"
	"                 [--trace FILE]\n"
	"       darkroomd [-c FILE] [-o SECTION.KEY=VALUE]... ctl COMMAND\n"
	"       darkroomd [-c FILE] [-o SECTION.KEY=VALUE]... store COMMAND\n"
	"       darkroomd token NAME [SCOPE]... [QUOTA]...\n"
	"       darkroomd token sign NAME SECONDS IMAGES BYTES <TOKEN\n"
	"       darkroomd --keys[=all] | --help | --version [-v]\n"
	"\n"
	"An HTTP daemon that turns every uploaded picture into scaled, blurred and re-encoded\n"
	"variants and stores them. It stays in the foreground and logs to standard error.\n"
	"\n"
	"  -c, --config FILE    read the configuration from FILE (default: built-in values with three\n"
	"                       variants)\n"
	"  -o, --override SECTION.KEY=VALUE\n"
	"                       set a key; overrides the file; may be repeated\n"
	"  -t, --check          check the configuration, report all problems, and exit\n"
	"  -T, --dump           check it and print every key with its value as an INI file\n"
	"      --topology       print the machine's cores and caches, and the place of each thread\n"
	"      --once           ctl top prints one table and ends\n"
	"      --trace FILE     write every visit of a worker to FILE, for scripts/trace-draw\n"
	"  -q, --quiet          log only warnings and errors; ctl prints only failures\n"
	"  -K, --keys           print the keys with their defaults and meanings as an INI file\n"
	"      --keys=all       print also those that are only for experiments\n"
	"  -h, --help           print this text\n"
	"  -V, --version        print the version\n"
	"  -v, --verbose        with -V: also print compiler and libraries; -VV does the same\n"
	"\n"
	"For example:\n"
	"  darkroomd -o server.root=/tmp/store -o server.listen=127.0.0.1:8080\n"
	"  curl -F file=@photo.jpg http://127.0.0.1:8080/images\n"
	"\n"
	"Requests:  POST /images   GET, DELETE /images/ID   GET /images/ID/VARIANT.jpg\n"
	"           GET /healthz, /readyz, /stats, /metrics\n"
	"Signals:   TERM, INT  finish the work in flight and exit; a second one, half a second\n"
	"                      later or more, exits at once\n"
	"           HUP        reload the configuration: live keys change at once, a wrong file changes\n"
	"                      nothing; reopen log.access_file\n"
	"Exit:      0  ended as requested    1  failed at run time\n"
	"           2  wrong usage          78  wrong configuration\n";

static int usage(void)
{
	fputs("Try 'darkroomd --help'.\n", stderr);
	return OPTIONS_EXIT_USAGE;
}

int options_finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	perror("darkroomd: standard output");
	return EXIT_FAILURE;
}

int options_print_help(void)
{
	struct text commands = TEXT_LOCAL(1024);
	char policies[256];

	policy_list(policies, sizeof policies);
	ctl_print_commands(&commands);
	printf("%s\nPolicies:  %s\n\n", help_text, policies);
	printf("token makes a token for uploads and DELETE, with its line of access.tokens_file.\n\n");
	printf("store lists, checks, removes, remakes and moves images: see darkroom-store(7).\n\n");
	printf("Commands of ctl, for the running daemon of the configuration (server.control):\n%s",
	       commands.data);
	return options_finish_output();
}

static void request(struct options *o, enum verb verb)
{
	if (verb > o->verb)
		o->verb = verb;
}

/* getopt has reported a long option, "--WORD" or "--WORD=VALUE": says what it may be. */
static int suggest_option(const char *word)
{
	char name[64];
	struct suggest option = { .wanted = name }, key = option;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (size_t i = 0; long_options[i].name; i++)
		suggest_offer(&option, long_options[i].name);
	for (size_t i = 0; conf_key_at(i); i++)
		suggest_offer(&key, conf_key_at(i)->name);
	if (option.best)
		fprintf(stderr, "Did you mean --%s?\n", option.best);
	else if (key.best)
		fprintf(stderr, "Did you mean -o SECTION.%s=VALUE?\n", key.best);
	return usage();
}

static int take_keys(struct options *o)
{
	request(o, VERB_KEYS);
	o->all_keys = optarg && strcmp(optarg, "all") == 0;
	if (!optarg || o->all_keys)
		return 0;
	fprintf(stderr, "darkroomd: --keys=%s: expected all\n", optarg);
	return usage();
}

/* Handles one option. 0, or the exit status. */
static int take_option(struct options *o, int option)
{
	switch (option) {
	case 'c':
		o->config_path = optarg;
		break;
	case 'o':
		o->overrides[o->override_count++] = optarg;
		break;
	case 't':
		request(o, VERB_CHECK);
		break;
	case 'T':
		request(o, VERB_DUMP);
		break;
	case OPTION_TOPOLOGY:
		request(o, VERB_TOPOLOGY);
		break;
	case OPTION_TRACE:
		o->trace = optarg;
		break;
	case OPTION_ONCE:
		o->once = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case 'V':
		o->verbose |= o->verb == VERB_VERSION;
		request(o, VERB_VERSION);
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'K':
		return take_keys(o);
	case 'h':
		request(o, VERB_HELP);
		break;
	default:
		return usage(); /* getopt has reported the problem */
	}
	return 0;
}

/* Handles what is not an option: nothing, or ctl or token with their words. 0, or the exit status.
 */
static int take_words(struct options *o, char *const *words, size_t count)
{
	static const char *const commands[] = { "ctl", "store", "token" };

	if (count == 0)
		return 0;
	if (strcmp(words[0], "store") == 0) {
		fputs("darkroomd: store: expected a command\n", stderr);
		return usage(); /* with one, take_store() has taken it */
	}
	if (strcmp(words[0], "token") != 0 && strcmp(words[0], "ctl") != 0) {
		struct suggest suggest = { .wanted = words[0] };

		for (size_t i = 0; i < COUNT_OF(commands); i++)
			suggest_offer(&suggest, commands[i]);
		fprintf(stderr, "darkroomd: unexpected argument '%s'%s\n", words[0],
		        suggest_phrase(&suggest));
		return usage();
	}
	bool is_ctl = strcmp(words[0], "ctl") == 0;

	if (count == 1 && is_ctl) {
		fputs("darkroomd: ctl: expected a command\n", stderr);
		return usage();
	}
	request(o, is_ctl ? VERB_CTL : VERB_TOKEN);
	o->words = words + 1;
	o->word_count = count - 1;
	if (!is_ctl || strcmp(words[1], "top") != 0)
		return 0;
	request(o, VERB_TOP);
	if (count == 2)
		return 0;
	fprintf(stderr, "darkroomd: ctl top: unexpected argument '%s'\n", words[2]);
	return usage();
}

/* Parses options. order: "+": only those before the first other word; "": all. */
static int take_options(struct options *o, int argc, char **argv, const char *order)
{
	char letters[32];
	int option, status = 0;

	snprintf(letters, sizeof letters, "%sc:o:tTqvKhV", order);
	optind = 0; /* restarts getopt, also after an earlier call */
	while (status == 0 && o->verb < VERB_KEYS &&
	       (option = getopt_long(argc, argv, letters, long_options, NULL)) != -1)
		status = option == '?' && !optopt ? suggest_option(argv[optind - 1])
		                                  : take_option(o, option);
	return status;
}

/* Returns whether the command is store. What follows it are its own words and options. */
static bool take_store(struct options *o, int argc, char **argv)
{
	if (o->verb >= VERB_KEYS || optind + 1 >= argc || strcmp(argv[optind], "store") != 0)
		return false;
	request(o, VERB_STORE);
	o->words = argv + optind + 1;
	o->word_count = (size_t)(argc - optind - 1);
	return true;
}

int options_parse(struct options *o, int argc, char **argv)
{
	assert(argc >= 1);
	*o = (struct options){ .overrides = calloc((size_t)argc, sizeof *o->overrides) };
	if (!o->overrides) {
		perror("darkroomd");
		return EXIT_FAILURE;
	}
	int status = take_options(o, argc, argv, "+");

	if (status || o->verb >= VERB_KEYS || take_store(o, argc, argv))
		return status;
	*o = (struct options){ .overrides = o->overrides };
	status = take_options(o, argc, argv, "");
	if (status || o->verb >= VERB_KEYS)
		return status;
	status = take_words(o, argv + optind, (size_t)(argc - optind));
	if (status || !o->once || o->verb == VERB_TOP)
		return status;
	fputs("darkroomd: --once is for ctl top\n", stderr);
	return usage();
}

void options_fini(struct options *o)
{
	free(o->overrides);
	*o = (struct options){ 0 };
}
