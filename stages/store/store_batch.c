/* store_batch.c - one flush for many removals. One thread for each batch; calls block. */
#include "store_batch.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "store_trash.h"

int store_batch_add(struct store_batch *b, struct store *s, enum store_place place, const char *id)
{
	assert(b->count < STORE_BATCH_MAX);
	int err = store_move_to_trash(s, place, id, b->image[b->count].in_trash);

	if (err)
		return err;
	memcpy(b->image[b->count++].id, id, ULID_LENGTH + 1);
	return 0;
}

/* Removes the image's directories of time if they are empty. Those of now are about to be used. */
static void remove_shards(struct store *s, const char *id)
{
	char now[ULID_LENGTH + 1], shard[STORE_PATH_MAX];

	ulid_new(now);
	if (strncmp(id, now, STORE_SPAN_LENGTH + STORE_SHARD_LENGTH) >= 0)
		return;
	store_shard_path(shard, STORE_BY_TIME, id);
	if (unlinkat(s->root_fd, shard, AT_REMOVEDIR))
		return;
	shard[STORE_SPAN_LENGTH] = '\0';
	(void)unlinkat(s->root_fd, shard, AT_REMOVEDIR); /* it stays if it is not empty */
}

int store_batch_end(const struct store_batch *b, struct store *s)
{
	int err = b->count ? store_flush(s) : 0;

	if (err)
		return err;
	for (unsigned i = 0; i < b->count; i++) {
		store_clear_trash(s, b->image[i].in_trash);
		remove_shards(s, b->image[i].id);
	}
	return 0;
}
