/* retry.c - which results are repeated, and what the last one tells. */
#include "retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct retry *retry_new(void)
{
	struct retry *r = calloc(1, sizeof *r);

	if (r && getrandom(&r->run, sizeof r->run, 0) == sizeof r->run)
		return r;
	free(r);
	return NULL;
}

void retry_begin(struct retry *r, uint64_t number, const struct corpus_file *file, uint64_t end_ns)
{
	int length =
		snprintf(r->line, sizeof r->line,
	                 "Idempotency-Key: \"%016" PRIx64 "-%" PRIu64 "\"\r\n", r->run, number);

	r->part_count = corpus_add_field(file, r->line, (size_t)length, r->parts);
	r->end_ns = end_ns;
	r->sent = 0;
	r->is_confirming = false;
}

/* Returns whether the server may give another answer later. */
static bool is_passing(enum exchange_result result, int status)
{
	return result != EXCHANGE_OK || status == 409 || status == 429 || status >= 500;
}

enum retry_verdict retry_judge(struct retry *r, enum exchange_result result,
                               const struct response_reader *response, uint64_t now_ns)
{
	int status = result == EXCHANGE_OK ? response->status : 0;

	r->sent++;
	if (r->is_confirming) {
		bool is_other = status / 100 == 2 && strcmp(r->location, response->location) != 0;

		return is_other ? RETRY_DOUBLED : RETRY_SAME;
	}
	if (is_passing(result, status))
		return now_ns < r->end_ns ? RETRY_AGAIN : RETRY_END;
	if (r->sent == 1 || status / 100 != 2)
		return RETRY_END;
	memcpy(r->location, response->location, sizeof r->location);
	r->is_confirming = true;
	return RETRY_LATE;
}
