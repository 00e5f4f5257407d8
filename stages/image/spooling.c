/* spooling.c - passes calls on to the spool, and counts bytes. */
#include "spooling.h"

#include <errno.h>
#include <string.h>

#include "base/round.h"
#include "conf/conf.h"
#include "image_service.h"
#include "log/log.h"
#include "problem.h"
#include "storage.h"

#define BLOCK_SIZE 4096 /* of most file systems; a directory and a note take one each */

/* Returns what an original takes. So the limit is also one of the number of images. */
static uint64_t cost_of(uint64_t size)
{
	return round_up(size, BLOCK_SIZE) + 2 * (uint64_t)BLOCK_SIZE;
}

static void add_cost(void *arg, uint64_t size)
{
	struct spooling *spooling = arg;

	atomic_fetch_add_explicit(&spooling->bytes, cost_of(size), memory_order_relaxed);
}

int spooling_init(struct image_service *s, const struct conf *conf)
{
	struct spooling *spooling = &s->spooling;
	bool has_objects = conf->store.kind == CONF_STORE_S3;

	spooling->is_on = !has_objects || conf->store.s3_spool == CONF_SPOOL_FILE;
	spooling->max_bytes = has_objects ? conf->store.s3_spool_bytes : UINT64_MAX;
	atomic_init(&spooling->bytes, 0);
	int err = has_objects ? spool_each_size(&s->store, add_cost, spooling) : 0;

	if (err)
		log_error("spool: cannot list it: %s", strerror(-err));
	return err;
}

bool spooling_is_on(const struct image_service *s)
{
	return s->spooling.is_on;
}

bool spooling_is_needed(const struct image_service *s, const struct conf *conf)
{
	return s->s3 || conf->server.durability != CONF_DURABILITY_NONE;
}

bool spooling_takes(struct image_service *s, struct problem *p)
{
	uint64_t bytes = atomic_load_explicit(&s->spooling.bytes, memory_order_relaxed);

	return bytes < s->spooling.max_bytes || !storage_set_problem(SPOOLING_FULL, p);
}

/* ---- the bytes ---- */

static bool has_limit(const struct image_service *s)
{
	return s->spooling.max_bytes != UINT64_MAX;
}

/* Takes bytes for an image. Returns false if there is no room. */
static bool reserve(struct image_service *s, uint64_t cost)
{
	if (!has_limit(s))
		return true;
	/* Relaxed: only the number matters. */
	uint64_t before = atomic_fetch_add_explicit(&s->spooling.bytes, cost, memory_order_relaxed);

	if (before + cost <= s->spooling.max_bytes)
		return true;
	atomic_fetch_sub_explicit(&s->spooling.bytes, cost, memory_order_relaxed);
	return false;
}

static void release(struct image_service *s, uint64_t cost)
{
	if (has_limit(s))
		atomic_fetch_sub_explicit(&s->spooling.bytes, cost, memory_order_relaxed);
}

/* Calls a function that takes the image out of the spool. */
static int take_out(struct image_service *s, const char *id,
                    int (*function)(struct store *store, const char *id, const void *arg),
                    const void *arg)
{
	uint64_t size = 0;
	bool is_counted = has_limit(s) && spool_size(&s->store, id, &size) == 0;
	int err = function(&s->store, id, arg);

	if (!err && is_counted)
		release(s, cost_of(size));
	return err;
}

static int call_remove(struct store *store, const char *id, const void *arg)
{
	(void)arg;
	return store_remove(store, STORE_SPOOL, id);
}

static int call_unspool(struct store *store, const char *id, const void *arg)
{
	(void)arg;
	return store_unspool(store, id);
}

static int call_quarantine(struct store *store, const char *id, const void *arg)
{
	return spool_quarantine(store, id, arg);
}

/* ---- images ---- */

/* The original is the first file of an item. */
static uint64_t item_cost(const struct store_item *item)
{
	return cost_of(item->file[0].size);
}

static void put_reserved(struct image_service *s, struct store_item *items, unsigned count)
{
	if (count)
		store_put(&s->store, items, count);
	for (unsigned i = 0; i < count; i++)
		if (items[i].err)
			release(s, item_cost(&items[i]));
}

void spooling_put(struct image_service *s, struct store_item *items, unsigned count)
{
	unsigned first = 0;

	for (unsigned i = 0; i < count; i++) {
		if (reserve(s, item_cost(&items[i])))
			continue;
		put_reserved(s, items + first, i - first);
		items[i].err = SPOOLING_FULL;
		first = i + 1;
	}
	put_reserved(s, items + first, count - first);
}

int spooling_remove(struct image_service *s, const char *id)
{
	return take_out(s, id, call_remove, NULL);
}

int spooling_end(struct image_service *s, const char *id)
{
	int err = take_out(s, id, call_unspool, NULL);

	if (err == -ENOENT)
		err = storage_remove_stored(s, id);
	return err == -ENOENT ? 0 : err; /* removed in the same batch */
}

int spooling_quarantine(struct image_service *s, const char *id, const char *why)
{
	return take_out(s, id, call_quarantine, why);
}
