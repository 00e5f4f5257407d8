/*
 * daemon.c - starts the daemon and stops it. The order of the steps is what this file knows.
 *
 * Main thread.
 */
#include "daemon.h"

#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/opener.h"
#include "base/pool.h"
#include "check_start.h"
#include "conf/conf.h"
#include "conf/conf_places.h"
#include "ctl_socket.h"
#include "descriptors.h"
#include "log/log.h"
#include "notify.h"
#include "options.h"
#include "profile_file.h"
#include "program.h"
#include "reload.h"
#include "sandbox.h"
#include "supervise.h"

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
	/* With the rights of the user that starts the daemon. */
	supervisor.profile_fd = o->profile ? profile_file_open(o->profile) : -1;
	supervisor.trace_fd = o->trace ? trace_output_open(o->trace) : -1;
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
	descriptors_raise_limit(conf);
	check_start_memory(conf);
	notify_open();
	if (supervisor_open_signals(&supervisor))
		return EXIT_FAILURE;
	if (program->init(program->app, conf) == 0) {
		status = serve(&supervisor, o, conf);
		program->fini(program->app);
		pool_fini();
	}
	close(supervisor.signal_fd);
	notify_close();
	opener_stop();
	return status;
}
