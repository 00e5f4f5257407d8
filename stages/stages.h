/*
 * stages.h - the ids of the stages: their rows in graph_rows (stages.c), in pipeline order.
 *
 * A stage file includes this to name its targets, and nothing else of another stage but its event
 * type.
 */
#ifndef DARKROOM_STAGES_H
#define DARKROOM_STAGES_H

#include "sched/stage.h"

enum stage_id {
	STAGE_ACCEPT_READ = 0,
	STAGE_HTTP_PARSE,
	STAGE_FORM_DECODE,
	STAGE_JPEG_DECODE,
	STAGE_SCALE,
	STAGE_BLUR,
	STAGE_JPEG_ENCODE,
	STAGE_DISK_WRITE,
	STAGE_STATS,
	STAGE_ID_COUNT
};

extern const struct stage_class stage_accept_read, stage_http_parse, stage_form_decode,
	stage_jpeg_decode, stage_scale, stage_blur, stage_jpeg_encode, stage_disk_write,
	stage_stats;

#endif
