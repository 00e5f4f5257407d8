/*
 * retry.h - repeats an upload with its Idempotency-Key until it has an answer, and asks once more
 * after a late one.
 *
 * An answer is late if the upload was sent more than once. Another repetition then shows whether
 * the server knows the key: an answer with another Location means that the picture was stored
 * twice. Belongs to one thread.
 */
#ifndef DARKROOM_LOADGEN_LOAD_RETRY_H
#define DARKROOM_LOADGEN_LOAD_RETRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "connection.h"
#include "corpus.h"

struct retry {
	uint64_t run; /* random: no other run has its keys */
	/* of the upload */
	char line[80]; /* the header field */
	struct iovec parts[REQUEST_PARTS_MAX];
	unsigned part_count, sent;
	uint64_t end_ns; /* no repetition begins later */
	bool is_confirming;
	char location[RESPONSE_LOCATION_MAX];
};

enum retry_verdict {
	RETRY_END = 1, /* the result counts */
	RETRY_AGAIN,   /* send it once more */
	RETRY_LATE,    /* the result counts; then send it once more */
	RETRY_SAME,   /* that was the last repetition: the server knew the key, or did not answer */
	RETRY_DOUBLED /* it made a second image */
};

/* Returns NULL if there is no memory. */
struct retry *retry_new(void);

/* Makes the requests of an upload, whose file stays the caller's. */
void retry_begin(struct retry *r, uint64_t number, const struct corpus_file *file, uint64_t end_ns);

/* Judges the result of one exchange that ended at now_ns. */
enum retry_verdict retry_judge(struct retry *r, enum exchange_result result,
                               const struct response_reader *response, uint64_t now_ns);

#endif
