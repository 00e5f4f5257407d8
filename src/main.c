/*
 * main.c - the table of contents: options, configuration, server, workers, signals, drain, end.
 *
 * The only file of src/ that knows the program's own context (stages/server.h), because it makes it. Exit status: 0 ended as
 * asked, 1 failed, 2 wrong usage, 78 wrong configuration (EX_CONFIG of sysexits.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "../stages/plan.h"
#include "../stages/server.h"
#include "../stages/stages.h"
#include "clock.h"
#include "conf.h"
#include "graph.h"
#include "log.h"
#include "mem/pool.h"
#include "options.h"
#include "text.h"

#define DRAIN_POLL_MS 5 /* how often a drain looks whether it is over */

/* ---- configuration -------------------------------------------------------------------------------- */

static void print_plan_error(const struct options *o, const struct conf *conf, unsigned variant, const char *error)
{
	char section[CONF_NAME_MAX + 16], where[CONF_TEXT_MAX * 2];

	snprintf(section, sizeof section, "variant.%s", conf->variant[variant].name);
	conf_where(o->config_path, o->overrides, o->override_count, section, "operations", where, sizeof where);
	fprintf(stderr, "%s: %s\n", where, error);
}

/* Reads and checks the configuration and what follows from it; 0 or -errno, the problems printed. */
static int configure(const struct options *o, struct conf *conf, struct plan *plan)
{
	struct text errors;
	char plan_error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err;

	text_init_growable(&errors, 64 << 10);
	err = conf_load(conf, o->config_path, o->overrides, o->override_count, &errors);
	if (errors.length)
		fputs(errors.data, stderr);
	text_fini(&errors);
	if (err)
		return err;
	err = plan_build(plan, conf, &variant, plan_error, sizeof plan_error);
	if (err)
		print_plan_error(o, conf, variant, plan_error);
	return err;
}

/* ---- signals -------------------------------------------------------------------------------------- */

/* SIGTERM, SIGINT and SIGHUP come through a descriptor; no thread is ever interrupted by them. */
static int signals_open(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN); /* a client that has gone is an error of write(2) */
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

/* Waits up to timeout_ms (-1: for ever) for SIGTERM or SIGINT; its number, or 0. */
static int wait_for_end(int signal_fd, int timeout_ms)
{
	struct pollfd p = { .fd = signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;

	for (;;) {
		if (poll(&p, 1, timeout_ms) <= 0)
			return 0;
		if (read(signal_fd, &info, sizeof info) != sizeof info)
			continue;
		if (info.ssi_signo != SIGHUP)
			return (int)info.ssi_signo;
		log_notice("SIGHUP: a changed configuration takes effect at the next start");
	}
}

/* ---- drain ---------------------------------------------------------------------------------------- */

/* Stops accepting and waits for what is in flight. True if all of it was finished in time. */
static bool drain(struct server *s, int signal_fd, int signal_number)
{
	uint64_t until = clock_ns() + s->conf->server.drain_timeout_ms * NS_PER_MS;

	log_notice("%s: draining, %" PRIu64 " images in flight, %" PRIu64 " connections", strsignal(signal_number),
	           atomic_load(&s->images_in_flight), atomic_load(&s->connections));
	atomic_store(&s->is_draining, true);
	stage_wake_all(graph_stage(s->graph, STAGE_ACCEPT_READ));
	while (atomic_load(&s->images_in_flight) || atomic_load(&s->connections)) {
		if (wait_for_end(signal_fd, DRAIN_POLL_MS)) {
			log_warning("second signal: ending at once");
			_exit(1);
		}
		if (clock_ns() > until)
			return false;
	}
	return true;
}

/* ---- the program ---------------------------------------------------------------------------------- */

/* Every connection is a descriptor: asks for as many as the limits need. */
static void raise_descriptor_limit(const struct conf *conf)
{
	struct rlimit limit;
	rlim_t needed = (rlim_t)conf->limits.connections * 2 + 256;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= needed)
		return;
	limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < needed)
		log_warning("limits.connections = %" PRIu64 " may need %" PRIu64 " open files, but the limit (ulimit -n) is %" PRIu64,
		            conf->limits.connections, (uint64_t)needed, (uint64_t)limit.rlim_cur);
}

/* Serves until a signal ends it. The exit status. */
static int serve(struct server *s, int signal_fd)
{
	if (graph_start(s->graph)) {
		server_fini(s);
		return EXIT_FAILURE;
	}
	atomic_store(&s->is_ready, true);
	log_notice("darkroomd %s ready on %s (policy %s, store %s)", darkroom_version, s->url, s->conf->scheduler.policy,
	           s->conf->server.root);
	int signal_number;

	do
		signal_number = wait_for_end(signal_fd, graph_tick(s->graph));
	while (!signal_number);
	if (!drain(s, signal_fd, signal_number)) {
		log_error("drain_timeout is over: %" PRIu64 " images and %" PRIu64 " connections are given up",
		          atomic_load(&s->images_in_flight), atomic_load(&s->connections));
		_exit(EXIT_FAILURE);
	}
	graph_stop(s->graph);
	log_notice("ended, %" PRIu64 " images stored", atomic_load(&s->images_stored));
	server_fini(s);
	return EXIT_SUCCESS;
}

static int run(const struct options *o)
{
	static struct conf conf;
	static struct plan plan;
	static struct server server;

	if (configure(o, &conf, &plan))
		return EX_CONFIG;
	if (o->check_only) {
		if (!o->quiet)
			fprintf(stderr, "%s: the configuration is valid\n", o->config_path ? o->config_path : "built-in values");
		return EXIT_SUCCESS;
	}
	log_set_level(o->quiet ? LOG_LEVEL_WARNING : (enum log_level)conf.server.log_level);
	pool_setup_malloc();
	raise_descriptor_limit(&conf);
	int signal_fd = signals_open();

	if (signal_fd < 0)
		return EXIT_FAILURE;
	int status = server_init(&server, &conf, &plan) ? EXIT_FAILURE : serve(&server, signal_fd);

	close(signal_fd);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	int status = options_parse(&options, argc, argv);

	if (status < 0)
		status = run(&options);
	options_fini(&options);
	return status;
}
