/*
 * ctl_command.c - finds and runs the commands of darkroomd ctl. Knows nothing of the socket.
 *
 * Main thread.
 */
#include "ctl_socket.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/version.h"
#include "conf/conf_print.h"
#include "layout/partition.h"
#include "program.h"
#include "reload.h"
#include "sched/core/profile.h"
#include "trace_output.h"

struct command {
	const char *name, *arguments, *help;
	bool may_be_bare; /* the arguments are optional */
	/* arguments: the text after the name, or "" */
	enum ctl_status (*run)(struct reload *r, char *arguments, struct text *answer);
};

static enum ctl_status run_policy(struct reload *r, char *arguments, struct text *answer)
{
	char setting[CTL_LINE_MAX + 32];

	if (!*arguments) {
		text_printf(answer, "%s\n", r->conf.scheduler.policy);
		return CTL_DONE;
	}
	snprintf(setting, sizeof setting, "scheduler.policy=%s", arguments);
	return reload_set(r, setting, answer) ? CTL_REFUSED : CTL_CHANGED;
}

/* Accepts KEY VALUE, and KEY=VALUE as after -o. */
static enum ctl_status run_set(struct reload *r, char *arguments, struct text *answer)
{
	size_t key = strcspn(arguments, " =");

	if (arguments[key])
		arguments[key] = '=';
	return reload_set(r, arguments, answer) ? CTL_REFUSED : CTL_CHANGED;
}

static enum ctl_status run_reload(struct reload *r, char *arguments, struct text *answer)
{
	(void)arguments;
	return reload_file(r, answer) ? CTL_REFUSED : CTL_CHANGED;
}

static enum ctl_status run_status(struct reload *r, char *arguments, struct text *answer)
{
	(void)arguments;
	text_printf(answer, "darkroomd %s, process %d\n", darkroom_version, (int)getpid());
	reload_print(r, answer);
	text_puts(answer, "\n");
	if (reload_print_behind(answer))
		text_puts(answer, "\n");
	reload_print_differences(r, answer);
	return CTL_DONE;
}

static enum ctl_status run_dump(struct reload *r, char *arguments, struct text *answer)
{
	(void)arguments;
	return conf_dump(&r->conf, answer) ? CTL_REFUSED : CTL_DONE;
}

/* Prints the costs of the stages since the start, in the form of layout.profile. */
static enum ctl_status run_profile(struct reload *r, char *arguments, struct text *answer)
{
	struct partition_weights weights;

	(void)r;
	(void)arguments;
	stage_costs_collect(&weights, *program.graph);
	profile_print(&weights, answer);
	return CTL_DONE;
}

/* Accepts SECONDS. The socket starts the trace after the answer. */
static enum ctl_status run_trace(struct reload *r, char *arguments, struct text *answer)
{
	size_t digits = strspn(arguments, "0123456789");
	unsigned long seconds = digits < 6 ? strtoul(arguments, NULL, 10) : 0;

	if (arguments[digits] || seconds < 1 || seconds > TRACE_SECONDS_MAX) {
		text_printf(answer, "trace %.40s: expected seconds, from 1 to %u\n", arguments,
		            TRACE_SECONDS_MAX);
		return CTL_USAGE;
	}
	if (trace_output_is_on(r->trace)) {
		text_puts(answer, "a trace is on already; there can be one at a time\n");
		return CTL_REFUSED;
	}
	r->trace->seconds = (unsigned)seconds;
	return CTL_TRACE;
}

/* The socket becomes a watcher of /stats/stream. The client shows it: top.h. */
static enum ctl_status run_top(struct reload *r, char *arguments, struct text *answer)
{
	(void)r;
	(void)arguments;
	(void)answer;
	return CTL_TOP;
}

/* For darkroomd store remake, which has added images to the queue. */
static enum ctl_status run_remake(struct reload *r, char *arguments, struct text *answer)
{
	(void)r;
	(void)arguments;
	program_remake(answer);
	return CTL_DONE;
}

static enum ctl_status run_quota(struct reload *r, char *arguments, struct text *answer)
{
	(void)r;
	(void)arguments;
	program_quotas(answer);
	return CTL_DONE;
}

static const struct command commands[] = {
	{ "policy", "[NAME]", "switch to another policy at once, or print the active one", true,
	  run_policy },
	{ "set", "SECTION.KEY VALUE", "change a live key until the next reload; --keys lists them",
	  false, run_set },
	{ "reload", "", "reload the configuration, as SIGHUP does", true, run_reload },
	{ "profile", "", "print the costs of the stages since startup, for layout.profile", true,
	  run_profile },
	{ "trace", "SECONDS", "write the visits of workers to standard output; see darkroomd(8)",
	  false, run_trace },
	{ "status", "", "print the version, the active live keys, and what differs from the file",
	  true, run_status },
	{ "top", "", "show stages, cores and figures twice a second; --once prints them once", true,
	  run_top },
	{ "remake", "", "continue with what store remake has begun, and print its counters", true,
	  run_remake },
	{ "quota", "", "print what each token may store and upload, and what it has", true,
	  run_quota },
	{ "dump", "", "print the active configuration as an INI file", true, run_dump },
};

void ctl_print_commands(struct text *to)
{
	for (size_t i = 0; i < COUNT_OF(commands); i++)
		text_printf(to, "  %-8s%-19s %s\n", commands[i].name, commands[i].arguments,
		            commands[i].help);
}

static const struct command *find(const char *name, struct text *answer)
{
	struct suggest suggest = { .wanted = name };

	for (size_t i = 0; i < COUNT_OF(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
		suggest_offer(&suggest, commands[i].name);
	}
	text_printf(answer, "unknown command %.80s%s\n", name, suggest_phrase(&suggest));
	ctl_print_commands(answer);
	return NULL;
}

enum ctl_status ctl_command(struct reload *r, char *line, struct text *answer)
{
	size_t name = strcspn(line, " ");
	char *arguments = line[name] ? line + name + 1 : line + name;

	line[name] = '\0';
	const struct command *command = find(line, answer);

	if (!command)
		return CTL_USAGE;
	if (*command->arguments ? !*arguments && !command->may_be_bare : *arguments) {
		text_printf(answer, "expected %s%s%s\n", command->name,
		            *command->arguments ? " " : "", command->arguments);
		return CTL_USAGE;
	}
	return command->run(r, arguments, answer);
}
