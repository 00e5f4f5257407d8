/*
 * main.c - the table of contents: options, configuration, server, workers, signals and commands,
 * drain, end.
 *
 * The only file of src/ that knows the program's own context (stages/app.h), because it makes it.
 * Exit status: 0 ended as asked, 1 failed, 2 wrong usage, 78 wrong configuration (EX_CONFIG of
 * sysexits.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "app.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "conf/conf.h"
#include "daemon/ctl.h"
#include "daemon/ctl_socket.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "daemon/reload.h"
#include "daemon/sandbox.h"
#include "daemon/tokens.h"
#include "daemon/topology_report.h"
#include "image/plan.h"
#include "layout/partition.h"
#include "log/log.h"
#include "sched/graph.h"
#include "sched/profile.h"
#include "sched/stage_costs.h"
#include "stages.h"
#include "telemetry/perf.h"
#include "versions.h"

#define DRAIN_POLL_MS 5     /* how often a drain looks whether it is over */
#define DRAIN_SLACK_MS 5000 /* beyond its limits, for the service manager */
#define STATUS_MS 5000      /* how often the service manager is told what is new */
#define WATCHDOG_PART 4     /* how often it hears from us within the time that it gives */

/* ---- configuration ---- */

static void add_plan_error(const struct options *o, const struct conf *conf, unsigned variant,
                           const char *error, struct text *errors)
{
	char section[CONF_NAME_MAX + 16], where[CONF_TEXT_MAX * 2];

	snprintf(section, sizeof section, "variant.%s", conf->variant[variant].name);
	conf_where(o->config_path, o->overrides, o->override_count, section, "operations", where,
	           sizeof where);
	text_printf(errors, "%s: %s\n", where, error);
}

/* Reads and checks the configuration and what follows from it; 0 or -errno, every problem a line of
 * errors. */
static int configure(const struct options *o, struct conf *conf, struct plan *plan,
                     struct text *errors)
{
	char plan_error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = conf_load(conf, o->config_path, o->overrides, o->override_count, errors);

	if (err)
		return err;
	err = plan_build(plan, conf, &variant, plan_error, sizeof plan_error);
	if (err)
		add_plan_error(o, conf, variant, plan_error, errors);
	return err;
}

/* The profile is read at the start only, when the sandbox still lets us. 0 or -errno, every problem
 * a line on standard error. */
static int check_profile(const struct options *o, const struct conf *conf)
{
	struct partition_weights ignored;
	struct text errors;
	int err = 0;

	text_init_growable(&errors, 64 << 10);
	if (conf->layout.mode == CONF_LAYOUT_PARTITION && conf->layout.profile[0])
		err = profile_read(&ignored, conf->layout.profile, &errors);
	if (err) {
		char where[CONF_TEXT_MAX * 2];

		conf_where(o->config_path, o->overrides, o->override_count, "layout", "profile",
		           where, sizeof where);
		fprintf(stderr, "%s: %s", where, errors.data);
	}
	text_fini(&errors);
	return err;
}

/* The same at a reload; the plan is made again when it is known what of the configuration can be
 * taken over. */
static int configure_again(const struct options *o, struct conf *conf, struct text *errors)
{
	static struct plan ignored;

	return configure(o, conf, &ignored, errors);
}

static int prepare_server(void *arg, const struct conf *conf, struct text *errors)
{
	return server_change_prepare(arg, conf, errors);
}

static void commit_server(void *arg)
{
	server_change_commit(arg);
}

static void cancel_server(void *arg)
{
	server_change_cancel(arg);
}

static const struct reload_user reload_server = { prepare_server, commit_server, cancel_server };

/* ---- signals and commands ---- */

/* What the main thread listens to while the others work, and what it says of them. */
struct ear {
	int signal_fd;
	struct ctl_socket ctl;
	struct reload reload;
	struct server *server;
	int profile_fd;   /* of --profile, else -1 */
	uint64_t tick_ns; /* when the service manager is to hear from us again */
	char status[256]; /* what it heard last */
};

/* SIGTERM, SIGINT and SIGHUP come through a descriptor; no thread is ever interrupted by them. */
static int signals_open(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN); /* a client that has gone is an error of write(2) */
	signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow any more (ulimit -f) */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		log_error("signalfd: %s", strerror(errno));
	return fd;
}

static void on_hangup(struct reload *reload)
{
	struct text said;

	log_notice("SIGHUP: reading the configuration again");
	text_init_growable(&said, 1); /* the log has it all */
	reload_file(reload, &said);
	text_fini(&said);
}

static void describe(const struct ear *ear, char *to, size_t size)
{
	const struct server *s = ear->server;
	uint64_t used, kept;

	pool_usage(&used, &kept);
	snprintf(to, size,
	         "%s%s: %" PRIu64 " images in flight, %" PRIu64
	         " connections, policy %s, memory %" PRIu64 " of %" PRIu64 " MiB",
	         ear->reload.has_failed ? "the last reload failed; " : "",
	         !atomic_load(&s->is_ready)   ? "starting"
	         : atomic_load(&s->is_ending) ? "ending"
	                                      : "serving",
	         atomic_load(&s->images_in_flight), atomic_load(&s->connections),
	         ear->reload.conf.scheduler.policy, (used + kept) >> 20,
	         s->conf->limits.memory_budget >> 20);
}

/* Tells the service manager what is new, and that the workers get on; in how many ms to call again,
 * or -1. */
static int tick(struct ear *ear)
{
	uint64_t now = clock_ns(), watchdog_ns = notify_watchdog_ns(),
		 period = STATUS_MS * NS_PER_MS;
	char status[sizeof ear->status];

	if (!notify_is_on())
		return -1;
	if (now >= ear->tick_ns) {
		if (watchdog_ns && graph_is_alive(ear->server->graph, now, watchdog_ns))
			notify_send("WATCHDOG=1");
		describe(ear, status, sizeof status);
		if (strcmp(status, ear->status) != 0)
			notify_send("STATUS=%s", status);
		memcpy(ear->status, status, sizeof status);
		if (watchdog_ns && watchdog_ns / WATCHDOG_PART < period)
			period = watchdog_ns / WATCHDOG_PART;
		ear->tick_ns = now + period;
	}
	return (int)((ear->tick_ns - now) / NS_PER_MS) + 1;
}

/* The earlier of two timeouts of poll(2). */
static int earlier(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

/* Waits for up to timeout_ms (-1: for ever) and serves what comes; the number of SIGTERM or SIGINT,
 * or 0. Who changes schedules has its turn to the end: workers may have to be told of the last one.
 */
static int wait_for_end(struct ear *ear, int timeout_ms)
{
	struct pollfd p[] = { { .fd = ear->signal_fd, .events = POLLIN },
		              { .fd = ear->ctl.fd, .events = POLLIN },
		              { .fd = ear->server->tokens.watch_fd, .events = POLLIN } };
	struct signalfd_siginfo info;

	if (poll(p, COUNT_OF(p),
	         earlier(timeout_ms, earlier(tick(ear), graph_tick(ear->server->graph)))) <= 0)
		return 0;
	if (p[1].revents)
		ctl_socket_serve(&ear->ctl, &ear->reload);
	if (p[2].revents)
		tokens_look(&ear->server->tokens);
	if (!p[0].revents || read(ear->signal_fd, &info, sizeof info) != sizeof info)
		return 0;
	if (info.ssi_signo != SIGHUP)
		return (int)info.ssi_signo;
	on_hangup(&ear->reload);
	return 0;
}

/* ---- drain ---- */

static void wait_or_die(struct ear *ear, int timeout_ms)
{
	if (!wait_for_end(ear, timeout_ms))
		return;
	log_warning("second signal: ending at once");
	ctl_socket_close(&ear->ctl);
	log_flush();
	_exit(1);
}

/* Says that the end is near, and serves on for drain_delay. */
static void announce_end(struct server *s, struct ear *ear, int signal_number)
{
	const struct conf *conf = &ear->reload.conf;
	uint64_t now = clock_ns(), until = now + conf->server.drain_delay_ms * NS_PER_MS;

	atomic_store(&s->is_ending, true);
	notify_send("STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
	            (conf->server.drain_delay_ms + conf->server.drain_timeout_ms + DRAIN_SLACK_MS) *
	                    1000);
	ear->tick_ns = now; /* the status is another one */
	if (until > now)
		log_notice("%s: /readyz says no, and all else is served for %" PRIu64
		           " ms (drain_delay)",
		           strsignal(signal_number), conf->server.drain_delay_ms);
	for (; now < until; now = clock_ns())
		wait_or_die(ear, (int)((until - now) / NS_PER_MS) + 1);
}

/* Stops accepting and waits for what is in flight. True if all of it was finished in time. */
static bool drain(struct server *s, struct ear *ear, int signal_number)
{
	uint64_t until = clock_ns() + ear->reload.conf.server.drain_timeout_ms * NS_PER_MS;

	log_notice("%s: draining, %" PRIu64 " images in flight, %" PRIu64 " connections",
	           strsignal(signal_number), atomic_load(&s->images_in_flight),
	           atomic_load(&s->connections));
	atomic_store(&s->is_draining, true);
	recovery_stop(&s->recovery);
	stage_wake_all(graph_stage(s->graph, STAGE_ACCEPT_READ));
	while (server_is_busy(s)) {
		wait_or_die(ear, DRAIN_POLL_MS);
		if (clock_ns() > until)
			return false;
	}
	return true;
}

/* Who looks after the server was served until now. */
static void close_administration(struct server *s, struct ear *ear)
{
	server_close_administration(s);
	while (!server_has_closed_administration(s))
		wait_or_die(ear, 1);
}

/* ---- profile ---- */

/* Opened while we still may, with the rights of whoever starts us. -1: there is none, the reason
 * logged. */
static int profile_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644),
	    err = fd < 0 ? errno : 0;
	struct stat st;

	if (!err && fstat(fd, &st))
		err = errno;
	if (!err && S_ISREG(st.st_mode))
		return fd;
	log_error("--profile %s: %s", path, err ? strerror(err) : "expected a regular file");
	if (fd >= 0)
		close(fd);
	return -1;
}

/* True if there was nothing to do, or it was done. */
static bool profile_finish(const struct server *s, const struct ear *ear)
{
	const char *path = ear->reload.options->profile;
	struct partition_weights weights;

	if (!path)
		return true;
	stage_costs_collect(&weights, s->graph);
	int err = profile_write(&weights, ear->profile_fd);

	if (err)
		log_error("--profile %s: %s", path, strerror(-err));
	else
		log_notice("profile written to %s", path);
	return !err;
}

/* ---- the program ---- */

/* Every connection is a descriptor: asks for as many as the limits need. Threads may come to want
 * counters besides, but can do without. */
static void raise_descriptor_limit(const struct conf *conf)
{
	struct rlimit limit;
	rlim_t needed = (rlim_t)conf->limits.connections * 2 + 256,
	       wanted = needed + PERF_COUNT * CONF_THREADS_MAX;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < needed)
		log_warning("limits.connections = %" PRIu64 " may need %" PRIu64
		            " open files, but the limit (ulimit -n) is %" PRIu64,
		            conf->limits.connections, (uint64_t)needed, (uint64_t)limit.rlim_cur);
}

/* Serves until a signal ends it. The exit status. */
static int serve(struct server *s, struct ear *ear)
{
	if (graph_start(s->graph))
		return EXIT_FAILURE;
	if (recovery_start(&s->recovery)) {
		graph_stop(s->graph);
		return EXIT_FAILURE;
	}
	atomic_store(&s->is_ready, true);
	describe(ear, ear->status, sizeof ear->status);
	notify_send("READY=1\nSTATUS=%s", ear->status);
	log_notice("darkroomd %s ready on %s (policy %s, store %s)", darkroom_version, s->url,
	           s->conf->scheduler.policy, s->conf->server.root);
	int signal_number;

	do
		signal_number = wait_for_end(ear, -1);
	while (!signal_number);
	announce_end(s, ear, signal_number);
	if (!drain(s, ear, signal_number)) {
		log_error("drain_timeout is over: %" PRIu64 " images and %" PRIu64
		          " connections are given up",
		          atomic_load(&s->images_in_flight), atomic_load(&s->connections));
		profile_finish(s, ear);
		ctl_socket_close(&ear->ctl);
		log_flush();
		_exit(EXIT_FAILURE);
	}
	close_administration(s, ear);
	graph_stop(s->graph);
	log_notice("ended, %" PRIu64 " images stored", atomic_load(&s->images_stored));
	return profile_finish(s, ear) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Makes everything, serves, and takes it apart again. The exit status. */
static int run_daemon(const struct options *o, const struct conf *conf, const struct plan *plan)
{
	static struct server server;
	static struct ear ear;
	int status = EXIT_FAILURE;

	reload_log(o, conf);
	ear.profile_fd = o->profile ? profile_open(o->profile) : -1;
	if (o->profile && ear.profile_fd < 0)
		return EXIT_FAILURE;
	if (sandbox_become_user(conf))
		return EX_CONFIG;
	if (log_access_open(conf->log.access_file))
		return EXIT_FAILURE;
	pool_setup_malloc();
	pool_set_max(conf->limits.memory_budget);
	raise_descriptor_limit(conf);
	notify_open();
	ear.signal_fd = signals_open();
	if (ear.signal_fd < 0)
		return EXIT_FAILURE;
	if (server_init(&server, conf, plan) == 0) {
		ear.server = &server;
		ear.reload = (struct reload){ .options = o,
			                      .load = configure_again,
			                      .graph = server.graph,
			                      .tokens = &server.tokens,
			                      .user = &reload_server,
			                      .user_arg = &server,
			                      .conf = *conf };
		if (ctl_socket_open(&ear.ctl, conf) == 0 &&
		    sandbox_enter(conf, o->config_path) == 0 && log_start() == 0)
			status = serve(&server, &ear);
		log_stop();
		ctl_socket_close(&ear.ctl);
		server_fini(&server);
		pool_fini();
	}
	close(ear.signal_fd);
	notify_close();
	return status;
}

/* What --topology prints. The exit status. */
static int show_layout(const struct conf *conf)
{
	struct text text;

	log_set_level(LOG_LEVEL_WARNING); /* it says all that a notice would */
	text_init_growable(&text, 1 << 20);
	int err = topology_report_print(conf, &text);

	if (!err)
		fputs(text.data, stdout);
	text_fini(&text);
	return err ? EXIT_FAILURE : options_finish_output();
}

/* What -T prints. The exit status. */
static int dump(const struct conf *conf)
{
	struct text text;

	text_init_growable(&text, 1 << 20);
	int err = conf_dump(conf, &text);

	if (err)
		fprintf(stderr,
		        "darkroomd: the configuration cannot be written as an INI file: %s\n",
		        err == -EILSEQ ? "a value has both kinds of quotation marks"
		                       : strerror(-err));
	else
		fputs(text.data, stdout);
	text_fini(&text);
	return err ? EXIT_FAILURE : options_finish_output();
}

static void say_valid(const struct options *o, const struct conf *conf)
{
	char data[256];
	struct text sandbox;

	text_init(&sandbox, data, sizeof data);
	sandbox_describe(conf, &sandbox);
	fprintf(stderr, "%s: the configuration is valid\n%s\n",
	        o->config_path ? o->config_path : "built-in values", data);
}

static int print_version(const struct options *o)
{
	printf("darkroomd %s\n", darkroom_version);
	if (o->verbose || o->version > 1)
		versions_print(stdout);
	return options_finish_output();
}

static int run(const struct options *o)
{
	static struct conf conf;
	static struct plan plan;
	struct text errors;

	if (o->makes_token)
		return token_command(o->command, o->command_length);

	text_init_growable(&errors, 64 << 10);
	int err = configure(o, &conf, &plan, &errors);

	if (!err && !o->command) /* of ctl's user it is no business */
		err = tokens_check_file(conf.access.tokens_file, &errors);
	fputs(errors.data, stderr);
	text_fini(&errors);
	if (err || (!o->command && check_profile(o, &conf)))
		return EX_CONFIG;
	if (o->topology)
		return show_layout(&conf);
	if (o->dump)
		return dump(&conf);
	if (o->check_only) {
		if (!o->quiet)
			say_valid(o, &conf);
		return EXIT_SUCCESS;
	}
	return o->command ? ctl_run(&conf, o->command, o->command_length)
	                  : run_daemon(o, &conf, &plan);
}

/* What is opened must not become one of the descriptors that messages are written to, if whoever
 * started us has closed these. */
static void open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct options options;

	open_standard_descriptors();
	int status = options_parse(&options, argc, argv);

	if (status < 0)
		status = options.version ? print_version(&options) : run(&options);
	options_fini(&options);
	return status;
}
