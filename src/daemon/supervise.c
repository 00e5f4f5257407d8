/*
 * supervise.c - waits for signals and commands, reports to the service manager, drains.
 *
 * Main thread.
 */
#include "supervise.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "log/log.h"
#include "notify.h"
#include "options.h"
#include "profile_file.h"
#include "program.h"
#include "sched/graph.h"
#include "sched/schedule_switch.h"
#include "tokens.h"

#define DRAIN_POLL_MS 5     /* interval between checks whether a drain has finished */
#define DRAIN_SLACK_MS 5000 /* for the service manager, beyond the limits of the drain */
#define STATUS_MS 5000      /* interval between reports to the service manager */
/* A signal within that time after the first belongs to the first: `timeout -s INT` sends it to the
 * process and to its group. */
#define SECOND_SIGNAL_NS (500 * NS_PER_MS)
#define WATCHDOG_PART 4 /* reports within the time that the watchdog allows */

/* ---- signals ---- */

int supervisor_open_signals(struct supervisor *s)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN); /* a closed connection is an error of write(2) */
	signal(SIGXFSZ, SIG_IGN); /* so is a file at its limit (ulimit -f) */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd >= 0)
		return 0;
	log_error("signalfd: %s", strerror(errno));
	return -errno;
}

static void on_hangup(struct reload *reload)
{
	struct text ignored;

	log_notice("SIGHUP: reloading the configuration");
	text_init_growable(&ignored, 1); /* everything is logged as well */
	reload_file(reload, &ignored);
	text_fini(&ignored);
}

/* ---- service manager ---- */

static void describe(const struct supervisor *s, char *to, size_t size)
{
	const struct program *p = s->program;
	uint64_t used, kept;
	struct text t;

	pool_usage(&used, &kept);
	text_init(&t, to, size);
	text_printf(&t, "%s%s: ", s->reload.has_failed ? "the last reload failed; " : "", s->phase);
	p->describe(p->app, &t);
	text_printf(&t, ", policy %s, memory %" PRIu64 " of %" PRIu64 " MiB",
	            s->reload.conf.scheduler.policy, (used + kept) >> 20,
	            s->reload.conf.limits.memory_budget >> 20);
}

/* Sends the watchdog's signal of life if the workers make progress, and a changed status. Returns
 * the ms until the next call, or -1. */
static int tick(struct supervisor *s)
{
	uint64_t now = clock_ns(), watchdog_ns = notify_watchdog_ns(),
		 period = STATUS_MS * NS_PER_MS;
	char status[sizeof s->status];

	if (!notify_is_on())
		return -1;
	if (now >= s->report_ns) {
		if (watchdog_ns &&
		    graph_is_alive(s->program->graph(s->program->app), now, watchdog_ns))
			notify_send("WATCHDOG=1");
		describe(s, status, sizeof status);
		if (strcmp(status, s->status) != 0)
			notify_send("STATUS=%s", status);
		memcpy(s->status, status, sizeof status);
		if (watchdog_ns && watchdog_ns / WATCHDOG_PART < period)
			period = watchdog_ns / WATCHDOG_PART;
		s->report_ns = now + period;
	}
	return (int)((s->report_ns - now) / NS_PER_MS) + 1;
}

/* ---- waiting ---- */

/* The earlier of two timeouts of poll(2). */
static int earlier(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

/* Applies the settings that clients ask for. */
static void apply_settings(struct supervisor *s)
{
	const struct program *p = s->program;
	const char *setting;
	struct text report;

	while ((setting = p->first_setting(p->app))) {
		log_info("control: %s", setting);
		text_init_growable(&report, CTL_ANSWER_MAX);
		int err = reload_set(&s->reload, setting, &report);

		p->end_setting(p->app, err, report.data);
		text_fini(&report);
	}
}

/* Moves records of the trace, and starts the one that a client asks for. Returns the ms until the
 * next call, or -1. */
static int trace_tick(struct supervisor *s)
{
	const struct program *p = s->program;
	struct trace_output *t = &s->trace;
	int wait_ms = trace_output_tick(t, p->graph(p->app));
	int fd = p->take_trace(p->app, trace_output_is_on(t), &t->seconds);

	if (fd < 0)
		return wait_ms;
	log_info("trace: a client asks for %u s", t->seconds);
	t->bytes_max = TRACE_PAGE_BYTES_MAX;
	trace_output_start(t, p->graph(p->app), fd, true);
	return 0;
}

/* Waits for up to timeout_ms (-1: indefinitely) and serves what arrives. Returns SIGTERM or SIGINT
 * if that arrived, otherwise 0. Controllers of the schedule run here until the end, because workers
 * may still need its last change. */
static int wait_for_signal(struct supervisor *s, int timeout_ms)
{
	const struct program *p = s->program;
	struct tokens *tokens = p->tokens(p->app);
	struct pollfd fds[] = { { .fd = s->signal_fd, .events = POLLIN },
		                { .fd = s->ctl.fd, .events = POLLIN },
		                { .fd = tokens->watch_fd, .events = POLLIN },
		                { .fd = p->wake_fd(p->app), .events = POLLIN },
		                { .fd = p->agent_fd(p->app), .events = POLLIN } };
	struct signalfd_siginfo info;
	int tick_ms = earlier(earlier(tick(s), graph_tick(p->graph(p->app))), trace_tick(s));

	tick_ms = earlier(tick_ms, p->tick(p->app));
	apply_settings(s);

	if (poll(fds, COUNT_OF(fds), earlier(timeout_ms, tick_ms)) <= 0)
		return 0;
	if (fds[1].revents)
		ctl_socket_serve(&s->ctl, &s->reload);
	if (fds[2].revents)
		tokens_poll(tokens);
	if (fds[4].revents)
		p->serve_agent(p->app);
	if (!fds[0].revents || read(s->signal_fd, &info, sizeof info) != sizeof info)
		return 0;
	if (info.ssi_signo != SIGHUP)
		return (int)info.ssi_signo;
	on_hangup(&s->reload);
	return 0;
}

/* ---- drain ---- */

static _Noreturn void end_now(struct supervisor *s)
{
	ctl_socket_close(&s->ctl);
	log_flush();
	_exit(EXIT_FAILURE);
}

static void wait_or_end(struct supervisor *s, int timeout_ms)
{
	if (!wait_for_signal(s, timeout_ms) || clock_ns() < s->second_signal_ns)
		return;
	log_warning("second signal: ending at once");
	end_now(s);
}

/* Announces the end and serves for drain_delay. */
static void announce_end(struct supervisor *s, const char *reason)
{
	const struct conf *conf = &s->reload.conf;
	uint64_t now = clock_ns(), until = now + conf->server.drain_delay_ms * NS_PER_MS;

	s->program->announce_end(s->program->app);
	s->phase = "ending";
	s->report_ns = now;
	notify_send("STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
	            (conf->server.drain_delay_ms + conf->server.drain_timeout_ms + DRAIN_SLACK_MS) *
	                    1000);
	if (until > now)
		log_notice("%s: drain_delay: still serving for %" PRIu64 " ms; /readyz returns 503",
		           reason, conf->server.drain_delay_ms);
	for (; now < until; now = clock_ns())
		wait_or_end(s, (int)((until - now) / NS_PER_MS) + 1);
}

/* Stops accepting and waits for the work in flight. */
static void drain(struct supervisor *s, const char *reason)
{
	const struct program *p = s->program;
	uint64_t until = clock_ns() + s->reload.conf.server.drain_timeout_ms * NS_PER_MS;
	char work[128];
	struct text t;

	text_init(&t, work, sizeof work);
	p->describe(p->app, &t);
	log_notice("%s: draining, %s", reason, work);
	p->drain(p->app);
	while (p->is_busy(p->app)) {
		wait_or_end(s, DRAIN_POLL_MS);
		if (clock_ns() <= until)
			continue;
		text_init(&t, work, sizeof work);
		p->describe(p->app, &t);
		log_error("drain_timeout: the drain has not finished: %s; ending without them",
		          work);
		if (s->profile_fd >= 0)
			profile_file_write(s->profile_fd, s->reload.options->profile,
			                   p->graph(p->app));
		end_now(s);
	}
	/* Administrative clients are served until now, so that they can watch the drain. */
	p->close_admin(p->app);
	while (!p->has_closed_admin(p->app))
		wait_or_end(s, 1);
}

/* ---- serving ---- */

/* Serves until a signal arrives, and returns it; or 0 if the program must restart. A service
 * manager does that when the daemon fails. Without one the daemon goes on, for its figures. */
static int serve(struct supervisor *s)
{
	const struct program *p = s->program;
	int signal_number = 0;

	while (!signal_number && !(notify_is_on() && p->must_restart(p->app)))
		signal_number = wait_for_signal(s, -1);
	return signal_number;
}

int supervise(struct supervisor *s)
{
	const struct program *p = s->program;

	s->phase = "starting";
	if (s->trace_fd >= 0 && trace_output_start(&s->trace, p->graph(p->app), s->trace_fd, false))
		return EXIT_FAILURE;
	if (p->start(p->app))
		return EXIT_FAILURE;
	s->phase = "serving";
	describe(s, s->status, sizeof s->status);
	notify_send("READY=1\nSTATUS=%s", s->status);
	log_notice("darkroomd %s ready on %s (policy %s, store %s)", darkroom_version,
	           p->url(p->app), s->reload.conf.scheduler.policy, s->reload.conf.server.root);
	int signal_number = serve(s);
	const char *reason = signal_number ? strsignal(signal_number) : "restart";

	s->second_signal_ns = clock_ns() + SECOND_SIGNAL_NS;
	announce_end(s, reason);
	drain(s, reason);
	p->stop(p->app);
	trace_output_end(&s->trace, p->graph(p->app));
	log_notice("ended, %" PRIu64 " images stored", p->images_stored(p->app));
	if (s->profile_fd >= 0 &&
	    profile_file_write(s->profile_fd, s->reload.options->profile, p->graph(p->app)))
		return EXIT_FAILURE;
	return signal_number ? EXIT_SUCCESS : EXIT_FAILURE;
}
