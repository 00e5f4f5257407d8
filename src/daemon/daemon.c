/*
 * daemon.c - starts the daemon and stops it. The order of the steps is what this file knows.
 *
 * Main thread.
 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/opener.h"
#include "base/pool.h"
#include "check_start.h"
#include "conf/conf.h"
#include "conf/conf_source.h"
#include "ctl_socket.h"
#include "daemon/sandbox/sandbox.h"
#include "log/log.h"
#include "notify.h"
#include "options.h"
#include "program.h"
#include "reload.h"
#include "supervise.h"
#include "telemetry/perf.h"

#define OTHER_FILES 256 /* store, queues, log, control socket and the like */

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

/* Opens the file of --profile or --trace, with the rights of the user that starts the daemon: later
 * the sandbox and the daemon's own user may not be allowed to. Returns a descriptor, or -1, logged.
 */
static int open_output(const char *option, const char *path, bool is_emptied)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (!is_emptied || ftruncate(fd, 0) == 0))
		return fd;
	log_error("%s %s: %s", option, path,
	          fd >= 0 && !S_ISREG(st.st_mode) ? "expected a regular file" : strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Opens the control socket, enters the sandbox and serves. Returns the exit status. */
static int serve(struct supervisor *s, const struct options *o, const struct conf *conf)
{
	int status = EXIT_FAILURE;

	s->reload = (struct reload){
		.options = o, .program = s->program, .trace = &s->trace, .conf = *conf
	};
	s->trace.fd = -1;
	if (ctl_socket_open(&s->ctl, conf) == 0 && sandbox_enter(conf) == 0 && log_start() == 0)
		status = supervise(s);
	log_stop();
	ctl_socket_close(&s->ctl);
	return status;
}

int daemon_run(const struct options *o, const struct conf *conf, const struct program *program)
{
	static struct supervisor supervisor;
	int status = EXIT_FAILURE;

	supervisor.program = program;
	reload_log(o, conf);
	supervisor.profile_fd = o->profile ? open_output("--profile", o->profile, false) : -1;
	supervisor.trace_fd = o->trace ? open_output("--trace", o->trace, true) : -1;
	if ((o->profile && supervisor.profile_fd < 0) || (o->trace && supervisor.trace_fd < 0))
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
	if (supervisor_open_signals(&supervisor))
		return EXIT_FAILURE;
	if (program->init(conf) == 0) {
		status = serve(&supervisor, o, conf);
		program->fini();
		pool_fini();
	}
	close(supervisor.signal_fd);
	notify_close();
	opener_stop();
	return status;
}
