/*
 * main.c - the table of contents: options, configuration, checks, and one of the verbs.
 *
 * The only file of src/ that includes stages/. Exit status: 0 ended as requested, 1 failed, 2 wrong
 * usage, 78 wrong configuration (EX_CONFIG of sysexits.h).
 */
#include <stdio.h>
#include <sysexits.h>

#include "app.h"
#include "base/text.h"
#include "base/version.h"
#include "conf/conf.h"
#include "daemon/check_all.h"
#include "daemon/ctl.h"
#include "daemon/options.h"
#include "daemon/verbs.h"
#include "store/tool/store_tool.h"

/* Verbs that need a valid configuration. */
static int run(const struct options *o)
{
	static struct conf conf;
	struct text errors;

	text_init_growable(&errors, 64 << 10);
	/* The files belong to the daemon: the user of ctl may not be allowed to read them. */
	bool checks_files = o->verb != VERB_CTL && o->verb != VERB_TOP && o->verb != VERB_STORE;
	int err = check_load(o, checks_files, &conf, &errors);

	fputs(errors.data, stderr);
	text_fini(&errors);
	if (err)
		return EX_CONFIG;
	switch (o->verb) {
	case VERB_CTL:
		return ctl_run(&conf, o->words, o->word_count, o->quiet);
	case VERB_TOP:
		return top_run(&conf, o->once);
	case VERB_STORE:
		return store_tool(&conf, ctl_ask, o->words, o->word_count);
	case VERB_CHECK:
		return verb_check(o, &conf);
	case VERB_DUMP:
		return verb_dump(&conf);
	case VERB_TOPOLOGY:
		return verb_topology(&conf);
	default:
		return daemon_run(o, &conf);
	}
}

static int run_verb(const struct options *o)
{
	switch (o->verb) {
	case VERB_HELP:
		return options_print_help();
	case VERB_KEYS:
		return verb_keys(o->all_keys);
	case VERB_VERSION:
		printf("darkroomd %s\n", darkroom_version);
		if (o->verbose)
			versions_print(stdout);
		return options_finish_output();
	case VERB_TOKEN:
		return verb_token(o->words, o->word_count);
	case VERB_STORE:
		return store_tool_help(o->words, o->word_count) ? options_finish_output() : run(o);
	default:
		return run(o);
	}
}

int main(int argc, char **argv)
{
	struct options options;

	daemon_open_standard();
	int status = options_parse(&options, argc, argv);

	if (status == 0)
		status = run_verb(&options);
	options_fini(&options);
	return status;
}
