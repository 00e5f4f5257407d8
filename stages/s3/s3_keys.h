/*
 * s3_keys.h - records of Idempotency-Keys that several nodes share: an object keys/<64 digits> for
 * each key, with the text of store/key_record.h.
 *
 * A record is put only if nobody else has put one since it was read. So of several nodes one wins.
 * `version` is the entity tag of the object, or "": there was none. Calls block. Any thread.
 */
#ifndef DARKROOM_S3_S3_KEYS_H
#define DARKROOM_S3_S3_KEYS_H

#include <stdint.h>

#include "s3_client.h"
#include "store/key_record.h"

struct s3_store;

/* As key_record_read(), and sets the version. Other errors are those of struct s3_op: nothing is
 * known of the key then. */
int s3_key_read(struct s3_store *s, const uint8_t key[KEY_RECORD_HASH_SIZE], struct key_record *r,
                char version[S3_ETAG_MAX]);

/* Writes or replaces the record of a key, and sets the new version. Returns 0; -EEXIST if another
 * node has changed the record since; -EAGAIN if others write it at this time; -EOPNOTSUPP if the
 * store has no conditional requests; or as struct s3_op. */
int s3_key_write(struct s3_store *s, const uint8_t key[KEY_RECORD_HASH_SIZE],
                 const struct key_record *r, char version[S3_ETAG_MAX]);

/* Returns 0, also if there is none, or -errno. */
int s3_key_remove(struct s3_store *s, const uint8_t key[KEY_RECORD_HASH_SIZE]);

/* Removes what was put before `before` (seconds since 1970) and has a name that begins with the two
 * digits of the shard. Returns 0 or -errno. */
int s3_key_sweep(struct s3_store *s, unsigned shard, uint64_t before);

#endif
