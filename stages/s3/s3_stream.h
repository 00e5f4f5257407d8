/*
 * s3_stream.h - a file of an image, which is sent while it is read.
 *
 * The head of the image (s3_image.h) tells where the file is. If this node does not know it, the
 * first request gets the beginning of the object, which often has the file as well. The file is
 * read in parts (RFC 9110, 14.2), each when the client has taken the one before. So it needs little
 * memory, and a slow client holds no connection to the store. A part whose object has another
 * entity tag than the head is not given away, nor is the last part unless all content has its
 * checksum. Of a range that the client has asked for, that cannot be told.
 */
#ifndef DARKROOM_S3_STREAM_H
#define DARKROOM_S3_STREAM_H

#include <stdint.h>

#include "store/store_find.h"

#define S3_FIRST_MAX ((size_t)64 << 10)   /* bytes of the object that come with its head */
#define S3_PART_MAX (UINT64_C(256) << 10) /* bytes of the first part; few objects have others */
/* Of the others, since each costs a request. Further streams get parts of S3_PART_MAX. */
#define S3_LARGE_PART_MAX (UINT64_C(2) << 20)
#define S3_LARGE_PARTS 32 /* streams with such parts at a time */

struct s3_client;
struct s3_stream;

/* Makes a table of the heads that were read last, so that a variant needs one request. A head tells
 * nothing of whether the image still exists: the answer to the next request does, by its entity
 * tag. bytes: of memory, at most. Returns 0 or -ENOMEM; the owner calls free(). */
struct s3_heads;
int s3_heads_new(struct s3_heads **heads, uint64_t bytes);

/* Looks for a file of an image, and fills in *found: found->fd has the first part, or is -errno as
 * of struct s3_op. found->stream has the others, and is NULL if there are none. found->is_spooled
 * stays as it is; if it is set, the store is not away but has no such file. done() is called on the
 * client's thread. Does not block; any thread. */
void s3_stream_find(struct s3_client *c, struct s3_heads *heads, const char *id, const char *name,
                    struct store_found *found, void (*done)(void *arg), void *arg);

/* From now on reads the bytes from `at` to `end` only. While no part is being read; any thread. */
void s3_stream_seek(struct s3_stream *stream, uint64_t at, uint64_t end);

/* Reads the next part into a file of its own, and sets found->fd and found->held. Otherwise as
 * s3_stream_find(). */
void s3_stream_next(struct store_found *found, void (*done)(void *arg), void *arg);

/* Ends it, while no part is being read; any thread. NULL is ignored. */
void s3_stream_free(void *stream);

#endif
