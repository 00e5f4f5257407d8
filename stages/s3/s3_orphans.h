/*
 * s3_orphans.h - removes objects of images that were never stored, because their node ended while
 * it put them, or could not remove them.
 *
 * A pass looks at one list of S3_ORPHANS_KEYS objects and removes those of S3_ORPHANS_IMAGES images
 * at most; the next pass continues behind it. An object counts only from S3_ORPHANS_AGE_S on, by
 * the store's time of it, so no upload is still at it. Of the spool, an original with a lease
 * stays, however old it is: it was acknowledged. One thread; calls block.
 */
#ifndef DARKROOM_S3_ORPHANS_H
#define DARKROOM_S3_ORPHANS_H

#include <stdbool.h>

#include "s3_client.h"
#include "store/ulid.h"

#define S3_ORPHANS_KEYS 1000
#define S3_ORPHANS_IMAGES 16
#define S3_ORPHANS_AGE_S (7 * 86400)

struct s3_store;

/* Where the next pass begins. Zeroed: at the beginning. */
struct s3_orphans {
	bool is_in_spool; /* among spooled uploads, not among files */
	char after[S3_KEY_MAX];
};

/* Makes a pass. is_known(): the image may still be stored. Returns the objects removed, or -errno.
 */
int s3_orphans_remove(struct s3_store *s, struct s3_orphans *o,
                      bool (*is_known)(void *arg, const char *id), void *arg);

#endif
