/*
 * upload_key.h - uploads with an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): the
 * same key with the same content makes no second image.
 *
 * A key is served twice: before the images of its upload start, and when they have ended. In
 * between it belongs to the upload. What was made is in a record (store/key_record.h), so that it
 * outlives the process. With an S3 store all nodes share the records. Keys of this process in
 * progress are in memory.
 */
#ifndef DARKROOM_IMAGE_UPLOAD_KEY_H
#define DARKROOM_IMAGE_UPLOAD_KEY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nettle/sha2.h>

#include "admission/clients.h"
#include "base/text.h"
#include "http/problem.h"
#include "store/key_record.h"
#include "store/ulid.h"

struct image_service;
struct upload;

#define UPLOAD_KEY_BUCKETS 256

/* Seconds. With a store that nodes share, a node takes over the upload of another one when the
 * record has stayed as it is for this time, by its own clock. The wait saves work: both nodes would
 * make the same images, of which the first ones count. */
#define UPLOAD_KEY_WAIT_S 10
#define UPLOAD_KEY_SEEN 256

enum upload_key_verdict {
	UPLOAD_KEY_NEW = 1, /* the upload may start; the key must be served once more */
	UPLOAD_KEY_KNOWN,   /* an earlier upload has succeeded: answer as it was answered */
	UPLOAD_KEY_REFUSED, /* the problem is set */
	UPLOAD_KEY_ENDED    /* what was made is remembered: the upload may be answered */
};

/* Of one request. Pool memory of its connection. */
struct upload_key {
	/* set before the first call */
	struct key_record record; /* of its upload; only the name is set */
	bool has_share;           /* of the upload's client: otherwise no limit */
	struct upload *upload;    /* NULL at the end: it was not started */
	/* the result */
	enum upload_key_verdict verdict; /* 0: none yet */
	struct problem problem;
	struct text images;       /* known: a JSON array */
	char id[ULID_LENGTH + 1]; /* known: of the only image; "": there are several */
	bool is_processing;       /* known: an image is not stored yet */
	uint64_t failed;          /* known: parts that made no image */
	/* private */
	bool is_taken_over; /* other nodes may be making its images */
	struct sha256_ctx context;
	unsigned hashed_images;
	size_t hashed;           /* bytes of the next one */
	struct upload_key *next; /* under the lock of struct upload_keys */
};

struct upload_keys {
	pthread_mutex_t lock;
	struct upload_key *bucket[UPLOAD_KEY_BUCKETS]; /* in progress */
	struct client_rates rates; /* of new keys, for limits.idempotency_keys */
	/* under the lock: records of other nodes that were seen last, by their names */
	struct {
		uint8_t name[KEY_RECORD_HASH_SIZE];
		char version[KEY_RECORD_VERSION_MAX];
		uint64_t since_ns;
	} seen[UPLOAD_KEY_SEEN];
};

void upload_keys_init(struct upload_keys *keys);
void upload_keys_fini(struct upload_keys *keys);

/* Makes the key of a request. Returns NULL if there is no memory. Any thread. */
struct upload_key *upload_key_new(void);
void upload_key_free(struct upload_key *k); /* NULL: nothing */

/*
 * Serves the key. Returns true if more of the upload's content is to be hashed: the caller calls
 * again, after others had their turn. Otherwise the verdict is set. A disk's thread; blocks.
 *
 * At first it decides about the upload, and remembers its ids if the key is new. An upload that
 * another node has begun, and has not ended, gets the ids of that one. At the end it remembers what
 * was made. If nothing succeeded, the key is forgotten: the client may try again with it.
 */
bool upload_key_serve(struct image_service *s, struct upload_key *k);

#endif
