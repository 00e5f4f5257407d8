/*
 * stages.h - the stage classes, one per stage file; stages.c makes the graph of them.
 *
 * A stage file includes this header for its own class, and nothing else of another stage.
 */
#ifndef DARKROOM_STAGES_H
#define DARKROOM_STAGES_H

#include "sched/stage.h"
#include "stage_ids.h"

extern const struct stage_class stage_accept_read, stage_http_parse, stage_form_decode,
	stage_jpeg_decode, stage_scale, stage_blur, stage_jpeg_encode, stage_disk_write,
	stage_stats;

#endif
