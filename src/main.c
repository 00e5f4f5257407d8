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
#include "daemon/daemon.h"
#include "daemon/descriptors.h"
#include "daemon/options.h"
#include "daemon/program.h"
#include "daemon/token_command.h"
#include "daemon/top.h"
#include "daemon/verbs.h"
#include "store/store_tool.h"
#include "versions.h"

static const struct program program = {
	.app = &app,
	.check_variants = app_check_variants,
	.check_room = app_check_room,
	.check_addresses = app_check_addresses,
	.prepare = app_change_prepare,
	.commit = app_change_commit,
	.cancel = app_change_cancel,
	.init = app_init,
	.start = app_start,
	.announce_end = app_announce_end,
	.drain = app_drain,
	.is_busy = app_is_busy,
	.tick = app_tick,
	.wake_fd = app_wake_fd,
	.must_restart = app_must_restart,
	.agent_fd = app_agent_fd,
	.serve_agent = app_serve_agent,
	.first_setting = app_first_setting,
	.end_setting = app_end_setting,
	.take_trace = app_take_trace,
	.close_admin = app_close_admin,
	.has_closed_admin = app_has_closed_admin,
	.stop = app_stop,
	.fini = app_fini,
	.graph = app_graph,
	.tokens = app_tokens,
	.url = app_url,
	.describe = app_describe,
	.images_stored = app_images_stored,
	.has_watch_room = app_has_watch_room,
	.watch = app_watch,
	.remake = app_remake,
	.recover = app_recover,
	.quotas = app_quotas,
};

static int print_version(const struct options *o)
{
	printf("darkroomd %s\n", darkroom_version);
	if (o->verbose)
		versions_print(stdout);
	return options_finish_output();
}

/* Verbs that need a valid configuration. */
static int run(const struct options *o)
{
	static struct conf conf;
	struct text errors;

	text_init_growable(&errors, 64 << 10);
	/* The files belong to the daemon: the user of ctl may not be allowed to read them. */
	bool checks_files = o->verb != VERB_CTL && o->verb != VERB_TOP && o->verb != VERB_STORE;
	int err = check_load(&program, o, checks_files, &conf, &errors);

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
		return verb_check(o, &conf, &program);
	case VERB_DUMP:
		return verb_dump(&conf);
	case VERB_TOPOLOGY:
		return verb_topology(&conf);
	default:
		return daemon_run(o, &conf, &program);
	}
}

static int run_verb(const struct options *o)
{
	switch (o->verb) {
	case VERB_HELP:
		return options_print_help();
	case VERB_KEYS:
		return verb_keys();
	case VERB_VERSION:
		return print_version(o);
	case VERB_TOKEN:
		return token_command(o->words, o->word_count);
	case VERB_STORE:
		return store_tool_help(o->words, o->word_count) ? options_finish_output() : run(o);
	default:
		return run(o);
	}
}

int main(int argc, char **argv)
{
	struct options options;

	descriptors_open_standard();
	int status = options_parse(&options, argc, argv);

	if (status == 0)
		status = run_verb(&options);
	options_fini(&options);
	return status;
}
