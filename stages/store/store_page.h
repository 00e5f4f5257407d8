/*
 * store_page.h - the ids of stored images by time, some at a time.
 *
 * Directories sort by time (store_path.h), so a page reads those that it needs. Images of earlier
 * versions lie in 1024 directories without an order: a page reads all of their names. 200,000 take
 * 0.09 s. Any thread; calls block.
 */
#ifndef DARKROOM_STORE_STORE_PAGE_H
#define DARKROOM_STORE_STORE_PAGE_H

#include <stdbool.h>

#include "ulid.h"

struct store_page {
	char (*id)[ULID_LENGTH + 1]; /* the caller's, `max` of them */
	unsigned max, count;
	bool is_newest_first;
	/* Only ids between these, which are left out. "": no bound. */
	char after[ULID_LENGTH + 1], before[ULID_LENGTH + 1];
};

/* Lists the first `max` images in its order. Images that come or go meanwhile may be missing.
 * Returns 0 or -errno. */
int store_page_read(int root_fd, struct store_page *p);

/* Moves the bound behind the last id, for the next page. */
void store_page_advance(struct store_page *p);

#endif
