/*
 * s3_objects.h - lists of keys, single small objects, and the heads of images.
 *
 * Keys below store.s3_prefix:
 *   image/<shard>/<id>    an image, or the mark that it was removed (s3_image.h)
 *   keys/<hash>           a record of an Idempotency-Key, which has its checksum as metadata
 *   probe                 of s3_probe()
 *   pass                  of s3_pass_hold()
 *   expiry/<second>.<id>  a note, sorted by time: the image ends by itself then, or its mark may go
 * Several daemons may use one bucket. Any thread; all calls block.
 */
#ifndef DARKROOM_S3_OBJECTS_H
#define DARKROOM_S3_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "s3_client.h"
#include "s3_image.h"
#include "s3_list.h"
#include "store/store_page.h"

#define S3_EXPIRY "expiry/"
#define S3_NOTE "expires\n" /* the content of a note: some stores refuse an empty object */

/* ---- lists ---- */

/* Gets an object whose key is plain and shorter than S3_KEY_MAX. Returns one of these, or -errno,
 * which ends the list as well. */
typedef int s3_key_reader(const struct s3_listed *listed, void *arg);
enum {
	S3_LIST_END,
	S3_LIST_NEXT,
	S3_LIST_FOREIGN /* the next one; this one is not of this daemon, and is counted */
};

/* Calls `each` with the keys that begin with the prefix, in order, until it ends the list. max:
 * keys in one answer. Returns 0 or -errno; also S3_AWAY as soon as the store is away. */
int s3_list_keys(struct s3_client *c, const char *prefix, unsigned max, s3_key_reader *each,
                 void *arg);

/* Returns how many seconds before the answer an object was put, by the store's clock alone; 0: that
 * is unknown. modified: when it was put, or 0. */
time_t s3_age(const struct s3_op *op, time_t modified);

/* Lists the first images between the page's bounds, oldest first, by merging the lists of all
 * shards: it takes a request for each shard at least. Images may be removed meanwhile. Returns 0
 * or -errno. */
int s3_list_images(struct s3_client *c, struct store_page *page);

/* ---- small objects ---- */

/* Puts a small object, only if there is none with the key (match: "*"), or only if it has the
 * entity tag. The content must be that of no other writer, or be as good: if an answer was lost, it
 * tells whether the object is this one. Returns 0 with its entity tag, or -errno: -EEXIST if the
 * condition does not hold, -ENOENT if there is no object with an entity tag, -EAGAIN after
 * conflicts with other writers, -EOPNOTSUPP if the store has no such requests, or as struct s3_op.
 */
int s3_put_if(struct s3_client *c, const char *key, const char *data, size_t size,
              const char *match, char etag[S3_ETAG_MAX]);

/* Tries whether the store can be read and written, and unless that is known, whether it has
 * conditional PUTs. Returns 0; -EOPNOTSUPP if it has not, or answers as if they did not hold, with
 * the reason logged once; or -errno, and nothing is known. */
int s3_probe(struct s3_client *c);

/* Removes an object, only if it has the entity tag, as far as the store knows that condition; "":
 * whatever it is. Returns 0, also if there is none, or -errno; -EEXIST: it has another tag. */
int s3_remove(struct s3_client *c, const char *key, const char *match);

/* ---- images ---- */

/* Writes the key of a note. */
void s3_note_key(char key[S3_KEY_MAX], const char *id, uint64_t when);

/* Turn the end of an image, in seconds since 1970, by this node's clock into that by the store's,
 * and back. 0 is never, and stays. c NULL: there is one clock. */
uint64_t s3_end_there(const struct s3_client *c, uint64_t expires);
uint64_t s3_end_here(const struct s3_client *c, uint64_t expires);

/* Makes an operation that reads the first S3_HEAD_MAX bytes of an image, which have its head. Its
 * error may be as s3_head_read(). */
struct s3_op s3_head_op(const char *id);

/* Reads the head of what an operation has got. Returns as s3_head_read(). */
int s3_head_of(struct s3_head *head, const struct s3_op *op);

/* Removes an image by putting S3_TOMBSTONE in its place. may_come: a PUT of it may still take
 * effect, so it is removed also if it is not there. due: only if it ends by itself by then, by the
 * store's clock, and not if it is a former one that cannot be read; 0: whenever it ends. A mark
 * that is older than S3_TOMBSTONE_AGE_S is removed. Returns 0, *bytes being those of the object, 0
 * if there was none; -ENOENT if there is no such image; -ENOSPC: no mark has room; or -errno. */
int s3_image_remove(struct s3_client *c, const char *id, bool may_come, uint64_t due,
                    uint64_t *bytes);

/* What has become of an image. */
enum s3_fate {
	S3_ABSENT = 1, /* it is not there, and may come */
	S3_THERE,
	S3_REMOVED,
	S3_HAS_FAILED /* it cannot come any more */
};

/* Looks what has become of an image. ends: one that is not there cannot come from now on. Returns
 * its fate, or -errno; -ETIME: its id is too old for a mark. */
int s3_image_fate(struct s3_client *c, const char *id, bool ends);

/* Which node makes the passes, as this one knows it. Zeroed: nothing is known. */
struct s3_pass {
	char etag[S3_ETAG_MAX]; /* of the record */
	uint64_t since_ns;      /* when it was seen first, by this node's monotonic clock */
	bool is_own;
};

/* Takes or keeps the passes, of which one node at a time makes all: the one that has changed the
 * record last. Another one takes them if the record stays as it is for patience_ns. A pass of two
 * nodes does no harm. Returns 1, 0 if they are another node's, or -errno. One thread. */
int s3_pass_hold(struct s3_client *c, struct s3_pass *p, uint64_t patience_ns);

#endif
