/*
 * stages.c - the stage graph: every stage and every edge, as data.
 *
 * An upload fans out after decoding; there is no barrier between the pixel stages. The files of an
 * image join at disk_write, because an image becomes visible as a whole: one visit stores it, and
 * one wake-up suffices. Every image ends in stats.
 */
#include "stages.h"

#include "conf/stage_table.h"
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

/* For the configuration: the same names in the same order. */
const struct stage_entry stage_table[] = {
	[STAGE_ACCEPT_READ] = { .name = "accept_read", .is_source = true },
	[STAGE_HTTP_PARSE] = { .name = "http_parse" },
	[STAGE_FORM_DECODE] = { .name = "form_decode" },
	[STAGE_JPEG_DECODE] = { .name = "jpeg_decode" },
	[STAGE_SCALE] = { .name = "scale" },
	[STAGE_BLUR] = { .name = "blur" },
	[STAGE_JPEG_ENCODE] = { .name = "jpeg_encode" },
	[STAGE_DISK_WRITE] = { .name = "disk_write" },
	[STAGE_STATS] = { .name = "stats" },
};

const unsigned stage_table_count = STAGE_ID_COUNT;

static_assert(COUNT_OF(stage_table) == STAGE_ID_COUNT, "every stage has its name");
static_assert(COUNT_OF(graph_rows) == STAGE_ID_COUNT, "every stage has its row");
static_assert(STAGE_ID_COUNT <= STAGE_COUNT_MAX,
              "a stage has a bit in masks and a place in struct timing");
