/*
 * store_delete.c - removes images in batches: they become invisible, one flush, then their files
 * go.
 *
 * A power loss leaves each image whole or invisible. A daemon that serves the store may run. It
 * knows an image that leaves the spool meanwhile as one that a client has removed. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store_commands.h"
#include "store_path.h"
#include "store_query.h"
#include "store_trash.h"
#include "stored_image.h"
#include "stored_info.h"

#define BATCH_MAX 64
#define RATE 500 /* images per second unless --rate asks for another */

struct removal {
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	struct {
		char id[ULID_LENGTH + 1];
		char in_trash[STORE_PATH_MAX];
	} batch[BATCH_MAX];
	unsigned batched;
	uint64_t removed, missing, start_ns;
};

/* Waits until that many images are allowed since the start. */
static void pace(const struct store_query *q, const struct removal *r)
{
	uint64_t rate = q->rate ? q->rate : RATE;
	uint64_t due = r->start_ns + r->removed * NS_PER_S / rate, now = clock_ns();

	if (now < due) {
		const struct timespec wait = { .tv_sec = (time_t)((due - now) / NS_PER_S),
			                       .tv_nsec = (long)((due - now) % NS_PER_S) };

		nanosleep(&wait, NULL);
	}
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

static int end_batch(struct store_query *q, struct removal *r)
{
	int err = r->batched ? store_flush(&q->store) : 0;

	if (err) /* they are invisible, and the daemon clears the trash when it starts */
		return store_query_fail("cannot flush the disk", err);
	for (unsigned i = 0; i < r->batched; i++) {
		store_clear_trash(&q->store, r->batch[i].in_trash);
		remove_shards(&q->store, r->batch[i].id);
		puts(r->batch[i].id);
	}
	r->removed += r->batched;
	r->batched = 0;
	pace(q, r);
	return 0;
}

/* Makes the image invisible in that place. */
static int batch(struct store_query *q, struct removal *r, enum store_place place, const char *id)
{
	if (r->batched == BATCH_MAX) {
		int status = end_batch(q, r);

		if (status)
			return status;
	}
	int err = store_move_to_trash(&q->store, place, id, r->batch[r->batched].in_trash);

	if (err == -ENOENT)
		return err;
	if (err)
		return store_query_fail(id, err);
	memcpy(r->batch[r->batched++].id, id, ULID_LENGTH + 1);
	return 0;
}

static bool has_token(struct store_query *q, struct removal *r, const char *id)
{
	return stored_info_load(&r->info, &q->store, id, r->data) == 0 &&
	       strcmp(r->info.token, q->token) == 0;
}

static int remove_one(struct store_query *q, const char *id, void *arg)
{
	struct removal *r = arg;

	if (q->token && !has_token(q, r, id))
		return 0;
	if (q->is_dry) {
		puts(id);
		return 0;
	}
	int spooled = batch(q, r, STORE_SPOOL, id);

	if (spooled > 0)
		return spooled;
	int stored = batch(q, r, STORE_IMAGES, id);

	if (stored > 0)
		return stored;
	if (spooled == -ENOENT && stored == -ENOENT) {
		fprintf(stderr, "darkroomd store: %s: does not exist\n", id);
		r->missing++;
	}
	return 0;
}

int store_delete(struct store_query *q)
{
	static struct removal r;

	r = (struct removal){ .start_ns = clock_ns() };
	if (q->word_count == 0 && !q->ids_path && !q->before[0] && !q->after[0] && !q->token)
		return store_query_usage(
			"remove: expected ids, --ids FILE, --before TIME, --since TIME or --token NAME");
	int status = store_query_each(q, remove_one, &r);
	int last = end_batch(q, &r);

	if (!q->is_dry)
		fprintf(stderr,
		        "darkroomd store: %" PRIu64 " images removed, %" PRIu64 " did not exist\n",
		        r.removed, r.missing);
	return status ? status : last;
}
