/* store_files.c - the class of a store of files: passes calls on to store/. Any thread. */
#include <errno.h>
#include <time.h>

#include "storage.h"
#include "store/stored_image.h"

/* ---- images ---- */

static void put(struct storage *st, struct store_item *items, unsigned count)
{
	store_put(st->files, items, count);
}

static int remove_image(struct storage *st, const char *id)
{
	int err = store_remove(st->files, STORE_IMAGES, id);

	store_look(st->files);
	return err;
}

static int read_images(struct storage *st, char (*id)[ULID_LENGTH + 1], unsigned count,
                       storage_reader *reader, void *arg)
{
	char data[STORED_IMAGE_MAX + 1];
	uint64_t expires;
	int err = 0;

	for (unsigned i = 0; i < count; i++) {
		int length = stored_image_load(st->files, id[i], data, &expires);

		if (length >= 0)
			reader(data, (size_t)length, expires, arg);
		else if (length != -ENOENT && length != -EFBIG)
			err = length;
	}
	return err;
}

static int list_images(struct storage *st, struct store_page *page)
{
	return store_page_read(st->files->root_fd, page);
}

/* ---- removals of the sweep ---- */

static int list_expired(struct storage *st, uint64_t now, struct expiry_due *due, unsigned max)
{
	return expiry_list(st->files, now, due, max);
}

static void forget_expired(struct storage *st, const char *id, uint64_t expires)
{
	expiry_forget(st->files, id, expires);
}

static int batch_add(struct storage *st, struct store_batch *b, const char *id, uint64_t due,
                     uint64_t *bytes)
{
	char data[STORED_IMAGE_MAX + 1];
	struct stored_info info;
	uint64_t expires;
	int length = stored_image_load(st->files, id, data, &expires);
	bool is_read = length >= 0 && stored_info_read(&info, data, (size_t)length) == 0;

	(void)due;
	*bytes = is_read ? stored_info_bytes(&info) : 0;
	return store_batch_add(b, st->files, STORE_IMAGES, id);
}

static int batch_end(struct storage *st, const struct store_batch *b)
{
	return store_batch_end(b, st->files);
}

/* ---- a GET ---- */

static void find(struct storage *st, const char *id, const char *name, struct store_found *found,
                 void (*done)(void *arg), void *arg)
{
	(void)done, (void)arg;
	store_find(st->files, id, name, found);
}

/* ---- records of keys ---- */

static int key_read(struct storage *st, struct key_record *r)
{
	int err = key_record_read(st->files, r);
	uint64_t now = (uint64_t)time(NULL);

	r->age_s = !err && now > r->created ? now - r->created : 0;
	return err;
}

/* A loss of power must not leave the record without the failed parts of its upload: their images
 * would be missed, and the others removed. */
static int flush_failed(struct storage *st, const struct key_record *r)
{
	return r->is_settled && r->failed ? store_flush(st->files) : 0;
}

static int key_write(struct storage *st, struct key_record *r)
{
	int err = key_record_write(st->files, r);

	return err ? err : flush_failed(st, r);
}

static int key_remove(struct storage *st, const struct key_record *r)
{
	int err = key_record_remove(st->files, r);

	return err ? err : flush_failed(st, r);
}

static int fate(struct storage *st, const char *id, bool ends)
{
	int has = storage_has(st, id);

	(void)ends;
	return has < 0 ? has : has ? S3_THERE : S3_ABSENT;
}

static void key_sweep(struct storage *st, unsigned shard, uint64_t before)
{
	key_record_sweep(st->files, shard, before);
}

const struct store_class store_of_files = {
	.put = put,
	.remove = remove_image,
	.read = read_images,
	.list = list_images,
	.list_expired = list_expired,
	.forget_expired = forget_expired,
	.batch_add = batch_add,
	.batch_end = batch_end,
	.find = find,
	.key_read = key_read,
	.key_write = key_write,
	.key_remove = key_remove,
	.fate = fate,
	.key_sweep = key_sweep,
};
