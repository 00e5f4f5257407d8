/*
 * upload_key.h - uploads with an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): the
 * same key with the same content makes no second image.
 *
 * A key belongs to its upload from upload_key_begin() to upload_key_end(), which both run on the
 * disk's threads. What was made is in a record (key_store.h), so that it outlives the process. With
 * an S3 store all nodes share the records. Keys of this process in progress are in memory.
 */
#ifndef DARKROOM_IMAGE_UPLOAD_KEY_H
#define DARKROOM_IMAGE_UPLOAD_KEY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nettle/sha2.h>

#include "base/text.h"
#include "client_key.h"
#include "client_rate.h"
#include "key_store.h"
#include "store/ulid.h"

struct image_service;
struct store;
struct upload;

#define UPLOAD_KEY_HASH_SIZE SHA256_DIGEST_SIZE
#define UPLOAD_KEY_BUCKETS 256

/* With a store that nodes share, a key in progress belongs to its node for that long. Then another
 * node may make the images: the first one is dead, or it loses the key at its end. The nodes'
 * clocks must agree within some seconds. */
#define UPLOAD_KEY_LEASE_S 10

enum upload_key_verdict {
	UPLOAD_KEY_NEW = 1,     /* the upload may start; upload_key_end() must follow */
	UPLOAD_KEY_KNOWN,       /* an earlier upload has succeeded: answer as it was answered */
	UPLOAD_KEY_IN_PROGRESS, /* an upload with this key has not ended: 409 */
	UPLOAD_KEY_OF_OTHER,    /* the key belongs to another content: 422 */
	UPLOAD_KEY_TOO_MANY,    /* of this client: 429 */
	UPLOAD_KEY_FAILED       /* the store cannot be written, or there is no memory */
};

/* Of one request. Pool memory of its connection. */
struct upload_key {
	/* set before the first call */
	uint8_t name[UPLOAD_KEY_HASH_SIZE]; /* the hash of the client and its key */
	bool has_share;                     /* of the upload's client: otherwise no limit */
	bool is_content; /* store.dedupe: the content is the key, and the name only the client's */
	const struct upload *upload; /* NULL at the end: it was not started */
	/* the result */
	enum upload_key_verdict verdict;
	int err;                  /* failed: -errno, or an error of storage.h */
	uint64_t used, wait_s;    /* too many */
	struct text images;       /* known: a JSON array */
	char id[ULID_LENGTH + 1]; /* known: of the only image; "": there are several */
	bool is_processing;       /* known: an image is not stored yet */
	uint64_t failed;          /* known: parts that made no image */
	/* private */
	char version[KEY_VERSION_MAX];
	uint64_t begun_ns;
	/* upload_key_hash()'s own */
	struct sha256_ctx context;
	unsigned hashed_images;
	size_t hashed; /* bytes of the next one */
	uint8_t fingerprint[UPLOAD_KEY_HASH_SIZE];
	struct upload_key *next; /* under the lock of struct upload_keys */
};

struct upload_keys {
	pthread_mutex_t lock;
	struct upload_key *bucket[UPLOAD_KEY_BUCKETS]; /* in progress */
	struct client_rates rates; /* of new keys, for limits.idempotency_keys */
};

void upload_keys_init(struct upload_keys *keys);
void upload_keys_fini(struct upload_keys *keys);

/* Makes the key of a request. Returns NULL if there is no memory. Any thread. */
struct upload_key *upload_key_new(void);
void upload_key_free(struct upload_key *k); /* NULL: nothing */

/* Returns whether the upload may have a key of its content: it is one file. Any thread. */
bool upload_key_is_for(const struct upload *u);

/* Adds up to 1 MiB of the upload to the hash of its content. SHA-256, because a client may not find
 * two contents with one fingerprint. Returns true if more is left. At the end the name of a key
 * of the content is complete. */
bool upload_key_hash(struct upload_key *k);

/* Decides about an upload whose content is hashed, and remembers its ids if the key is new. */
void upload_key_begin(struct image_service *s, struct upload_key *k);

/* Remembers what the upload has made, before it is answered. If nothing succeeded, the key is
 * forgotten: the client may try again with it. The verdict is UPLOAD_KEY_IN_PROGRESS if another
 * node has taken the key: the images are removed, and the upload must not be acknowledged. */
void upload_key_end(struct image_service *s, struct upload_key *k);

#endif
