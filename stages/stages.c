/*
 * stages.c - the stage graph: every stage and every edge, as data.
 *
 * An upload fans out after decoding; there is no barrier between the pixel stages. The files of an
 * image join at disk_write, because an image becomes visible as a whole: one visit stores it, and
 * one wake-up suffices. Every image ends in stats.
 */
#include "stages.h"

#include "sched/graph.h"

const struct graph_row graph_rows[] = {
	[STAGE_ACCEPT_READ] = { &stage_accept_read,
	                        GROUP_IO,
	                        { "http_parse", "form_decode", "disk_write" } },
	[STAGE_HTTP_PARSE] = { &stage_http_parse, GROUP_IO, { "accept_read" } },
	[STAGE_FORM_DECODE] = { &stage_form_decode, GROUP_IO, { "accept_read", "jpeg_decode" } },
	[STAGE_JPEG_DECODE] = { &stage_jpeg_decode,
	                        GROUP_MAIN,
	                        { "scale", "disk_write", "stats", "accept_read" } },
	[STAGE_SCALE] = { &stage_scale,
	                  GROUP_MAIN,
	                  { "scale", "blur", "jpeg_encode", "disk_write", "stats" } },
	[STAGE_BLUR] = { &stage_blur,
	                 GROUP_MAIN,
	                 { "scale", "blur", "jpeg_encode", "disk_write", "stats" } },
	[STAGE_JPEG_ENCODE] = { &stage_jpeg_encode, GROUP_MAIN, { "disk_write", "stats" } },
	[STAGE_DISK_WRITE] = { &stage_disk_write,
	                       GROUP_DISK,
	                       { "stats", "accept_read", "disk_write" } },
	[STAGE_STATS] = { &stage_stats, GROUP_MAIN, { "accept_read" } },
};

const unsigned graph_row_count = STAGE_ID_COUNT;

static_assert(COUNT_OF(graph_rows) == STAGE_ID_COUNT, "every stage has a row");
static_assert(STAGE_ID_COUNT <= STAGE_COUNT_MAX,
              "a stage has a bit in masks and a place in struct timing");
