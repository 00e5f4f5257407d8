/*
 * graph_table.h - the declared table of stages and edges.
 *
 * The program defines graph_rows (stages/stages.c). The index of a row is the stage's id. Rows are
 * in pipeline order, which is the order that policies see. stage_table.h tells the configuration
 * the names. Any thread.
 */
#ifndef DARKROOM_SCHED_CORE_GRAPH_TABLE_H
#define DARKROOM_SCHED_CORE_GRAPH_TABLE_H

#include "base/limits.h"
#include "stage.h"

struct conf;

/* The group of threads that serves a stage, if the stage has a queue. */
enum group_id {
	GROUP_IO = 1, /* event loops, not bound to cores: small responses never wait for pixels */
	GROUP_MAIN,   /* one worker per core, bound to it, following the policy */
	GROUP_DISK,   /* threads that may block in system calls */
	GROUP_COUNT
};

struct graph_row {
	const struct stage_class *class;
	enum group_id group;
	const char *targets[6]; /* names of the stages that it may send to, NULL-terminated */
};

extern const struct graph_row graph_rows[];
extern const unsigned graph_row_count; /* <= STAGE_COUNT_MAX */

/* Returns the index of the named stage, or -1. */
int graph_stage_index(const char *name);

/* Returns the configured kind of the stage, or that of its class. */
enum stage_kind graph_stage_kind(const struct conf *conf, unsigned index);

/* Returns the group that serves the stage's queue. In GROUP_IO only the source has a queue; the
 * other stages have theirs in the main group, if any. */
enum group_id graph_stage_group(unsigned index);

/* Returns whether the stage is called directly, by the configuration or its class.
 * is_per_connection: under policy thread-per-connection, all are. But never a source or an
 * exclusive stage, which several threads at a time would enter. */
bool graph_stage_is_called(const struct conf *conf, unsigned index, bool is_per_connection);

#endif
