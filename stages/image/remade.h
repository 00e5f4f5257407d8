/*
 * remade.h - a stored image that gets variants from its original again.
 *
 * It goes through the same stages as an upload, with its id. Only the variants that are asked for
 * are made, by the plan of all, so they have the bytes that an upload would give them. disk_write
 * then exchanges the image's directory for one with the new files and links to the others: a GET
 * sees the old files or the new ones. An image that is removed meanwhile stays removed.
 */
#ifndef DARKROOM_IMAGE_REMADE_H
#define DARKROOM_IMAGE_REMADE_H

#include <stdbool.h>
#include <stddef.h>

#include "overload.h"
#include "store/checksum.h"
#include "store/remake_queue.h"
#include "store/stored_image.h"
#include "upload.h"

struct image;
struct image_service;
struct image_sums;
struct missing_slot;
struct remake_slot;
struct store_item;
struct text;

/* The size of a remade image counts this many times, so that uploads come first. */
#define REMADE_WEIGHT 64

/* What an image in flight needs of its stored files. */
struct remade {
	struct remake_slot *slot;     /* of remake.h, or */
	struct missing_slot *missing; /* of missing.h */
	int directory_fd;
	char original_sum[CHECKSUM_LENGTH + 1];
	bool is_gone;     /* removed since it began; set by disk_write */
	bool is_stale;    /* remade by another one since it began; set by disk_write */
	bool is_complete; /* the image then has all variants as configured */
	uint64_t expires; /* seconds since 1970; 0: never */
	uint64_t bytes;   /* of its files so far */
	char token[UPLOAD_TOKEN_MAX];
	size_t length;
	char document[STORED_IMAGE_MAX + 1]; /* its image.json, with a zero */
};

/* NULL is ignored. Any thread. */
void remade_free(struct remade *r);

struct remade_order {
	const char *id;
	const struct remake_entry *entry; /* which variants */
	struct remake_slot *slot;         /* of remake.h, or */
	struct missing_slot *missing;     /* of missing.h */
};

/*
 * Reads the original and starts the image. Returns 0 if it is started. Otherwise starts nothing and
 * returns REMADE_COMPLETE, or -errno:
 *   -ENOENT    there is no such image
 *   -ENODATA   it has no original
 *   -EBADMSG   its image.json or its original is damaged
 *   -EFBIG     the original is larger than limits.memory_budget allows
 *   -EALREADY  an image with this id is in flight
 *   -EAGAIN    there is no room now
 * Blocks. The threads of remake.h and missing.h.
 */
#define REMADE_COMPLETE 1
int remade_start(struct image_service *s, const struct remade_order *order);

/* Makes the item replace the image. data: the new image.json, with a zero. */
void remade_set_item(struct store_item *item, const struct remade *r, const char *data,
                     size_t length);

/* Writes the image.json of a remade image: the former one, with other variants. */
void remade_record_write(struct text *t, const struct image *image, const struct image_sums *sums);

#endif
