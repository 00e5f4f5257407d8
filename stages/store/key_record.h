/*
 * key_record.h - which images an upload with an Idempotency-Key made: a file
 * <root>/.keys/<2 digits>/<62 digits> for each key, named by its hash.
 *
 * A record is written before the first image of its upload can appear, with the ids that the images
 * will have. The flush that makes an image durable covers it. It is settled when the response is
 * known, before it is sent. So a record that is not settled after a crash tells by its images what
 * happened: if all are stored or spooled, the upload succeeded; otherwise it was never
 * acknowledged. A settled record remembers images that were removed since. Calls block. Any thread,
 * one per key; key_record_sweep() at the same time.
 */
#ifndef DARKROOM_STORE_KEY_RECORD_H
#define DARKROOM_STORE_KEY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ulid.h"

struct store;

#define KEY_RECORD_HASH_SIZE 32 /* SHA-256 */
#define KEY_RECORD_SHARDS 256
#define KEY_RECORD_IDS_MAX 10000 /* limits.parts allows no more */

struct key_record {
	uint64_t created; /* seconds since 1970 */
	bool is_settled;
	uint8_t fingerprint[KEY_RECORD_HASH_SIZE]; /* of the content */
	uint64_t failed;                           /* parts of the form that made no image */
	unsigned count;                            /* of ids */
	char (*id)[ULID_LENGTH + 1];               /* pool memory, or the writer's */
};

#define KEY_RECORD_NAME_LENGTH 64 /* of a key: its hash in hexadecimal */
#define KEY_RECORD_TEXT_MAX ((size_t)300 << 10)

/* ---- texts; pure functions ---- */

/* Writes the name of a key, without a zero. */
void key_record_name(char name[KEY_RECORD_NAME_LENGTH], const uint8_t key[KEY_RECORD_HASH_SIZE]);

/* Returns the text of a record as pool memory, with a zero behind it, or NULL. */
char *key_record_format(const struct key_record *r, size_t *length);

/* Reads a text, which is pool memory with a zero behind it. Returns 0, and the memory is r->id; or
 * -ENOENT if the text is damaged, and the memory is released. */
int key_record_parse(char *text, size_t length, struct key_record *r);

/* ---- files ---- */

/* Writes or replaces the record of a key. Returns 0 or -errno, and then the old one stays. */
int key_record_write(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE],
                     const struct key_record *r);

/* Settles a written record. Needs no free space. Returns 0 or -errno. */
int key_record_settle(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE]);

/* Returns 0, and the caller then calls pool_put(r->id); or -ENOENT if there is none, or it is
 * damaged; or -errno. */
int key_record_read(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE], struct key_record *r);

/* Returns 0, also if there is none, or -errno. */
int key_record_remove(struct store *s, const uint8_t key[KEY_RECORD_HASH_SIZE]);

/* Removes what was written before `before` (seconds since 1970) in one of KEY_RECORD_SHARDS
 * directories. Returns the number of files. */
unsigned key_record_sweep(struct store *s, unsigned shard, uint64_t before);

#endif
