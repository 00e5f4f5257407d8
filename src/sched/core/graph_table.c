/*
 * graph_table.c - lookups in the declared table.
 *
 * Does not know a running graph. Any thread.
 */
#include "graph_table.h"

#include <string.h>

#include "conf/conf.h"
#include "conf/stage_table.h"

unsigned stage_table_count(void)
{
	return graph_row_count;
}

const char *stage_table_name(unsigned index)
{
	return graph_rows[index].class->name;
}

bool stage_table_is_source(unsigned index)
{
	return graph_rows[index].class->poll != NULL;
}

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

bool graph_stage_is_called(const struct conf *conf, unsigned index, bool is_per_connection)
{
	const struct stage_class *class = graph_rows[index].class;
	uint64_t configured = conf->stage[index].pass_through;

	if (class->poll || graph_stage_kind(conf, index) == STAGE_EXCLUSIVE)
		return false;
	return is_per_connection || configured == CONF_YES ||
	       (configured == CONF_DEFAULT && class->pass_through);
}
