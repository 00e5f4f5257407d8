/*
 * s3_heads.h - the heads of images that this node has read last, so that a variant needs one
 * request. Any thread.
 *
 * A head that is known tells nothing of whether the image still exists: the store's answer to the
 * next request does, by its entity tag.
 */
#ifndef DARKROOM_S3_HEADS_H
#define DARKROOM_S3_HEADS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "s3_client.h"
#include "s3_image.h"
#include "store/ulid.h"

struct s3_known_head {
	char id[ULID_LENGTH + 1];
	char etag[S3_ETAG_MAX]; /* of the object */
	time_t modified;
	struct s3_head head;
};

/* Makes a table. bytes: of memory, at most. Returns 0 or -ENOMEM. */
int s3_heads_new(struct s3_heads **heads, uint64_t bytes);
void s3_heads_free(struct s3_heads *heads); /* NULL is ignored */

/* Copies the head of known->id. Returns whether it is known. */
bool s3_heads_find(struct s3_heads *heads, struct s3_known_head *known);

/* Keeps a copy, which may replace another one. */
void s3_heads_keep(struct s3_heads *heads, const struct s3_known_head *known);

#endif
