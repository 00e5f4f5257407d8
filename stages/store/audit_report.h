/*
 * audit_report.h - what darkroomd store check has found: printed, moved away, counted; its pace,
 * and how far it has come. Main thread.
 */
#ifndef DARKROOM_STORE_AUDIT_REPORT_H
#define DARKROOM_STORE_AUDIT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "ulid.h"

struct store_query;

#define AUDIT_INTERRUPTED (-1)
#define AUDIT_PROBLEMS_MAX 64 /* of one image that are listed */
#define AUDIT_NAME_MAX 256

struct audit_report {
	char id[ULID_LENGTH + 1];
	struct audit_problem {
		char file[AUDIT_NAME_MAX]; /* "": the image itself */
		const char *kind;          /* static */
	} problem[AUDIT_PROBLEMS_MAX];
	unsigned problem_count; /* of this image */
	uint64_t images, files, bytes, problems, unverified;
	uint64_t start_ns, saved_ns;
	bool is_whole; /* the whole store is checked, so that its progress is kept */
	uint64_t rate; /* bytes per second */
};

/* Continues where an interrupted check of the whole store ended. Returns 0 or the exit status. */
int audit_report_start(struct audit_report *r, struct store_query *q);

/* Begins the next image. */
void audit_report_begin(struct audit_report *r, const char *id);

/* Counts a file of that size, and waits for the pace. */
void audit_report_file(struct audit_report *r, uint64_t bytes);

/* Notes a problem of the image's file. kind is static. */
void audit_report_problem(struct audit_report *r, const char *file, const char *kind);

/* The image is checked. counts: it still exists. Prints its problems, and moves damaged and stray
 * files away if q->repairs. Returns 0 or the exit status. */
int audit_report_end(struct audit_report *r, struct store_query *q, bool counts);

/* Prints the sums. status: 0, AUDIT_INTERRUPTED or an exit status. Returns the exit status. */
int audit_report_finish(struct audit_report *r, struct store_query *q, int status);

#endif
