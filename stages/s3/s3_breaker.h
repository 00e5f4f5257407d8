/*
 * s3_breaker.h - a circuit breaker: while a store is away, requests fail at once and do not wait
 * for it.
 *
 * It opens when all requests have failed for S3_BREAKER_OPEN_NS, and their failures weigh
 * S3_BREAKER_WEIGHT together. So neither a blip nor a pause of this process opens it. Any success
 * closes it: while it is open, its owner tries the store every S3_BREAKER_PROBE_NS. A pure state
 * machine: one thread.
 */
#ifndef DARKROOM_S3_BREAKER_H
#define DARKROOM_S3_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define S3_BREAKER_WEIGHT 16
#define S3_BREAKER_TIMEOUT 8 /* the weight of a request that got no answer; that of others is 1 */
#define S3_BREAKER_OPEN_NS NS_PER_S
#define S3_BREAKER_PROBE_NS (500 * NS_PER_MS)

/* Zeroed: closed. */
struct s3_breaker {
	uint64_t weight;   /* of the failures since the last success */
	uint64_t first_ns; /* when the first of these requests began */
	bool is_open;
};

/* Note the result of a request. Return whether the breaker has closed, or opened. */
bool s3_breaker_succeeded(struct s3_breaker *b);
bool s3_breaker_failed(struct s3_breaker *b, unsigned weight, uint64_t began_ns, uint64_t now_ns);

#endif
