/*
 * supervise.h - the main thread while the daemon serves: signals, control socket, tokens, service
 * manager, and the drain at the end.
 *
 * Knows the program only by program.h. Main thread.
 */
#ifndef DARKROOM_DAEMON_SUPERVISE_H
#define DARKROOM_DAEMON_SUPERVISE_H

#include <stdint.h>

#include "base/text.h"
#include "ctl_socket.h"
#include "reload.h"
#include "trace_output.h"

struct program;

/* The answer to a setting of POST /control. */
struct setting_answer {
	bool is_due;
	int result;
	uint64_t answer_ns; /* as reload.h */
	struct text report;
};

struct supervisor {
	const struct program *program;
	struct ctl_socket ctl;
	struct reload reload;
	int signal_fd;
	int profile_fd; /* of --profile; -1: none */
	int trace_fd;   /* of --trace; -1: none; owned by trace once that is on */
	struct trace_output trace;
	struct setting_answer setting;
	const char *phase;         /* for the status: starting, serving or ending */
	uint64_t second_signal_ns; /* when another signal is a second one */
	uint64_t report_ns;        /* when the next report to the service manager is due */
	char status[256];          /* the last one that was sent */
};

/* Blocks SIGTERM, SIGINT and SIGHUP in all threads and opens a descriptor for them. Call it before
 * any thread starts. Returns 0 or -errno, logged. */
int supervisor_open_signals(struct supervisor *s);

/* Starts the program, serves until a signal, drains and stops it. Returns the exit status. Ends the
 * process at a second signal, or when the drain takes too long. */
int supervise(struct supervisor *s);

#endif
