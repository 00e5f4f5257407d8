/*
 * stages.h - the stage classes, one per stage file.
 *
 * A stage file includes this header for its own class, and nothing else of another stage.
 */
#ifndef DARKROOM_STAGES_H
#define DARKROOM_STAGES_H

#include "sched/core/stage.h"
#include "stage_ids.h"

#define STAGE_CLASS(id, name, group, ...) extern const struct stage_class stage_##name;
EACH_STAGE(STAGE_CLASS)
#undef STAGE_CLASS

#endif
