/*
 * s3_former.h - images that have several objects, as snapshots of version 0.2 stored them. They are
 * copied to the one object of s3_image.h, and then removed.
 *
 *   image/<id>        image.json, which made the image visible
 *   file/<id>/<name>  each other file
 *
 * A copy is put only if there is no object with its key, so it never replaces a tombstone. A
 * removal puts the tombstone first. So a copy that comes late brings no image back. Any thread; all
 * calls block.
 */
#ifndef DARKROOM_S3_FORMER_H
#define DARKROOM_S3_FORMER_H

#include "s3_client.h"

#define S3_FORMER_FILES "file/"

/* Looks whether the bucket has such files. Without a look, or if it has, the functions below ask
 * the store; otherwise they know that there are none. Returns 0 or -errno. */
int s3_former_look(struct s3_client *c);

/* Copies an image whose files all have their checksums, unless there is an object with its key.
 * The former objects stay. It is in memory meanwhile. Returns 1; 0 if that object is there, whether
 * it is the image or a tombstone; -ENOENT if there is neither; S3_DAMAGED; or -errno. */
int s3_former_copy(struct s3_client *c, const char *id);

/* Removes the former objects, of which image.json is the first. Returns 0, also if there are none,
 * or -errno. */
int s3_former_remove(struct s3_client *c, const char *id);

#endif
