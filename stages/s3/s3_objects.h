/*
 * s3_objects.h - the keys of an image's objects, lists of them, and single objects.
 *
 * Keys below store.s3_prefix:
 *   image/<id>          image.json, which makes the image visible
 *   file/<id>/<name>    its other files, such as medium.jpg
 *   expiry/<second>.<id>  a note of an image that ends by itself, sorted by time
 * An object has the checksum and the end of its image as metadata, in the form of store_tag().
 * Several daemons may use one bucket. Any thread.
 */
#ifndef DARKROOM_S3_OBJECTS_H
#define DARKROOM_S3_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "s3_client.h"

#define S3_IMAGES "image/"
#define S3_FILES "file/"
#define S3_EXPIRY "expiry/"

/* Writes the key of a file of an image, which may be image.json. */
void s3_file_key(char key[S3_KEY_MAX], const char *id, const char *name);

/* Gets a key, and when its object was put; 0: the store has not told that. Returns false to end. */
typedef bool s3_key_reader(const char *key, time_t modified, void *arg);

/* Calls `each` with the keys that begin with the prefix, in order, until it returns false. after:
 * the key before the first one; modified: 0 if the store does not tell. Returns 0 or -errno.
 * Blocks. */
int s3_list_keys(struct s3_client *c, const char *prefix, const char *after, unsigned max,
                 s3_key_reader *each, void *arg);

/* Puts a small object, only if there is none with the key (match: "*"), or only if it has the
 * entity tag. The content must be that of no other writer: if an answer was lost, it tells whether
 * the object is this one. Returns 0 with its entity tag, or -errno: -EEXIST if the condition does
 * not hold, -ENOENT if there is no object with an entity tag, -EAGAIN after conflicts with other
 * writers, -EOPNOTSUPP if the store has no such requests, or as struct s3_op. Blocks. */
int s3_put_if(struct s3_client *c, const char *key, const char *data, size_t size,
              const char *match, char etag[S3_ETAG_MAX]);

/* Removes objects, whose keys are those of the operations. Returns 0, also if there is none, or the
 * error of one; *removed are those without an error. Blocks. */
int s3_remove_all(struct s3_client *c, struct s3_op *ops, unsigned count, unsigned *removed);

/* Removes an object. Returns as s3_remove_all(). Blocks. */
int s3_remove(struct s3_client *c, const char *key);

/* Removes the objects whose keys begin with the prefix, and that were put before that time. Returns
 * 0 or -errno. Blocks. */
int s3_remove_old(struct s3_client *c, const char *prefix, time_t before);

/* ---- objects without an image ---- */

/* Their node ended while it put an image, or could not remove them. A pass looks at one list of
 * S3_ORPHANS_KEYS objects and removes those of S3_ORPHANS_IMAGES images at most; the next pass
 * continues behind it. An object counts only from S3_ORPHANS_AGE_S on, by the store's time of it,
 * so no upload is still at it. */
#define S3_ORPHANS_KEYS 1000
#define S3_ORPHANS_IMAGES 16
#define S3_ORPHANS_AGE_S (7 * 86400)

/* Where the next pass begins. Zeroed: at the beginning. */
struct s3_orphans {
	char after[S3_KEY_MAX];
};

/* Makes a pass. is_known(): the image may still be stored. Returns the objects removed, or -errno.
 * One thread; blocks. */
int s3_orphans_remove(struct s3_client *c, struct s3_orphans *o,
                      bool (*is_known)(void *arg, const char *id), void *arg);

#endif
