/* stages.c - the stage graph: every stage and every edge, from the rows in stage_ids.h. */
#include "stages.h"

#include "sched/core/graph.h"

#define ROW(id, name, group, ...) [STAGE_##id] = { &stage_##name, GROUP_##group, { __VA_ARGS__ } },
const struct graph_row graph_rows[] = { EACH_STAGE(ROW) };

const unsigned graph_row_count = STAGE_ID_COUNT;

static_assert(STAGE_ID_COUNT <= STAGE_COUNT_MAX,
              "a stage has a bit in masks and a place in struct timing");
