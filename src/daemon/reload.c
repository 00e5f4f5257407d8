/* reload.c - from a configuration that was asked for to the one in force. Main thread. */
#include "reload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "log/log.h"
#include "notify.h"
#include "options.h"
#include "sched/schedule_switch.h"
#include "tokens.h"

#define SAID_MAX ((size_t)64 << 10)

static void say(struct text *said, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* One line, to the log and to whoever asked. */
static void say(struct text *said, enum log_level level, const char *format, ...)
{
	char line[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	log_write(level, "%s", line);
	text_printf(said, "%s\n", line);
}

/* Says every line of the text, with something behind it. */
static void say_lines(struct text *said, enum log_level level, const char *lines, const char *end)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		say(said, level, "%.*s%s", (int)length, lines, end);
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
	text_puts(to, "in force: ");
	conf_print_live(&r->conf, to);
}

static void say_in_force(const struct reload *r, struct text *said)
{
	struct text line;

	text_init_growable(&line, SAID_MAX);
	reload_print(r, &line);
	say(said, LOG_LEVEL_NOTICE, "%s", line.data);
	text_fini(&line);
}

/* Goes by next as far as that is possible; names of keys that need a restart are appended to
 * others. */
static int apply(struct reload *r, const struct conf *next, struct text *others, struct text *said)
{
	struct conf changed = r->conf;
	unsigned taken = conf_take_live(&changed, next, others);
	struct text errors;

	if (!taken)
		return 0;
	text_init_growable(&errors, SAID_MAX);
	int err = r->user->prepare(r->user_arg, &changed, &errors);
	bool is_prepared = !err;

	if (!err)
		err = graph_switch(r->graph, &changed);
	if (err) {
		say_lines(said, LOG_LEVEL_ERROR, errors.data, "");
		say(said, LOG_LEVEL_ERROR, "the change cannot be made, all stays as it was: %s",
		    strerror(-err));
		if (is_prepared)
			r->user->cancel(r->user_arg);
	} else {
		r->user->commit(r->user_arg);
		r->conf = changed;
	}
	text_fini(&errors);
	if (err)
		return err;
	reload_log(r->options, &r->conf);
	return 0;
}

/* The manager's protocol knows no failure: it is told in the status. */
static void notify_result(const struct reload *r, const char *errors)
{
	if (r->has_failed)
		notify_send("READY=1\nSTATUS=reload failed, all stays as it was: %.*s",
		            (int)strcspn(errors, "\n"), errors);
	else
		notify_send("READY=1\nSTATUS=reloaded");
}

int reload_file(struct reload *r, struct text *said)
{
	struct text errors, others;
	struct conf next;

	/* In one datagram: systemd 253 and later tell by the time which reload is meant. */
	notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRIu64
	            "\nSTATUS=reading the configuration again",
	            clock_ns() / 1000);
	if (log_access_reopen()) /* whatever becomes of the configuration */
		text_puts(
			said,
			"the access log cannot be opened anew, the one before stays: the log says why\n");
	text_init_growable(&errors, SAID_MAX);
	text_init_growable(&others, SAID_MAX);
	int err = r->load(r->options, &next, &errors);

	if (!err)
		err = tokens_reload(r->tokens, &errors);
	if (err) {
		say_lines(said, LOG_LEVEL_ERROR, errors.data, "");
		say(said, LOG_LEVEL_ERROR, "the configuration is wrong, all stays as it was");
	} else {
		err = apply(r, &next, &others, said);
	}
	if (!err) {
		say_lines(said, LOG_LEVEL_WARNING, others.data,
		          " needs a restart: it stays as it was");
		say_in_force(r, said);
	}
	r->has_failed = err != 0;
	notify_result(r, errors.data);
	text_fini(&others);
	text_fini(&errors);
	return err;
}

int reload_set(struct reload *r, const char *setting, struct text *said)
{
	struct conf next = r->conf;
	struct text errors, others;

	text_init_growable(&errors, SAID_MAX);
	text_init_growable(&others, SAID_MAX);
	int err = conf_change(&next, setting, &errors);

	if (err)
		say_lines(said, LOG_LEVEL_WARNING, errors.data, "");
	else
		err = apply(r, &next, &others, said);
	if (!err && others.length) {
		say_lines(said, LOG_LEVEL_WARNING, others.data,
		          " needs a restart: set it in the configuration file");
		err = -ENOTSUP;
	}
	if (!err)
		say_in_force(r, said);
	text_fini(&others);
	text_fini(&errors);
	return err;
}
