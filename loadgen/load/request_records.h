/* request_records.h - one record per request for the CSV file. Each client thread writes its own.
 */
#ifndef DARKROOM_LOADGEN_LOAD_REQUEST_RECORDS_H
#define DARKROOM_LOADGEN_LOAD_REQUEST_RECORDS_H

#include <stdint.h>
#include <stdio.h>

#include "command_line.h"
#include "corpus.h"

#define RECORD_UNSENT UINT32_MAX
#define RECORD_ID_MAX 32
#define RECORD_LISTS_MAX (THREADS_MAX + 1) /* the threads', and that of requests never sent */

struct request_record {
	uint64_t intended_ns, start_ns, sent_ns, done_ns; /* 0: never */
	uint32_t file;                                    /* RECORD_UNSENT: due but never sent */
	uint32_t connection;
	uint16_t status;        /* 0: none */
	uint16_t result;        /* enum exchange_result */
	char id[RECORD_ID_MAX]; /* of what the server has made; "": not known, or too long */
};

struct request_record_chunk;

/* Empty when zeroed. */
struct request_records {
	struct request_record_chunk *first, *last;
	uint64_t lost; /* records for which there was no memory */
};

void request_records_add(struct request_records *r, const struct request_record *record);
void request_records_fini(struct request_records *r);

/* Writes lists of records as CSV rows in the order of done_ns, with zero_ns as time 0. A request
 * that was never sent has only intended and error. count is at most RECORD_LISTS_MAX.
 * Returns 0, or -1 with errno. */
int request_records_write(FILE *out, const struct request_records *const *records, unsigned count,
                          uint64_t zero_ns, const struct corpus *files);

#endif
