/*
 * s3_image.h - the object of an image: one text with a map, and the files behind it. Pure
 * functions: any thread.
 *
 *	image 1 00003174 0000000000 1c2f5f8a1f4e9f0a1c2f5f8a1f4e9f0a
 *	image.json 228 2946 7f6f...
 *	thumb.jpg 3174 2210 03ab...
 *	original.jpg 5384 2890123 9a0c...
 *
 *	{"id": ...
 *
 * The first line has the bytes of the head, when the image ends (seconds since 1970 by the store's
 * clock; 0: never), and the checksum of the head behind that line. A line for each file has its
 * place in the object, its bytes and its checksum. An empty line ends the map. image.json follows
 * and ends the head; the other files follow without gaps, small ones first, the original last. So
 * the beginning of an object tells all of an image, and often has the variant that is wanted.
 * darkroom-store(7) describes it for readers.
 */
#ifndef DARKROOM_S3_IMAGE_H
#define DARKROOM_S3_IMAGE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/uio.h>

#include "base/text.h"
#include "store/store.h"
#include "store/stored_image.h"

#define S3_IMAGES "image/"
#define S3_IMAGE_SHARDS 256
#define S3_IMAGE_KEY_MAX 36            /* "image/XX/ID", with the zero */
#define S3_HEAD_MAX ((size_t)24 << 10) /* bytes of a head, at most */

/* What an image is replaced by when it is removed, for S3_TOMBSTONE_AGE_S at least: by then no
 * request of its upload can still take effect. */
#define S3_TOMBSTONE "removed 1\n"
/* What takes the place of an image that was never made, so that it cannot come later; it stays for
 * the same time. */
#define S3_FAILED "failed 1 \n"
#define S3_TOMBSTONE_AGE_S (30 * 86400)

/* A file in an object. */
struct s3_section {
	char name[STORED_NAME_MAX];
	uint64_t at, bytes;
	char sum[CHECKSUM_LENGTH + 1];
};

struct s3_head {
	uint64_t length;  /* bytes */
	uint64_t expires; /* 0: never */
	unsigned count;
	struct s3_section section[STORED_FILES_MAX]; /* the first one is image.json */
};

/* Writes the key of an image: its shard is of the SHA-256 of the id, so that keys of one time are
 * spread. */
void s3_image_key(char key[S3_IMAGE_KEY_MAX], const char *id);

/* Lists the content of an object in the order of its bytes: the head, which is appended to the
 * growable text, and then the item's files, which are borrowed. Returns the number of pieces, or
 * -EFBIG or -ENOMEM. */
int s3_image_write(struct text *head, struct iovec piece[STORED_FILES_MAX],
                   const struct store_item *item, uint64_t expires);

/* An id that is older may have had a tombstone that is gone: nothing is put for it. It is a day
 * less, so that no request is still on its way then. */
#define S3_ID_AGE_MAX_S (S3_TOMBSTONE_AGE_S - 86400)

/* Returns whether nothing may be put for the id any more, by this node's clock alone. */
bool s3_id_is_too_old(const char *id);

/* Reads the head of an image, with a zero behind the data, of an object of `total` bytes. Returns
 * 0; S3_IS_REMOVED or S3_IS_FAILED for a mark; or -EBADMSG, also if it is of another image. */
int s3_head_read(struct s3_head *head, const char *id, const char *data, size_t length,
                 uint64_t total);
#define S3_IS_REMOVED (-EIDRM)
#define S3_IS_FAILED (-ENODATA)

/* Returns the file with that name, or NULL. It is in *head. */
const struct s3_section *s3_head_find(const struct s3_head *head, const char *name);

#endif
