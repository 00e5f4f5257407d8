/* command_line.h - the command line, parsed into a struct by the main thread. */
#ifndef DARKROOM_LOADGEN_LOAD_COMMAND_LINE_H
#define DARKROOM_LOADGEN_LOAD_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "option_value.h"
#include "request_schedule.h"
#include "url.h"

#define HEADERS_MAX 32
#define THREADS_MAX 64
#define CONNECTIONS_MAX 100000
#define CLIENTS_MAX 65536

struct command_line {
	struct url url;
	char *const *paths;
	size_t path_count;
	unsigned threads;
	unsigned connections;
	struct request_schedule_conf schedule; /* both bounds 0: every file once */
	uint64_t requests_per_connection;      /* 0: unbounded */
	uint64_t think_ns;
	unsigned clients; /* that X-Forwarded-For names; 0: none */
	bool heeds_retry_after;
	uint64_t timeout_ns;
	uint64_t retry_ns; /* 0: failed uploads are not repeated */
	const char *headers[HEADERS_MAX];
	size_t header_count;
	bool is_form;
	bool is_get;
	bool verify;
	bool json;
	bool quiet;
	const char *csv_path;
	pid_t server_pid; /* 0: find the server by its port */
	bool has_expected;
	struct status_set expected;
};

extern const char *const command_line_version;

/*
 * Fills *a, whose strings are those of argv. Returns -1 if the program must go on, otherwise its
 * exit status: 0 after --help and --version, 2 after wrong usage, which is reported on standard
 * error.
 */
int command_line_parse(struct command_line *a, int argc, char **argv);

#endif
