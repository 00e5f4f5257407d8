/* spooling.c - passes calls on to the spool, and counts bytes. */
#include "spooling.h"

#include <errno.h>
#include <string.h>

#include "base/round.h"
#include "conf/conf.h"
#include "image_service.h"
#include "log/log.h"
#include "problem.h"
#include "s3/s3_spool.h"
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

static int count_files(struct image_service *s)
{
	int err = spool_each_size(&s->store, add_cost, &s->spooling);

	if (err)
		log_error("spool: cannot list it: %s", strerror(-err));
	return err;
}

int spooling_init(struct image_service *s, const struct conf *conf)
{
	struct spooling *spooling = &s->spooling;
	bool has_objects = conf->store.kind == CONF_STORE_S3;

	spooling->has_limit = has_objects && conf->store.s3_spool == CONF_SPOOL_FILE;
	spooling->has_files = !has_objects || spooling->has_limit;
	spooling->max_bytes = conf->store.s3_spool_bytes;
	if (spooling->has_limit)
		return count_files(s);
	if (!has_objects || conf->store.s3_spool != CONF_SPOOL_S3)
		return 0;
	int err = s3_spool_open(&spooling->s3, s->s3, conf);

	if (err)
		log_error("spool: cannot make it: %s", strerror(-err));
	return err;
}

void spooling_fini(struct image_service *s)
{
	s3_spool_close(s->spooling.s3);
	s->spooling.s3 = NULL;
}

int spooling_start(struct image_service *s)
{
	return s->spooling.s3 ? s3_spool_start(s->spooling.s3) : 0;
}

void spooling_stop(struct image_service *s)
{
	s3_spool_stop(s->spooling.s3);
}

bool spooling_exists(const struct image_service *s)
{
	return s->spooling.has_files || s->spooling.s3;
}

bool spooling_is_on(const struct image_service *s)
{
	return s->spooling.has_files || (s->spooling.s3 && s3_spool_works(s->spooling.s3));
}

bool spooling_bridges(const struct image_service *s)
{
	return s->spooling.has_files;
}

bool spooling_is_needed(const struct image_service *s, const struct conf *conf)
{
	return s->s3 || conf->server.durability != CONF_DURABILITY_NONE;
}

bool spooling_takes(struct image_service *s, struct problem *p)
{
	uint64_t bytes = atomic_load_explicit(&s->spooling.bytes, memory_order_relaxed);

	return !s->spooling.has_limit || bytes < s->spooling.max_bytes ||
	       !storage_set_problem(SPOOLING_FULL, p);
}

/* ---- the bytes ---- */

/* Takes bytes for an image. Returns false if there is no room. */
static bool reserve(struct image_service *s, uint64_t cost)
{
	if (!s->spooling.has_limit)
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
	if (s->spooling.has_limit)
		atomic_fetch_sub_explicit(&s->spooling.bytes, cost, memory_order_relaxed);
}

/* Calls a function that takes the image out of the spool. */
static int take_out(struct image_service *s, const char *id,
                    int (*function)(struct store *store, const char *id, const void *arg),
                    const void *arg)
{
	uint64_t size = 0;
	bool is_counted = s->spooling.has_limit && spool_size(&s->store, id, &size) == 0;
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

	if (s->spooling.s3) {
		s3_spool_put(s->spooling.s3, items, count);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		if (reserve(s, item_cost(&items[i])))
			continue;
		put_reserved(s, items + first, i - first);
		items[i].err = SPOOLING_FULL;
		first = i + 1;
	}
	put_reserved(s, items + first, count - first);
}

int spooling_hold(struct image_service *s, const char *id)
{
	return s->spooling.s3 ? s3_spool_hold(s->spooling.s3, id) : 0;
}

int spooling_end(struct image_service *s, const char *id)
{
	int err = s->spooling.s3 ? s3_spool_end(s->spooling.s3, id)
	                         : take_out(s, id, call_unspool, NULL);

	if (err == -ENOENT) {
		err = storage_remove_stored(s, id);
		if (s->spooling.s3 && (!err || err == -ENOENT)) /* the last that knows of it */
			err = s3_spool_forget(s->spooling.s3, id);
	}
	/* Removed in the same batch, or another node ends it. */
	return err == -ENOENT || err == -ESTALE ? 0 : err;
}

void spooling_release(struct image_service *s, const char *id)
{
	if (s->spooling.s3)
		s3_spool_release(s->spooling.s3, id);
}

int spooling_remove(struct image_service *s, const char *id)
{
	if (s->spooling.s3)
		return s3_spool_remove(s->spooling.s3, id);
	return s->spooling.has_files ? take_out(s, id, call_remove, NULL) : -ENOENT;
}

bool spooling_has_file(struct image_service *s, const char *id)
{
	return s->spooling.has_files && store_is_spooled(&s->store, id);
}

int spooling_has(struct image_service *s, const char *id)
{
	return s->spooling.s3 ? s3_spool_has(s->spooling.s3, id) : spooling_has_file(s, id);
}

/* ---- for recovery ---- */

static bool is_in_flight(void *arg, const char *id)
{
	struct image_service *s = arg;
	uint32_t width, height;

	return inflight_find(&s->inflight, id, &width, &height);
}

int spooling_list(struct image_service *s, struct spooling_list *list, bool *has_more)
{
	int n = s->spooling.s3 ? s3_spool_list(s->spooling.s3, list->image, list->max, list->after,
	                                       is_in_flight, s)
	                       : spool_list(&s->store, list->image, list->max);

	*has_more = s->spooling.s3 ? list->after[0] != '\0' : n == (int)list->max;
	return n;
}

static int known_as_absent(int err)
{
	return err == -ESTALE ? -ENOENT : err;
}

int spooling_open(struct image_service *s, const char *id, uint64_t *size,
                  struct spool_names *names)
{
	return s->spooling.s3 ? known_as_absent(s3_spool_take(s->spooling.s3, id, size, names))
	                      : spool_open(&s->store, id, size, names);
}

int spooling_set_attempts(struct image_service *s, const char *id, unsigned attempts)
{
	return s->spooling.s3 ? known_as_absent(s3_spool_set_attempts(s->spooling.s3, id, attempts))
	                      : spool_set_attempts(&s->store, id, attempts);
}

int spooling_quarantine(struct image_service *s, const char *id, const char *why)
{
	return s->spooling.s3 ? known_as_absent(s3_spool_quarantine(s->spooling.s3, id))
	                      : take_out(s, id, call_quarantine, why);
}

int spooling_clear(struct image_service *s, const char *id)
{
	return s->spooling.s3 ? known_as_absent(s3_spool_clear(s->spooling.s3, id))
	                      : take_out(s, id, call_remove, NULL);
}

int spooling_interval_ms(struct image_service *s)
{
	return s->spooling.s3 ? (int)s3_spool_interval_ms(s->spooling.s3) : -1;
}
