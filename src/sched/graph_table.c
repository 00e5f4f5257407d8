/*
 * graph_table.c - lookups in the declared table.
 *
 * Does not know a running graph. Any thread.
 */
#include "graph_table.h"

#include <string.h>

#include "conf/conf.h"

int graph_stage_index(const char *name)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if (strcmp(graph_rows[i].class->name, name) == 0)
			return (int)i;
	return -1;
}

enum stage_kind graph_stage_kind(const struct conf *conf, unsigned index)
{
	uint64_t configured = conf->stage[index].kind;

	return configured ? (enum stage_kind)configured : graph_rows[index].class->kind;
}

enum group_id graph_stage_group(unsigned index)
{
	const struct graph_row *row = &graph_rows[index];

	return row->group == GROUP_IO && !row->class->poll ? GROUP_MAIN : row->group;
}
