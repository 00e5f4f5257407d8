/*
 * bucket.h - a bucket of an S3 store in memory, and in place of s3_client.c, a client of it for
 * each node. Requests take random times, so they overtake each other.
 *
 * A fault has the number of the request at which it happens: of the first one from then on that can
 * have it.
 */
#ifndef DARKROOM_TESTS_WORLD_BUCKET_H
#define DARKROOM_TESTS_WORLD_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster.h"
#include "s3/s3_client.h"
#include "seeds.h"
#include "store/checksum.h"

/* X(kind, word) */
#define BUCKET_FAULTS(X)                                                          \
	X(BUCKET_LOST, "lost")       /* it is carried out, and not answered */    \
	X(BUCKET_LATE, "late")       /* it is carried out, but later */           \
	X(BUCKET_TWICE, "twice")     /* it is carried out, and once more later */ \
	X(BUCKET_ERROR, "error")     /* it is refused, or said to be */           \
	X(BUCKET_DAMAGED, "damaged") /* what it gets has another bit */           \
	X(BUCKET_AWAY, "away")       /* for some time, no request is answered */  \
	X(BUCKET_KILL, "kill")       /* of the node that asks */                  \
	X(BUCKET_STILL, "still")     /* that node stands still for some time */   \
	X(BUCKET_CLOCK, "clock")     /* that node's clock is set */

enum bucket_fault {
#define X(kind, word) kind,
	BUCKET_FAULTS(X)
#undef X
		BUCKET_FAULT_COUNT
};

struct object {
	char key[S3_KEY_MAX]; /* without the prefix */
	char *data;           /* a zero follows */
	size_t size;
	char etag[S3_ETAG_MAX];
	char sum[CHECKSUM_LENGTH + 1]; /* "": it was put in pieces */
	time_t modified;
};

extern struct bucket {
	struct object **object; /* in order */
	unsigned count;
	bool has_conditional_removals;
	uint64_t seed, requests;
	struct seed_fault fault[SEED_FAULTS_MAX];
	unsigned fault_count, fault_next;
	bool was_hurt;          /* a fault has happened: calls may fail */
	uint64_t away_until_ns; /* 0: it is there */
	unsigned in_flight;     /* requests, also of clients that have ended */
	/* Of the program: an object was put, or is going to be removed. */
	void (*changes)(const struct object *o, bool is_removed);
	/* Of the program: one of the last three faults happens to the node. */
	void (*hurt)(struct node *n, const struct seed_fault *fault);
} bucket;

struct object *bucket_find(const char *key); /* NULL: there is none */
void bucket_put(const char *key, const void *data, size_t size, bool is_one_piece);

#endif
