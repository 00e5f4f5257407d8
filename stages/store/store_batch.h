/*
 * store_batch.h - removes images in batches: they become invisible, one flush, then their files go.
 *
 * A loss of power leaves each image whole or invisible. Empty directories of earlier times go, too.
 * One thread for each batch; calls block.
 */
#ifndef DARKROOM_STORE_STORE_BATCH_H
#define DARKROOM_STORE_STORE_BATCH_H

#include "store.h"
#include "store_path.h"

#define STORE_BATCH_MAX 64

struct store_batch {
	struct {
		char id[ULID_LENGTH + 1];
		char in_trash[STORE_PATH_MAX];
	} image[STORE_BATCH_MAX];
	unsigned count;
};

/* Makes an image invisible; the batch must have room. Returns 0, -ENOENT or -errno. */
int store_batch_add(struct store_batch *b, struct store *s, enum store_place place, const char *id);

/* Removes the files of all of them. Returns 0, or -errno: they are invisible, and their files go
 * when the daemon starts. The ids stay in the batch until the caller sets its count to 0. */
int store_batch_end(const struct store_batch *b, struct store *s);

#endif
