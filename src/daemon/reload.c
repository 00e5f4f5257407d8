/*
 * reload.c - from a requested configuration to the active one. Main thread.
 */
#include "reload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "access/tokens.h"
#include "base/clock.h"
#include "base/text.h"
#include "check_all.h"
#include "conf/conf_compare.h"
#include "log/log.h"
#include "notify.h"
#include "options.h"
#include "program.h"
#include "sched/core/graph.h"
#include "telemetry/process.h"

#define REPORT_MAX ((size_t)64 << 10)
#define ANSWER_NS (500 * NS_PER_MS) /* a request waits that long for threads to apply it */

/* Writes one line to the log and to the report. */
__attribute__((format(printf, 3, 4))) static void report_line(struct text *report,
                                                              enum log_level level,
                                                              const char *format, ...)
{
	char line[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	log_write(level, "%s", line);
	text_printf(report, "%s\n", line);
}

/* Reports every line of the text, with the same end. */
static void report_lines(struct text *report, enum log_level level, const char *lines,
                         const char *end)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		report_line(report, level, "%.*s%s", (int)length, lines, end);
		lines += length + (lines[length] == '\n');
	}
}

void reload_log(const struct options *options, const struct conf *conf)
{
	log_set_level(options->quiet ? LOG_LEVEL_WARNING : (enum log_level)conf->log.level);
	log_set_access((enum log_access)conf->log.access);
}

void reload_print(const struct reload *r, struct text *to)
{
	text_puts(to, "active: ");
	conf_print_live(&r->conf, to);
}

void reload_print_differences(const struct reload *r, struct text *to)
{
	const char *path = r->options->config_path;
	struct text errors, lines;
	struct conf file;

	text_init_growable(&errors, REPORT_MAX);
	text_init_growable(&lines, REPORT_MAX);
	if (check_load(r->options, false, &file, &errors))
		text_printf(to, "the file is wrong; a reload would fail:\n%s", errors.data);
	else if (conf_diff(&r->conf, &file, path ? "file" : "default", &lines))
		text_printf(to, "differs from %s%s:\n%s", path ? path : "the defaults",
		            r->options->override_count ? " and the options -o" : "", lines.data);
	else
		text_printf(to, "nothing differs from %s%s\n", path ? path : "the defaults",
		            r->options->override_count ? " and the options -o" : "");
	text_fini(&lines);
	text_fini(&errors);
}

static void report_active(const struct reload *r, struct text *report)
{
	struct text line;

	text_init_growable(&line, REPORT_MAX);
	reload_print(r, &line);
	report_line(report, LOG_LEVEL_NOTICE, "%s", line.data);
	text_fini(&line);
}

/* Checks the merged configuration and hands it to program and graph. 0 or -errno, with lines of
 * errors. */
static int switch_to(struct reload *r, const struct conf *changed, struct text *errors)
{
	const struct check check = { .source = NULL };
	struct graph *graph = *program.graph;
	struct schedule *next;
	int err = check_all(&check, changed, errors);

	if (!err)
		err = program_prepare(changed, errors);
	if (err)
		return err;
	err = graph_prepare_switch(graph, changed, &next);
	if (err == -EBUSY) {
		text_puts(errors, "too many changes are not applied yet by ");
		graph_print_behind(graph, errors);
		text_puts(errors, "\n");
	}
	if (err) {
		program_cancel();
		return err;
	}
	/* In this order: a worker that has adopted the schedule finds the new configuration. */
	program_commit();
	graph_switch(graph, next);
	r->answer_ns = clock_ns() + ANSWER_NS;
	r->is_published = true;
	return 0;
}

/* Applies the live keys of next. Appends the names of changed keys that need a restart to others.
 * Returns 0 or -errno, with lines of errors, which are reported. */
static int apply(struct reload *r, const struct conf *next, struct text *others,
                 struct text *errors, struct text *report)
{
	struct conf changed = r->conf;

	if (conf_take_live(&changed, next, others) == 0)
		return 0;
	int err = switch_to(r, &changed, errors);

	if (err) {
		text_printf(errors,
		            "configuration: cannot apply the change: %s; it stays unchanged\n",
		            strerror(-err));
		report_lines(report, LOG_LEVEL_ERROR, errors->data, "");
	} else {
		r->conf = changed;
		reload_log(r->options, &r->conf);
	}
	return err;
}

/* ---- who has applied it ---- */

bool reload_can_answer(uint64_t answer_ns)
{
	return graph_is_settled(*program.graph) || clock_ns() >= answer_ns;
}

bool reload_print_behind(struct text *to)
{
	struct text names = TEXT_LOCAL(512);

	graph_print_behind(*program.graph, &names);
	if (graph_is_settled(*program.graph) || !names.length)
		return false;
	text_printf(to, "published; still at work under the former configuration: %s", names.data);
	return true;
}

void reload_tick(struct reload *r)
{
	struct text behind = TEXT_LOCAL(512);

	if (!(r->is_published || r->is_notifying) || !reload_can_answer(r->answer_ns))
		return;
	bool is_behind = reload_print_behind(&behind);

	if (is_behind && !r->is_late)
		log_warning("configuration: %s; each thread applies the new one when its work ends",
		            behind.data);
	else if (!is_behind && r->is_late)
		log_notice("configuration: every thread has applied it");
	r->is_late = is_behind;
	r->is_published = is_behind && r->is_published;
	if (r->is_notifying)
		notify_send("READY=1\nSTATUS=%s", behind.length ? behind.data : "reloaded");
	r->is_notifying = false;
}

/* ---- requests ---- */

/* Loads and checks the file and the tokens. 0 or -errno, reported. */
static int load(struct reload *r, struct conf *next, struct text *errors, struct text *report)
{
	int err = check_load(r->options, false, next, errors);

	if (!err)
		err = tokens_reload(program.tokens, errors);
	if (err) {
		report_lines(report, LOG_LEVEL_ERROR, errors->data, "");
		report_line(report, LOG_LEVEL_ERROR,
		            "configuration: the file is wrong; it stays unchanged");
	}
	return err;
}

int reload_file(struct reload *r, struct text *report)
{
	struct text errors, others;
	struct conf next;

	/* In one datagram: systemd 253 and later match the time with the request for a reload. */
	notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reloading the configuration",
	            clock_ns() / 1000);
	if (log_access_reopen())
		text_puts(report,
		          "log.access_file: cannot reopen it (the log has the cause); the old file "
		          "stays in use\n");
	text_init_growable(&errors, REPORT_MAX);
	text_init_growable(&others, REPORT_MAX);
	int err = load(r, &next, &errors, report);

	if (!err)
		err = apply(r, &next, &others, &errors, report);
	if (!err) {
		report_lines(report, LOG_LEVEL_WARNING, others.data,
		             " needs a restart: it stays unchanged");
		report_active(r, report);
	}
	r->has_failed = err != 0;
	process_set_reload(r->has_failed);
	r->is_notifying = !err; /* reload_tick() reports the end */
	if (err)                /* the protocol has no message for a failed reload */
		notify_send("READY=1\nSTATUS=reload failed, configuration unchanged: %.*s",
		            (int)strcspn(errors.data, "\n"), errors.data);
	text_fini(&others);
	text_fini(&errors);
	return err;
}

int reload_set(struct reload *r, const char *setting, struct text *report)
{
	struct conf next = r->conf;
	struct text errors, others;

	text_init_growable(&errors, REPORT_MAX);
	text_init_growable(&others, REPORT_MAX);
	int err = check_change(setting, &next, &errors);

	if (err)
		report_lines(report, LOG_LEVEL_WARNING, errors.data, "");
	else
		err = apply(r, &next, &others, &errors, report);
	if (!err && others.length) {
		report_lines(report, LOG_LEVEL_WARNING, others.data,
		             " needs a restart: set it in the configuration file");
		err = -ENOTSUP;
	}
	if (!err)
		report_active(r, report);
	text_fini(&others);
	text_fini(&errors);
	return err;
}
