/*
 * key_store.h - records of Idempotency-Keys as files (store/key_record.h), or as objects that
 * several nodes share (s3/s3_keys.h), by store.kind.
 *
 * `version` tells whether somebody else has changed a record since it was read; files have none.
 * Calls block. Any thread.
 */
#ifndef DARKROOM_IMAGE_KEY_STORE_H
#define DARKROOM_IMAGE_KEY_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/key_record.h"

struct image_service;

#define KEY_VERSION_MAX 64 /* bytes, with the zero */

/* Returns whether other processes may have the same keys at this time. */
bool key_store_is_shared(const struct image_service *s);

/* Returns 0, and the caller then calls pool_put(r->id); or -ENOENT if there is none; or -errno if
 * the store cannot tell. */
int key_store_read(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                   struct key_record *r, char version[KEY_VERSION_MAX]);

/* Writes or replaces a record. Returns 0, -EEXIST if it was changed since it was read, or -errno.
 */
int key_store_write(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                    const struct key_record *r, char version[KEY_VERSION_MAX]);

/* Settles a record as it was read or written. Returns as key_store_write(). */
int key_store_settle(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE],
                     struct key_record *r, char version[KEY_VERSION_MAX]);

/* Makes what was written as durable as the store is configured. Returns 0 or -errno. */
int key_store_flush(struct image_service *s);

/* Returns 0, also if there is none, or -errno. */
int key_store_remove(struct image_service *s, const uint8_t name[KEY_RECORD_HASH_SIZE]);

/* Removes records of one of KEY_RECORD_SHARDS shards that were written before `before` (seconds
 * since 1970). */
void key_store_sweep(struct image_service *s, unsigned shard, uint64_t before);

#endif
