/*
 * access_log_format.h - the format of a line about a request: KEY=VALUE separated by spaces, or
 * JSON.
 *
 * Hostile bytes are escaped: the result is always one line of printable ASCII, or valid JSON.
 * Nothing is allocated. Any thread.
 */
#ifndef DARKROOM_HTTP_ACCESS_LOG_FORMAT_H
#define DARKROOM_HTTP_ACCESS_LOG_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "field.h"
#include "sched/event.h"
#include "store/ulid.h"

#define ACCESS_IMAGES_MAX 8 /* images of a request that are listed */
#define ACCESS_PATH_MAX 512 /* bytes of a target; "..." follows if it is longer */

struct text;

struct access_image {
	char id[ULID_LENGTH + 1];
	uint32_t width, height;
};

/* All pointers are borrowed. */
struct access_line {
	const char *time; /* UTC, to the second: "2026-01-31T23:59:59" */
	unsigned time_ms;
	const char *client, *id;
	const char *token;  /* its name; "": none was needed or given */
	const char *method; /* NULL: it could not be parsed */
	struct slice path;  /* length 0: it could not be parsed */
	unsigned status;    /* 0: no response was begun */
	bool is_complete;   /* the response was written to its end */
	uint64_t bytes_in, bytes_out;
	unsigned files, failed; /* of an upload: its files, and those that failed; otherwise 0 */
	unsigned image_count;
	const struct access_image *image;
	uint64_t total_ns, read_ns, queue_ns; /* read_ns 0: no body */
	unsigned stage_count;
	const char *const *stage_name;
	const uint64_t *stage_ns; /* stages with 0 are left out */
};

/* Append the line, without a line end. */
void access_line_text(const struct access_line *line, struct text *to);
void access_line_json(const struct access_line *line, struct text *to);

#endif
