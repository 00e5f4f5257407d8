/*
 * stored_list.h - one page of the list of stored images, as JSON. May block: disk_write makes it.
 */
#ifndef DARKROOM_IMAGE_STORED_LIST_H
#define DARKROOM_IMAGE_STORED_LIST_H

#include <stdbool.h>

#include "base/text.h"
#include "store/store_page.h"

struct image_service;

#define STORED_LIST_MAX 100 /* images */

struct stored_list {
	struct store_page page; /* its order, bounds and `max` are the request */
	char id[STORED_LIST_MAX][ULID_LENGTH + 1];
	/* the result: a JSON array of what GET /images/{id} responds */
	struct text images; /* growable; the owner calls text_fini() */
	bool has_more;
	char last[ULID_LENGTH + 1]; /* behind which the next page begins */
};

/* Appends what GET /images/{id} responds to an open JSON array. Returns 1; or 0 if the image is
 * removed, damaged or expired, and nothing is appended; or -errno if the store cannot tell. */
int stored_list_append(struct text *images, struct image_service *s, const char *id);

/* Fills in the result. Such images are left out. Returns 0 or -errno. */
int stored_list_make(struct stored_list *list, struct image_service *s);

#endif
