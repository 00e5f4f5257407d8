/*
 * daemon.c - starts the daemon, serves and stops it, in this order.
 *
 * While the daemon serves, the main thread waits here for signals, for commands over the control
 * socket and for changes of the tokens, and reports to the service manager. At the end it drains.
 * It knows the program only by program.h. Main thread.
 */
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "access/tokens.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/opener.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "check_all.h"
#include "conf/conf.h"
#include "conf/conf_source.h"
#include "ctl_socket.h"
#include "daemon/sandbox/sandbox.h"
#include "log/log.h"
#include "notify.h"
#include "options.h"
#include "program.h"
#include "reload.h"
#include "sched/control/controllers.h"
#include "sched/core/graph.h"
#include "telemetry/perf.h"
#include "trace_output.h"

#define OTHER_FILES 256     /* store, queues, log, control socket and the like */
#define DRAIN_POLL_MS 5     /* interval between checks whether a drain has finished */
#define DRAIN_SLACK_MS 5000 /* for the service manager, beyond the limits of the drain */
#define STATUS_MS 5000      /* interval between reports to the service manager */
/* A signal within that time after the first belongs to the first: `timeout -s INT` sends it to the
 * process and to its group. */
#define SECOND_SIGNAL_NS (500 * NS_PER_MS)
#define WATCHDOG_PART 4 /* reports within the time that the watchdog allows */

/* The answer to a setting of POST /control. */
struct setting_answer {
	bool is_due;
	int result;
	uint64_t answer_ns; /* as reload.h */
	struct text report;
};

struct supervisor {
	struct ctl_socket ctl;
	struct reload reload;
	int signal_fd;
	int trace_fd; /* of --trace; -1: none; owned by trace once that is on */
	struct trace_output trace;
	struct setting_answer setting;
	const char *phase;         /* for the status: starting, serving or ending */
	uint64_t second_signal_ns; /* when another signal is a second one */
	uint64_t report_ns;        /* when the next report to the service manager is due */
	char status[256];          /* the last one that was sent */
};

/* ---- signals ---- */

/* Blocks SIGTERM, SIGINT and SIGHUP in all threads and opens a descriptor for them, before any
 * thread starts. Returns 0 or -errno, logged. */
static int open_signals(struct supervisor *s)
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
	uint64_t used, kept;
	struct text t;

	pool_usage(&used, &kept);
	text_init(&t, to, size);
	text_printf(&t, "%s%s: ", s->reload.has_failed ? "the last reload failed; " : "", s->phase);
	program_describe(&t);
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
		if (watchdog_ns && graph_is_alive(*program.graph, now, watchdog_ns))
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

/* Answers the client whose setting was applied last. Returns whether none waits any more. */
static bool answer_setting(struct supervisor *s)
{
	struct setting_answer *a = &s->setting;
	struct text behind = TEXT_LOCAL(512);

	if (!a->is_due)
		return true;
	if (!reload_can_answer(a->answer_ns))
		return false;
	if (a->result == 0)
		reload_print_behind(&behind);
	program_end_setting(a->result, behind.length ? behind.data : a->report.data);
	text_fini(&a->report);
	a->is_due = false;
	return true;
}

/* Applies the settings that clients ask for, one after the other. */
static void apply_settings(struct supervisor *s)
{
	struct setting_answer *a = &s->setting;
	const char *setting;

	while (answer_setting(s) && (setting = program_first_setting())) {
		log_info("control: %s", setting);
		text_init_growable(&a->report, CTL_ANSWER_MAX);
		a->result = reload_set(&s->reload, setting, &a->report);
		a->answer_ns = a->result ? 0 : s->reload.answer_ns;
		a->is_due = true;
	}
}

/* Waits for up to timeout_ms (-1: indefinitely) and serves what arrives. Returns SIGTERM or SIGINT
 * if that arrived, otherwise 0. Controllers of the schedule run here until the end, because workers
 * may still need its last change. */
static int wait_for_signal(struct supervisor *s, int timeout_ms)
{
	struct pollfd fds[3 + CTL_DESCRIPTORS] = { { .fd = s->signal_fd, .events = POLLIN },
		                                   { .fd = *program.agent_fd, .events = POLLIN },
		                                   { .fd = *program.wake_fd, .events = POLLIN } },
			      *ctl = fds + 3;
	struct signalfd_siginfo info;
	int tick_ms = earlier(tick(s), trace_output_tick(&s->trace, *program.graph));

	tick_ms = earlier(tick_ms, program_tick());
	tick_ms = earlier(tick_ms, tokens_tick(program.tokens));
	apply_settings(s);
	/* After the settings, which publish schedules. Controllers and answers follow, because the
	 * schedule may be adopted now. While it is not, the time is short. */
	tick_ms = earlier(tick_ms, graph_tick(*program.graph));
	tick_ms = earlier(tick_ms, controllers_tick(*program.graph));
	reload_tick(&s->reload);
	ctl_socket_answer(&s->ctl);
	if (s->setting.is_due && answer_setting(s))
		tick_ms = 0; /* another setting may be next */

	ctl_socket_watch(&s->ctl, ctl);
	if (poll(fds, COUNT_OF(fds), earlier(timeout_ms, tick_ms)) <= 0)
		return 0;
	ctl_socket_serve(&s->ctl, ctl, &s->reload);
	if (fds[1].revents)
		program_serve_agent();
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
	log_stop();
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

	program_announce_end();
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
	uint64_t until = clock_ns() + s->reload.conf.server.drain_timeout_ms * NS_PER_MS;
	struct text work = TEXT_LOCAL(128);

	program_describe(&work);
	log_notice("%s: draining, %s", reason, work.data);
	program_drain();
	while (program_is_busy()) {
		wait_or_end(s, DRAIN_POLL_MS);
		if (clock_ns() <= until)
			continue;
		struct text left = TEXT_LOCAL(128);

		program_describe(&left);
		log_error("drain_timeout: the drain has not finished: %s; ending without them",
		          left.data);
		end_now(s);
	}
	/* Administrative clients are served until now, so that they can watch the drain. */
	program_close_admin();
	while (!program_has_closed_admin())
		wait_or_end(s, 1);
}

/* ---- serving ---- */

/* Starts the program, serves until a signal, drains and stops it. Returns the exit status. Ends the
 * process at a second signal, or when the drain takes too long. */
static int supervise(struct supervisor *s)
{
	s->phase = "starting";
	if (s->trace_fd >= 0 && trace_output_start(&s->trace, *program.graph, s->trace_fd, false))
		return EXIT_FAILURE;
	if (program_start())
		return EXIT_FAILURE;
	s->phase = "serving";
	describe(s, s->status, sizeof s->status);
	notify_send("READY=1\nSTATUS=%s", s->status);
	log_notice("darkroomd %s ready on %s (policy %s, store %s)", darkroom_version, program.url,
	           s->reload.conf.scheduler.policy, s->reload.conf.server.root);
	int signal_number = 0;

	/* If the program must restart, a service manager does that when the daemon fails. Without
	 * one the daemon goes on, for its figures. */
	while (!signal_number && !(notify_is_on() && program_must_restart()))
		signal_number = wait_for_signal(s, -1);
	const char *reason = signal_number ? strsignal(signal_number) : "restart";

	s->second_signal_ns = clock_ns() + SECOND_SIGNAL_NS;
	announce_end(s, reason);
	drain(s, reason);
	program_stop();
	trace_output_end(&s->trace, *program.graph);
	uint64_t stored = atomic_load(program.images_stored);

	log_notice("ended, %" PRIu64 " image%s stored", stored, plural(stored));
	return signal_number ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- start ---- */

void daemon_open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Raises the limit of open files to what the configuration needs. Logs a warning if that is not
 * possible. */
static void raise_descriptor_limit(const struct conf *conf)
{
	struct rlimit limit;
	rlim_t needed = (rlim_t)conf->limits.connections * 2 + OTHER_FILES;
	/* Without enough for their counters, threads run without counters. */
	rlim_t wanted = needed + PERF_COUNT * CONF_THREADS_MAX;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < needed)
		log_warning("%slimits.connections = %" PRIu64 ": expected a limit of %" PRIu64
		            " open files (ulimit -n), but it is %" PRIu64,
		            conf_place("limits.connections"), conf->limits.connections,
		            (uint64_t)needed, (uint64_t)limit.rlim_cur);
}

/* Opens and empties the file of --trace, with the rights of the user that starts the daemon: later
 * the sandbox and the daemon's own user may not be allowed to. Returns a descriptor, or -1, logged.
 */
static int open_trace(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) == 0)
		return fd;
	log_error("--trace %s: %s", path,
	          fd >= 0 && !S_ISREG(st.st_mode) ? "expected a regular file" : strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Opens the control socket, enters the sandbox and serves. Returns the exit status. */
static int serve(struct supervisor *s, const struct options *o, const struct conf *conf)
{
	int status = EXIT_FAILURE;

	s->reload = (struct reload){ .options = o, .trace = &s->trace, .conf = *conf };
	s->trace.fd = -1;
	if (ctl_socket_open(&s->ctl, conf) == 0 && sandbox_enter(conf) == 0 && log_start() == 0)
		status = supervise(s);
	log_stop();
	ctl_socket_close(&s->ctl);
	return status;
}

int daemon_run(const struct options *o, const struct conf *conf)
{
	static struct supervisor supervisor;
	int status = EXIT_FAILURE;

	reload_log(o, conf);
	supervisor.trace_fd = o->trace ? open_trace(o->trace) : -1;
	if (o->trace && supervisor.trace_fd < 0)
		return EXIT_FAILURE;
	if (sandbox_become_user(conf))
		return EX_CONFIG;
	if (sandbox_limit_cores(conf) || sandbox_start_opener(conf, o->config_path))
		return EXIT_FAILURE;
	if (log_access_open(conf->log.access_file, conf_place("log.access_file")))
		return EXIT_FAILURE;
	pool_setup_malloc();
	pool_set_max(conf->limits.memory_budget);
	raise_descriptor_limit(conf);
	check_start_memory(conf);
	notify_open();
	if (open_signals(&supervisor))
		return EXIT_FAILURE;
	if (program_init(conf) == 0) {
		status = serve(&supervisor, o, conf);
		program_fini();
		pool_fini();
	}
	close(supervisor.signal_fd);
	notify_close();
	opener_stop();
	return status;
}
