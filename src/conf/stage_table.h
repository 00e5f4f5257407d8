/*
 * stage_table.h - what the configuration asks about the stages, for the sections [stage.NAME]
 * and [experiment.NAME], and about the operations on pictures.
 *
 * The configuration knows no stage: sched/core/graph_table.c answers from the program's graph_rows,
 * and stages/plan/operations.c from its table.
 * The stages stand in pipeline order; an index is the one in graph_rows and in conf.stage.
 */
#ifndef DARKROOM_CONF_STAGE_TABLE_H
#define DARKROOM_CONF_STAGE_TABLE_H

#include <stdbool.h>

/* All are pure; any thread. */
unsigned stage_table_count(void); /* <= STAGE_COUNT_MAX */
const char *stage_table_name(unsigned index);

/* Returns whether events enter the graph at this stage: its threads are event loops with a listener
 * each. */
bool stage_table_is_source(unsigned index);

/* Returns the help of an operation, as lines for --keys; NULL behind the last one. */
const char *operation_table_help(unsigned index);

#endif
