/* storage.c - passes calls on to the store of the configuration. Any thread, unless marked. */
#include "storage.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "problem.h"
#include "s3/s3_orphans.h"
#include "s3/s3_store.h"
#include "store/store_find.h"
#include "store/store_room.h"
#include "store/stored_image.h"
#include "store/stored_info.h"

/* ---- life ---- */

static int open_files(struct image_service *s, const struct conf *conf)
{
	bool survives_power = conf->server.durability == CONF_DURABILITY_POWER;
	int err = store_open(&s->store, conf->server.root, survives_power, &s->leftovers_cleared);

	if (!err && s->leftovers_cleared)
		log_notice("store: cleared %u unfinished or removed images in %s",
		           s->leftovers_cleared, conf->server.root);
	return err;
}

int storage_open(struct image_service *s, const struct conf *conf)
{
	int err = open_files(s, conf);

	if (err)
		return err;
	if (conf->store.kind == CONF_STORE_S3)
		err = s3_store_open(&s->s3, conf, s->store.incoming_fd);
	if (!err)
		err = spooling_init(s, conf);
	if (err)
		storage_close(s);
	return err;
}

void storage_close(struct image_service *s)
{
	spooling_fini(s);
	s3_store_close(s->s3);
	s->s3 = NULL;
	store_close(&s->store);
}

int storage_start(struct image_service *s)
{
	int err = s->s3 ? s3_store_start(s->s3) : 0;

	return err ? err : spooling_start(s);
}

void storage_stop(struct image_service *s)
{
	s3_store_stop(s->s3); /* which ends what the other thread waits for */
	spooling_stop(s);
}

int storage_tick(struct image_service *s)
{
	if (!s->s3)
		return -1;
	s3_store_check_secret(s->s3);
	return STORAGE_TICK_MS;
}

/* ---- problems ---- */

bool storage_set_problem(int err, struct problem *p)
{
	if (err != S3_AWAY && err != S3_DAMAGED && err != -EBUSY && err != -ECANCELED &&
	    err != SPOOLING_FULL)
		return false;
	problem_set(p, 503, "storage-unavailable",
	            err == S3_DAMAGED      ? "the store's answers are damaged"
	            : err == -EBUSY        ? "too many requests wait for the store"
	            : err == SPOOLING_FULL ? "the spool has store.s3_spool_bytes"
	                                   : "the store does not answer");
	return true;
}

bool storage_is_away(const struct image_service *s)
{
	return s->s3 && s3_store_is_away(s->s3);
}

bool storage_takes(struct image_service *s, uint64_t floor, bool is_spooled, struct problem *p)
{
	uint64_t free_bytes;
	bool needs_files = !s->s3 || (is_spooled && spooling_bridges(s));

	if (storage_is_away(s) && !needs_files)
		return !storage_set_problem(S3_AWAY, p);
	if (s->s3 && needs_files && !spooling_takes(s, p))
		return false;
	if (!needs_files || floor == 0 || store_has_room(&s->store, floor, &free_bytes))
		return true;
	problem_set_free_bytes(p, floor, free_bytes);
	return false;
}

/* ---- images ---- */

uint64_t storage_look(struct image_service *s, enum store_place place)
{
	return s->s3 && place != STORE_SPOOL ? UINT64_MAX : store_look(&s->store);
}

bool storage_holds(struct image_service *s, const struct image *image, struct problem *p)
{
	int err = image->is_spooled ? spooling_hold(s, image->id) : 0;

	if (!err || storage_set_problem(err, p))
		return !err;
	log_notice("image %s: another node has %s it; it is not stored by this one", image->id,
	           err == -ENOENT ? "removed" : "taken");
	problem_set(p, 503, "not-ready", "another node has the image: %s", strerror(-err));
	return false;
}

bool storage_splits(const struct image_service *s)
{
	return s->s3 != NULL;
}

void storage_put(struct image_service *s, struct store_item *items, unsigned count)
{
	if (!s->s3)
		store_put(&s->store, items, count);
	else if (count && items[0].place == STORE_SPOOL)
		spooling_put(s, items, count);
	else
		s3_store_put(s->s3, items, count);
}

int storage_remove_stored(struct image_service *s, const char *id)
{
	return s->s3 ? s3_store_remove(s->s3, id) : store_remove(&s->store, STORE_IMAGES, id);
}

/* It may be in the spool and in the store. */
int storage_remove(struct image_service *s, const char *id)
{
	if (storage_is_away(s))
		return S3_AWAY;
	int spool_err = spooling_remove(s, id), image_err = storage_remove_stored(s, id);

	if (!s->s3)
		store_look(&s->store);
	if (spool_err && spool_err != -ENOENT)
		return spool_err;
	return image_err == -ENOENT ? spool_err : image_err;
}

static int read_objects(struct image_service *s, char (*id)[ULID_LENGTH + 1], unsigned count,
                        storage_reader *reader, void *arg)
{
	struct s3_image image[STORAGE_READ_MAX];
	int err = 0;

	for (unsigned i = 0; i < count; i++)
		image[i] = (struct s3_image){ .id = id[i] };
	if ((err = s3_store_read(s->s3, image, count)))
		return err;
	for (unsigned i = 0; i < count; i++) {
		if (!image[i].err)
			reader(image[i].json.data, image[i].json.length, image[i].expires, arg);
		else if (image[i].err != -ENOENT)
			err = image[i].err;
		text_fini(&image[i].json);
	}
	return err;
}

static void note_image(const char *data, size_t length, uint64_t expires, void *arg)
{
	(void)data, (void)length, (void)expires;
	*(int *)arg = 1;
}

int storage_has(struct image_service *s, const char *id)
{
	char ids[1][ULID_LENGTH + 1];
	int has = 0;

	if (!s->s3)
		return store_has_image(&s->store, id);
	memcpy(ids[0], id, sizeof ids[0]);
	int err = read_objects(s, ids, 1, note_image, &has);

	return err ? err : has;
}

static void read_file(struct image_service *s, const char *id, storage_reader *reader, void *arg)
{
	char data[STORED_IMAGE_MAX + 1], tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = store_open_file(&s->store, id, STORED_IMAGE, &size);

	if (fd < 0)
		return;
	int length = stored_image_read(fd, data);
	uint64_t expires = store_tag(fd, tag);

	close(fd);
	if (length >= 0)
		reader(data, (size_t)length, expires, arg);
}

int storage_read(struct image_service *s, char (*id)[ULID_LENGTH + 1], unsigned count,
                 storage_reader *reader, void *arg)
{
	assert(count <= STORAGE_READ_MAX);
	if (s->s3)
		return read_objects(s, id, count, reader, arg);
	for (unsigned i = 0; i < count; i++)
		read_file(s, id[i], reader, arg);
	return 0;
}

int storage_list(struct image_service *s, struct store_page *page)
{
	return s->s3 ? s3_store_list(s->s3, page) : store_page_read(s->store.root_fd, page);
}

/* ---- removals of the sweep ---- */

int storage_list_expired(struct image_service *s, uint64_t now, struct expiry_due *due,
                         unsigned max)
{
	return s->s3 ? s3_store_list_expired(s->s3, now, due, max)
	             : expiry_list(&s->store, now, due, max);
}

void storage_forget_expired(struct image_service *s, const char *id, uint64_t expires)
{
	if (s->s3)
		s3_store_forget_expired(s->s3, id, expires);
	else
		expiry_forget(&s->store, id, expires);
}

int storage_batch_add(struct image_service *s, struct store_batch *b, const char *id)
{
	if (!s->s3)
		return store_batch_add(b, &s->store, STORE_IMAGES, id);
	assert(b->count < STORE_BATCH_MAX);
	int err = s3_store_remove(s->s3, id);

	b->count += !err;
	return err;
}

int storage_batch_end(struct image_service *s, const struct store_batch *b)
{
	return s->s3 ? 0 : store_batch_end(b, &s->store);
}

static bool is_not_stored_yet(void *arg, const char *id)
{
	struct image_service *s = arg;
	uint32_t width, height;

	return inflight_find(&s->inflight, id, &width, &height) || spooling_has_file(s, id);
}

int storage_remove_orphans(struct image_service *s, struct s3_orphans *o)
{
	return !s->s3 || storage_is_away(s) ? 0 : s3_orphans_remove(s->s3, o, is_not_stored_yet, s);
}
