/*
 * stage_ids.h - the ids of the stages: their index in graph_rows (stages.c), in pipeline order.
 *
 * Ground floor of stages/: includes none of the tree, and every folder may include it.
 */
#ifndef DARKROOM_STAGE_IDS_H
#define DARKROOM_STAGE_IDS_H

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

#endif
