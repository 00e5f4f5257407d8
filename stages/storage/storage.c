/* storage.c - opens the store of the configuration, and has what both classes have in common: the
 * spool and lists. */
#include "storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/json_reader.h"
#include "base/round.h"
#include "log/log.h"
#include "s3/s3_client.h"
#include "s3/s3_former.h"
#include "s3/s3_objects.h"
#include "s3/s3_stream.h"
#include "store/directory.h"
#include "store/spool.h"
#include "store/stored_image.h"

#define BLOCK_SIZE 4096 /* of most file systems; a directory and a note take one each */
#define HEADS_SHARE 64  /* of limits.memory_budget that one of the heads of images may take */
#define HIDDEN 10       /* characters of an id, with 50 random bits */
#define TEXT_MAX ((size_t)STORED_LIST_MAX * (STORED_IMAGE_MAX + 2))

static_assert(STORED_LIST_MAX <= STORAGE_READ_MAX, "a page is read at once");

/* ---- bytes of the spool ---- */

/* Returns what an original takes. So the limit is also one of the number of images. */
static uint64_t cost_of(uint64_t size)
{
	return round_up(size, BLOCK_SIZE) + 2 * (uint64_t)BLOCK_SIZE;
}

static int count_files(struct storage *st)
{
	DIR *dir = directory_list(st->files->spool_fd, ".");
	uint64_t size = 0;
	const char *id;
	int err = dir ? 0 : -errno;

	while (dir && (id = directory_next_id(dir)))
		if (spool_size(st->files, id, &size) == 0)
			st->spooling.bytes += cost_of(size);
	if (dir)
		closedir(dir);
	else
		log_error("spool: cannot list it: %s", strerror(-err));
	return err;
}

bool spooling_is_needed(const struct storage *st, const struct conf *conf)
{
	return st->class->is_shared || conf->server.durability != CONF_DURABILITY_NONE;
}

/* Takes bytes for an image. Returns false if there is no room. */
static bool reserve(struct storage *st, uint64_t cost)
{
	if (!st->spooling.has_limit)
		return true;
	/* Relaxed: only the number matters. */
	uint64_t before =
		atomic_fetch_add_explicit(&st->spooling.bytes, cost, memory_order_relaxed);

	if (before + cost <= st->spooling.max_bytes)
		return true;
	atomic_fetch_sub_explicit(&st->spooling.bytes, cost, memory_order_relaxed);
	return false;
}

static void release(struct storage *st, uint64_t cost)
{
	if (st->spooling.has_limit)
		atomic_fetch_sub_explicit(&st->spooling.bytes, cost, memory_order_relaxed);
}

/* Returns the bytes that are released when the image leaves the spool. */
static uint64_t reserved_for(struct storage *st, const char *id)
{
	uint64_t size = 0;

	return st->spooling.has_limit && spool_size(st->files, id, &size) == 0 ? cost_of(size) : 0;
}

/* ---- spooled images ---- */

/* The original is the first file of an item. */
static uint64_t item_cost(const struct store_item *item)
{
	return cost_of(item->file[0].size);
}

static void put_reserved(struct storage *st, struct store_item *items, unsigned count)
{
	if (count)
		store_put(st->files, items, count);
	for (unsigned i = 0; i < count; i++)
		if (items[i].err)
			release(st, item_cost(&items[i]));
}

/* As store_put(), or the error is SPOOLING_FULL. */
static void spooling_put(struct storage *st, struct store_item *items, unsigned count)
{
	unsigned first = 0;

	for (unsigned i = 0; i < count; i++) {
		if (reserve(st, item_cost(&items[i])))
			continue;
		put_reserved(st, items + first, i - first);
		items[i].err = SPOOLING_FULL;
		first = i + 1;
	}
	put_reserved(st, items + first, count - first);
}

int spooling_end(struct storage *st, const char *id)
{
	uint64_t bytes = reserved_for(st, id);
	int err = store_unspool(st->files, id);

	if (!err)
		release(st, bytes);
	if (err == -ENOENT)
		err = st->class->remove(st, id);
	return err == -ENOENT ? 0 : err; /* removed in the same batch */
}

int spooling_remove(struct storage *st, const char *id)
{
	uint64_t bytes;

	if (!st->spooling.is_on)
		return -ENOENT;
	bytes = reserved_for(st, id);
	int err = store_remove(st->files, STORE_SPOOL, id);

	if (!err)
		release(st, bytes);
	return err;
}

bool spooling_has(struct storage *st, const char *id)
{
	return st->spooling.is_on && store_is_spooled(st->files, id);
}

int spooling_quarantine(struct storage *st, const char *id, const char *why)
{
	uint64_t bytes = reserved_for(st, id);
	int err = spool_quarantine(st->files, id, why);

	if (!err)
		release(st, bytes);
	return err;
}

/* ---- life ---- */

int storage_open(struct storage *st, struct store *files, const struct conf *conf,
                 unsigned *cleared)
{
	int err = store_open(files, conf->server.root,
	                     conf->server.durability == CONF_DURABILITY_POWER, cleared);

	if (err)
		return err;
	if (*cleared)
		log_notice("store: cleared %u unfinished or removed images in %s", *cleared,
		           conf->server.root);
	*st = (struct storage){ .class = &store_of_files, .files = files };
	if (conf->store.kind == CONF_STORE_S3) {
		st->class = &store_of_objects;
		err = s3_client_open(&st->objects, conf);
		if (!err)
			err = s3_heads_new(&st->heads, conf->limits.memory_budget / HEADS_SHARE);
	}
	struct spooling *spooling = &st->spooling;

	spooling->has_limit = st->class->is_shared && conf->store.s3_spool == CONF_SPOOL_FILE;
	spooling->is_on = !st->class->is_shared || spooling->has_limit;
	spooling->max_bytes = conf->store.s3_spool_bytes;
	if (!err && spooling->has_limit)
		err = count_files(st);
	if (err)
		storage_close(st);
	return err;
}

void storage_close(struct storage *st)
{
	s3_client_close(st->objects);
	free(st->heads);
	st->objects = NULL;
	st->heads = NULL;
	store_close(st->files);
}

int storage_tick(struct storage *st)
{
	if (!st->objects)
		return -1;
	s3_client_check_keys(st->objects);
	return STORAGE_TICK_MS;
}

/* ---- room ---- */

bool storage_is_away(const struct storage *st)
{
	return st->objects &&
	       (s3_is_away(&st->objects->counters) || !atomic_load(&st->objects->is_fit));
}

int storage_check_room(struct storage *st, uint64_t floor, bool is_spooled, uint64_t *free_bytes)
{
	bool needs_files = !st->class->is_shared || (is_spooled && st->spooling.is_on);

	if (!needs_files)
		return atomic_load(&st->objects->counters.is_away[S3_WRITES]) ||
		                       !atomic_load(&st->objects->is_fit)
		               ? S3_AWAY
		               : 0;
	if (st->spooling.has_limit &&
	    atomic_load_explicit(&st->spooling.bytes, memory_order_relaxed) >=
	            st->spooling.max_bytes)
		return SPOOLING_FULL;
	return floor == 0 || store_has_room(st->files, floor, free_bytes) ? 0 : -ENOSPC;
}

uint64_t storage_look(struct storage *st, bool is_spooled)
{
	return is_spooled || !st->class->is_shared ? store_look(st->files) : UINT64_MAX;
}

/* ---- images ---- */

int storage_examine(struct storage *st)
{
	if (!storage_is_away(st))
		return 0;
	bool was_fit = atomic_load(&st->objects->is_fit);
	int err = s3_probe(st->objects);

	if (was_fit)
		return err ? S3_AWAY : 0;
	if (!err)
		err = s3_former_look(st->objects);
	if (!err)
		atomic_store(&st->objects->is_fit, true);
	if (!err && st->is_doubtful)
		log_notice("store: it has conditional PUTs; storing images");
	else if (err && err != -EOPNOTSUPP && !st->is_doubtful)
		log_warning("store: it does not tell whether it has conditional PUTs: %s; storing "
		            "no image until it does",
		            strerror(-err));
	st->is_doubtful = err != 0;
	return err && err != -EOPNOTSUPP ? S3_AWAY : err;
}

void storage_put(struct storage *st, struct store_item *items, unsigned count)
{
	if (st->class->is_shared && count && items[0].place == STORE_SPOOL)
		spooling_put(st, items, count);
	else
		st->class->put(st, items, count);
}

int storage_remove(struct storage *st, const char *id)
{
	if (storage_is_away(st))
		return S3_AWAY;
	/* A spooled image may still come into an S3 store, so it is removed there first. Of files,
	 * recovery takes one out of the spool, and puts it back into the store. */
	int image_err = st->class->is_shared ? st->class->remove(st, id) : 0;

	if (image_err && image_err != -ENOENT)
		return image_err;
	int spool_err = spooling_remove(st, id); /* [D4] */

	if (!st->class->is_shared)
		image_err = st->class->remove(st, id);
	if (spool_err && spool_err != -ENOENT)
		return spool_err;
	return image_err == -ENOENT ? spool_err : image_err;
}

/* Calls `reader` with the image.json of one image, as the class's read(). */
static int read_one(struct storage *st, const char *id, storage_reader *reader, void *arg)
{
	char ids[1][ULID_LENGTH + 1];

	memcpy(ids[0], id, sizeof ids[0]);
	return st->class->read(st, ids, 1, reader, arg);
}

int storage_adopt(struct storage *st, const char *id)
{
	int copied = st->objects ? s3_former_copy(st->objects, id) : -ENOENT;

	return copied < 0 ? copied : 0;
}

static void note_image(const char *data, size_t length, uint64_t expires, void *arg)
{
	(void)data, (void)length, (void)expires;
	*(int *)arg = 1;
}

int storage_has(struct storage *st, const char *id)
{
	int has = 0, err = read_one(st, id, note_image, &has);

	return err ? err : has;
}

/* ---- a GET ---- */

bool storage_find_cached(struct storage *st, const char *id, const char *name,
                         struct store_found *found)
{
	return !st->class->is_shared && store_find_cached(st->files, id, name, found);
}

static int compare_names(const void *a, const void *b)
{
	const struct stored_file *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void explain(const char *data, size_t length, uint64_t expires, void *explanation)
{
	struct storage_explanation *e = explanation;
	uint64_t end = storage_image_end(e->storage, e->id, expires, e->max_age_ms);
	char label[CONF_FILE_NAME_MAX];
	struct stored_info info;
	struct text list;

	if ((end && (uint64_t)time(NULL) >= end) || stored_info_read(&info, data, length))
		return; /* though its files may not be removed yet */
	e->exists = true;
	snprintf(label, sizeof label, "%.*s", (int)strcspn(e->label, "."), e->label);
	e->is_skipped = stored_image_says_skipped(data, length, label);
	qsort(info.file, info.file_count, sizeof info.file[0], compare_names);
	text_init(&list, e->variants, sizeof e->variants);
	for (unsigned i = 0; i < info.file_count; i++) {
		stored_file_label(label, info.file[i].name);
		if (strcmp(label, e->label) == 0)
			e->is_lost = true;
		else if (strcmp(info.file[i].name, STORE_ORIGINAL) != 0)
			text_printf(&list, "%s%s", list.length ? ", " : "", label);
	}
}

uint64_t storage_image_end(const struct storage *st, const char *id, uint64_t expires,
                           uint64_t max_age_ms)
{
	uint64_t there = s3_end_there(st->objects, expires);

	return s3_end_here(st->objects, stored_image_end(id, there, max_age_ms));
}

int storage_explain(struct storage *st, struct storage_explanation *e)
{
	e->storage = st;
	int err = read_one(st, e->id, explain, e);

	e->has_original = !st->class->is_shared && store_has_file(st->files, e->id, STORE_ORIGINAL);
	e->is_lost = e->is_lost && !st->class->is_shared; /* there a removal takes some time */
	return err || e->exists ? err : -ENOENT;
}

/* ---- lists ---- */

/* Appends an image, unless it is damaged or its time is over. */
static void append(const char *data, size_t length, uint64_t expires, void *arg)
{
	struct text *images = arg;

	if ((expires && expires <= (uint64_t)time(NULL)) || !json_reader_check(data, length) ||
	    !stored_image_is_sound(data, length))
		return;
	size_t visible = stored_image_public(data, length);

	text_puts(images, images->length > 1 ? ",\n" : "");
	text_put(images, data, visible);
	text_puts(images, visible < length ? "}" : "");
}

static void append_own(const char *data, size_t length, uint64_t expires, void *arg)
{
	struct stored_list *list = arg;

	if (!list->owner || stored_image_is_of(data, length, list->owner))
		append(data, length, expires, &list->images);
}

int stored_list_append(struct text *images, struct storage *st, const char *id)
{
	size_t before = images->length;
	int err = read_one(st, id, append, images);

	return err ? err : images->length > before;
}

int stored_list_make(struct stored_list *list, struct storage *st)
{
	list->page.id = list->id;
	text_init_growable(&list->images, TEXT_MAX);
	text_puts(&list->images, "[");
	int err = st->class->list(st, &list->page);
	if (!err) {
		err = st->class->read(st, list->id, list->page.count, append_own, list);
		/* An image of files that cannot be read is left out, as a damaged one. */
		err = st->class->is_shared ? err : 0;
	}
	if (err)
		return err;
	text_puts(&list->images, "]");
	list->has_more = list->page.count == list->page.max;
	if (list->has_more)
		memcpy(list->last, list->id[list->page.count - 1], sizeof list->last);
	/* It may be an image of another token, and an id is enough to read an image. */
	if (list->has_more && list->owner)
		memset(list->last + ULID_LENGTH - HIDDEN, list->page.is_newest_first ? '0' : 'Z',
		       HIDDEN);
	return list->images.overflowed ? -ENOMEM : 0;
}
