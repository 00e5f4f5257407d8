/*
 * store_delete.c - removes the selected images in batches.
 *
 * A daemon that serves the store may run. It knows an image that leaves the spool meanwhile as one
 * that a client has removed. Main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "store/store.h"
#include "store/stored_image.h"
#include "store_query.h"

#define RATE 500 /* images per second unless --rate asks for another */

struct removal {
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	struct store_batch batch;
	uint64_t removed, missing, start_ns;
};

static int end_batch(struct store_query *q, struct removal *r)
{
	int err = store_batch_end(&r->batch, &q->store);

	if (err)
		return store_query_fail("cannot flush the disk", err);
	for (unsigned i = 0; i < r->batch.count; i++)
		puts(r->batch.image[i].id);
	r->removed += r->batch.count;
	r->batch.count = 0;
	store_query_pace(r->start_ns, r->removed, q->rate ? q->rate : RATE);
	return 0;
}

/* Makes the image invisible in that place. Returns 0, -ENOENT or the exit status. */
static int batch(struct store_query *q, struct removal *r, enum store_place place, const char *id)
{
	int status = r->batch.count == STORE_BATCH_MAX ? end_batch(q, r) : 0;
	int err = status ? 0 : store_batch_add(&r->batch, &q->store, place, id);

	return status ? status : err && err != -ENOENT ? store_query_fail(id, err) : err;
}

static int remove_one(struct store_query *q, const char *id, void *arg)
{
	struct removal *r = arg;

	if (q->token && (stored_info_load(&r->info, &q->store, id, r->data) ||
	                 strcmp(r->info.token, q->token) != 0))
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
		store_query_say("%s: does not exist", id);
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
	if (!q->is_dry)
		usage_demand_recount(&q->store);
	int status = store_query_each(q, remove_one, &r);
	int last = end_batch(q, &r);

	if (!q->is_dry) {
		usage_demand_recount(&q->store); /* a count in between has missed the rest */
		store_query_say("%" PRIu64 " image%s removed, %" PRIu64 " did not exist", r.removed,
		                plural(r.removed), r.missing);
	}
	return status ? status : last;
}
