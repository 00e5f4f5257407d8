/*
 * s3_breaker.h - a circuit breaker: while a store is away, requests fail at once and do not wait
 * for it.
 *
 * It opens when all requests have failed for S3_BREAKER_OPEN_NS, and at least S3_BREAKER_FAILURES
 * of them. Any success closes it: while it is open, its owner tries the store every
 * S3_BREAKER_PROBE_NS. A pure state machine: one thread.
 */
#ifndef DARKROOM_S3_BREAKER_H
#define DARKROOM_S3_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define S3_BREAKER_FAILURES 4
#define S3_BREAKER_OPEN_NS NS_PER_S
#define S3_BREAKER_PROBE_NS (500 * NS_PER_MS)

/* Zeroed: closed. */
struct s3_breaker {
	uint64_t failures; /* since the last success */
	uint64_t first_ns; /* of these */
	bool is_open;
};

/* Notes the result of a request. Return whether the breaker has closed, or opened. */
bool s3_breaker_succeeded(struct s3_breaker *b);
bool s3_breaker_failed(struct s3_breaker *b, uint64_t now_ns);

#endif
