/* request_records.h - one record per request for the CSV file. Each client thread writes its own.
 */
#ifndef DARKROOM_LOADGEN_LOAD_REQUEST_RECORDS_H
#define DARKROOM_LOADGEN_LOAD_REQUEST_RECORDS_H

#include <stdint.h>
#include <stdio.h>

#include "corpus.h"

struct request_record {
	uint64_t intended_ns, start_ns, sent_ns, done_ns; /* 0: never */
	uint32_t file, connection;
	uint16_t status; /* 0: none */
	uint16_t result; /* enum exchange_result */
};

struct request_record_chunk;

/* Empty when zeroed. */
struct request_records {
	struct request_record_chunk *first, *last;
	uint64_t lost; /* records for which there was no memory */
};

void request_records_add(struct request_records *r, const struct request_record *record);
void request_records_fini(struct request_records *r);

/* Writes the records of all threads as CSV rows in the order of done_ns, with zero_ns as time 0.
 * Returns 0, or -1 with errno. */
int request_records_write(FILE *out, const struct request_records *const *records, unsigned count,
                          uint64_t zero_ns, const struct corpus *files);

#endif
