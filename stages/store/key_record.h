/*
 * key_record.h - which images an upload with an Idempotency-Key made: a file
 * <root>/.keys/<2 digits>/<62 digits> for each key, named by its hash; or an S3 object with the
 * same text.
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
struct text;

#define KEY_RECORD_HASH_SIZE 32 /* SHA-256 */
#define KEY_RECORD_VERSION_MAX 64
#define KEY_RECORD_SHARDS 256
#define KEY_RECORD_IDS_MAX 10000 /* limits.parts allows no more */
#define KEY_RECORD_TEXT_MAX ((size_t)300 << 10)

struct key_record {
	uint8_t name[KEY_RECORD_HASH_SIZE];   /* the hash of the client and its key */
	char version[KEY_RECORD_VERSION_MAX]; /* of the S3 object that was read; "": none was */
	uint64_t created;                     /* seconds since 1970; of an S3 object: any number */
	uint64_t age_s;                       /* of a record that was read, by one clock */
	bool is_settled;
	uint8_t fingerprint[KEY_RECORD_HASH_SIZE]; /* of the content */
	uint64_t failed;                           /* parts of the form that made no image */
	unsigned count;                            /* of ids */
	char (*id)[ULID_LENGTH + 1];               /* pool memory, or the writer's */
};

/* ---- texts; pure functions ---- */

/* Writes the name in hexadecimal, with a zero. */
void key_record_name(const struct key_record *r, char name[2 * KEY_RECORD_HASH_SIZE + 1]);

/* Begins `to`, and appends the record; the caller calls text_fini(). Returns 0 or -ENOMEM. */
int key_record_format(const struct key_record *r, struct text *to);

/* Reads a text, with a zero behind it. Returns 0, and the caller then calls pool_put(r->id); or
 * -ENOENT, if the text is damaged; or -ENOMEM. */
int key_record_parse(struct key_record *r, const char *text, size_t length);

/* ---- files, by r->name ---- */

/* Writes or replaces the record. Settling one that was written needs no free space, unless parts
 * have failed. Returns 0 or -errno, and then the old one stays. */
int key_record_write(struct store *s, const struct key_record *r);

/* Returns 0, and the caller then calls pool_put(r->id); or -ENOENT if there is none that can be
 * read. */
int key_record_read(struct store *s, struct key_record *r);

/* Returns 0, also if there is none, or -errno. */
int key_record_remove(struct store *s, const struct key_record *r);

/* Removes what was written before `before` (seconds since 1970) in one of KEY_RECORD_SHARDS
 * directories. */
void key_record_sweep(struct store *s, unsigned shard, uint64_t before);

#endif
