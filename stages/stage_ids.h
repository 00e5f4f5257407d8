/*
 * stage_ids.h - the stages, one row each, in pipeline order.
 *
 * A row X(ID, NAME, GROUP, TARGETS...) makes the id STAGE_ID, declares the class stage_NAME
 * (stages.h) and makes its row of the graph (stages.c). GROUP: the threads that serve the stage, as
 * in sched/core/graph_table.h. TARGETS: the stages that the stage sends events to.
 *
 * An upload fans out after decoding; there is no barrier between the pixel stages. The files of an
 * image join at disk_write, because an image becomes visible as a whole: one visit stores the
 * image, and one wake-up suffices. Every image ends in stats. disk_read is off the pipeline: it
 * serves GET only.
 *
 * Ground floor of stages/: includes none of the tree, and every folder may include it.
 */
#ifndef DARKROOM_STAGE_IDS_H
#define DARKROOM_STAGE_IDS_H

/* clang-format off */
#define EACH_STAGE(X) \
	X(ACCEPT_READ, accept_read, IO,   "http_parse", "form_decode", "disk_write", "disk_read") \
	X(HTTP_PARSE,  http_parse,  IO,   "accept_read") \
	X(FORM_DECODE, form_decode, IO,   "accept_read", "jpeg_decode") \
	X(JPEG_DECODE, jpeg_decode, MAIN, "scale", "disk_write", "stats", "accept_read") \
	X(SCALE,       scale,       MAIN, "scale", "blur", "jpeg_encode", "disk_write", "stats") \
	X(BLUR,        blur,        MAIN, "scale", "blur", "jpeg_encode", "disk_write", "stats") \
	X(JPEG_ENCODE, jpeg_encode, MAIN, "disk_write", "stats") \
	X(DISK_WRITE,  disk_write,  DISK, "stats", "accept_read", "disk_write") \
	X(STATS,       stats,       MAIN, "accept_read") \
	X(DISK_READ,   disk_read,   DISK, "accept_read", "disk_read")
/* clang-format on */

#define STAGE_ID(id, name, group, ...) STAGE_##id,
enum stage_id { EACH_STAGE(STAGE_ID) STAGE_ID_COUNT };
#undef STAGE_ID

#endif
