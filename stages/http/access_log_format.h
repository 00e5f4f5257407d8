/*
 * access_log_format.h - what a line about a request looks like: KEY=VALUE with spaces between them,
 * or JSON.
 *
 * Whatever bytes are in it, it is one line of printable ASCII, or valid JSON. Nothing is allocated.
 * Any thread.
 */
#ifndef DARKROOM_HTTP_ACCESS_LOG_FORMAT_H
#define DARKROOM_HTTP_ACCESS_LOG_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "field.h"
#include "sched/event.h"
#include "store/store.h"

#define ACCESS_IMAGES_MAX 8 /* images of a request that are told of; of all their number */
#define ACCESS_PATH_MAX 512 /* bytes of a target; longer ones are cut and say so */

struct text;

struct access_image {
	char id[ULID_LENGTH + 1];
	uint32_t width, height;
};

/* All of it borrowed. */
struct access_line {
	const char *time; /* UTC, to the second: "2026-01-31T23:59:59" */
	unsigned time_ms;
	const char *client, *id;
	const char *method; /* NULL: it was not understood */
	struct slice path;  /* likewise of length 0 */
	unsigned status;    /* 0: there was no answer */
	bool is_complete;   /* the answer was written to its end */
	uint64_t bytes_in, bytes_out;
	unsigned files,
		failed; /* of an upload: files in it, those that are not stored; 0: it is none */
	unsigned image_count;
	const struct access_image *image;
	uint64_t total_ns, read_ns, queue_ns; /* read_ns 0: it had no body */
	unsigned stage_count;
	const char *const *stage_name;
	const uint64_t *stage_ns; /* those of 0 are left out */
};

/* Appends the line, without an end. */
void access_line_text(const struct access_line *line, struct text *to);
void access_line_json(const struct access_line *line, struct text *to);

#endif
