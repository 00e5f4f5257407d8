/*
 * orders.c - checks that a trace of tests/bench/synthetic.c has the visit order of its policy.
 *
 * usage: orders POLICY FILE [WORKERS STAGES]   the last two for policy seda
 * Exit status: 0 if the order holds, 1 if not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "support/visit_orders.h"

static const struct {
	const char *policy;
	visit_check *check;
} orders[] = {
	{ "cohort", visit_is_wavefront },        { "srpt", visit_is_backward },
	{ "dbr", visit_is_slowest_first },       { "mg1", visit_is_by_table },
	{ "drain", visit_is_forward_over_work },
};

/* Reads the file. Returns false if it is not whole. */
static bool read_trace(const char *name, struct trace_log *log)
{
	FILE *file = fopen(name, "rb");
	struct trace_header header;
	long size = 0;

	if (!file || fread(&header, sizeof header, 1, file) != 1 || fseek(file, 0, SEEK_END) ||
	    (size = ftell(file) - (long)(sizeof header + header.names)) < 0)
		return false;
	size_t count = (size_t)size / sizeof(struct trace_record);
	struct trace_record *record = malloc(count * sizeof *record + 1);
	bool is_whole = record && fseek(file, -size, SEEK_END) == 0 &&
	                fread(record, sizeof *record, count, file) == count;

	if (is_whole)
		trace_log_add(log, record, count);
	free(record);
	fclose(file);
	return is_whole && log->count && !log->lost;
}

int main(int argc, char **argv)
{
	struct trace_log log = { 0 };
	bool holds = false;

	if (argc < 3 || !read_trace(argv[2], &log)) {
		fputs("usage: orders POLICY FILE [WORKERS STAGES]; the file is a whole trace\n",
		      stderr);
		return 2;
	}
	if (strcmp(argv[1], "seda") == 0 && argc == 5)
		holds = visit_pools_are_separate(&log, (unsigned)atoi(argv[3]),
		                                 (unsigned)atoi(argv[4]));
	if (strcmp(argv[1], "user-threads") == 0)
		holds = visit_threads_stay(&log);
	for (size_t i = 0; i < COUNT_OF(orders); i++)
		if (strcmp(argv[1], orders[i].policy) == 0)
			holds = visits_are(&log, orders[i].check);
	trace_log_free(&log);
	return holds ? 0 : 1;
}
