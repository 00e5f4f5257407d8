/*
 * stage_table.h - the names of the stages, for the sections [stage.NAME].
 *
 * The program defines the table (stages/stages.c), because the configuration knows no stage. The
 * stages stand in pipeline order; an index here is the index in graph_rows and in conf.stage.
 */
#ifndef DARKROOM_CONF_STAGE_TABLE_H
#define DARKROOM_CONF_STAGE_TABLE_H

#include <stdbool.h>

struct stage_entry {
	const char *name;
	bool is_source; /* events enter the graph here: its threads are event loops with a listener
	                   each */
};

extern const struct stage_entry stage_table[];
extern const unsigned stage_table_count; /* <= STAGE_COUNT_MAX */

#endif
