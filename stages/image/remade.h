/*
 * remade.h - a stored image that gets variants from its original again, while it is in flight.
 *
 * It goes through the same stages as an upload, with its id. Only the variants that are asked for
 * are made, by the plan of all, so they have the bytes that an upload would give them. disk_write
 * then exchanges the image's directory for one with the new files and links to the others: a GET
 * sees the old files or the new ones. An image that is removed meanwhile stays removed.
 * background/remake.h starts it. Any thread.
 */
#ifndef DARKROOM_IMAGE_REMADE_H
#define DARKROOM_IMAGE_REMADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/checksum.h"
#include "store/stored_image.h"
#include "upload.h"

struct image;
struct image_sums;
struct store_item;
struct text;

/* The size of a remade image counts this many times, so that uploads come first. */
#define REMADE_WEIGHT 64

/* What an image in flight needs of its stored files. */
struct remade {
	int directory_fd;
	char original_sum[CHECKSUM_LENGTH + 1];
	bool is_gone;            /* removed since it began; set by disk_write */
	bool is_stale;           /* remade by another one since it began; set by disk_write */
	bool is_complete;        /* the image then has all variants as configured */
	uint64_t expires;        /* seconds since 1970; 0: never */
	struct stored_info info; /* of its document */
	size_t length;
	char document[STORED_IMAGE_MAX + 1]; /* its image.json, with a zero */
};

/* Makes the item replace the image. data: the new image.json, with a zero. */
void remade_set_item(struct store_item *item, const struct remade *r, const char *data,
                     size_t length);

/* Writes the image.json of a remade image: the former one, with other variants. */
void remade_record_write(struct text *t, const struct image *image, const struct image_sums *sums);

#endif
