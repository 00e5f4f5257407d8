/*
 * s3_objects.h - the keys of an image's objects, lists of them, and single objects. Private to this
 * folder.
 */
#ifndef DARKROOM_S3_OBJECTS_H
#define DARKROOM_S3_OBJECTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "s3_client.h"
#include "s3_secret.h"
#include "s3_store.h"

#define S3_SPOOL "spool/"
#define S3_LEASE ".lease"
#define S3_SECOND_LENGTH 10 /* digits of a time */
#define S3_SECONDS UINT64_C(10000000000)

struct s3_store {
	struct s3_client *client;
	char secret_path[CONF_TEXT_MAX];
	struct s3_secret secret;
	bool has_secret_failed;    /* and logged */
	atomic_uint large_parts;   /* streams that have them */
	atomic_bool has_bare_tags; /* conditions name entity tags without quotes */
};

void s3_image_key(char key[S3_KEY_MAX], const char *id);
void s3_file_key(char key[S3_KEY_MAX], const char *id, const char *name);
void s3_expiry_key(char key[S3_KEY_MAX], const char *id, uint64_t expires);

/* Returns when the image of an object ends, in seconds since 1970, from the object's tag; 0: never.
 */
uint64_t s3_tag_expires(const char *tag);

/* Gets a key, and when its object was put; 0: the store has not told that. Returns false to end. */
typedef bool s3_key_reader(const char *key, time_t modified, void *arg);

/* Calls `each` with the keys that begin with the prefix, in order, until it returns false. after:
 * the key before the first one; modified: 0 if the store does not tell. Returns 0 or -errno.
 * Blocks. */
int s3_list_keys(struct s3_store *s, const char *prefix, const char *after, unsigned max,
                 s3_key_reader *each, void *arg);

/* Puts a small object, only if there is none with the key (match: "*"), or only if it has the
 * entity tag. The content must be that of no other writer: if an answer was lost, it tells whether
 * the object is this one. Returns 0 with its entity tag, or -errno: -EEXIST if the condition does
 * not hold, -ENOENT if there is no object with an entity tag, -EAGAIN after conflicts with other
 * writers, -EOPNOTSUPP if the store has no such requests, or as struct s3_op. Blocks. */
int s3_put_if(struct s3_store *s, const char *key, const char *data, size_t size, const char *match,
              char etag[S3_ETAG_MAX]);

/* Removes an object. Returns 0, also if there is none, or -errno. Blocks. */
int s3_remove(struct s3_store *s, const char *key);

/* Removes the objects whose keys begin with the prefix, and that were put before that time. Returns
 * 0 or -errno. Blocks. */
int s3_remove_old(struct s3_store *s, const char *prefix, time_t before);

#endif
