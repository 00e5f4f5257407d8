/*
 * store_objects.c - finished images as objects of an S3 store (s3/s3_objects.h). Any thread.
 *
 * If the answer to a request is lost, its effect may still come. So a failed image may appear
 * later, but then it is whole; and objects of one may stay that are never visible.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/text.h"
#include "log/log.h"
#include "s3/s3_objects.h"
#include "s3/s3_stream.h"
#include "storage.h"
#include "store/checksum.h"
#include "store/stored_image.h"

#define ITEMS_MAX 16 /* of one put() */
#define URL_SECONDS 300

static_assert(KEY_RECORD_VERSION_MAX == S3_ETAG_MAX, "a version is an entity tag");

/* ---- putting ---- */

static const char note[] = "expires\n"; /* some stores refuse an empty object */

static void set_put(struct s3_op *op, const char *type, const struct store_file *file,
                    uint64_t expires)
{
	op->verb = S3_PUT;
	op->type = type;
	op->data = file->data;
	op->size = file->size;
	store_tag_write(op->tag, file->sum, expires);
}

static void write_expiry_key(char key[S3_KEY_MAX], const char *id, uint64_t expires)
{
	char name[EXPIRY_NAME_MAX];

	expiry_write_name(name, id, expires);
	snprintf(key, S3_KEY_MAX, S3_EXPIRY "%s", name);
}

/* Writes an operation for each file but image.json, and for the note; or for image.json alone.
 * Returns their number. */
static unsigned list_puts(struct s3_op *ops, const struct store_item *item, bool is_json)
{
	char sum[CHECKSUM_LENGTH + 1];
	unsigned n = 0;

	if (item->expires && !is_json) {
		checksum_of(note, sizeof note - 1, sum);
		write_expiry_key(ops[n].key, item->id, item->expires);
		set_put(&ops[n++], "text/plain",
		        &(struct store_file){ .data = note, .size = sizeof note - 1, .sum = sum },
		        0);
	}
	for (unsigned i = 0; i < item->file_count; i++) {
		const struct store_file *file = &item->file[i];

		if ((strcmp(file->name, STORED_IMAGE) == 0) != is_json)
			continue;
		s3_file_key(ops[n].key, item->id, file->name);
		set_put(&ops[n++], is_json ? "application/json" : "image/jpeg", file,
		        item->expires);
	}
	return n;
}

/* Removes what an item has put, as far as that is possible now. Image.json may be there although
 * its answer said otherwise; the files stay then, because it may also come later. */
static void withdraw(struct storage *st, struct s3_op *ops, unsigned count, const char *id)
{
	unsigned removed;

	if (s3_client_is_away(st->objects) || count == 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		struct s3_op removal = { .is_once = true };

		memcpy(removal.key, ops[i].key, sizeof removal.key);
		ops[i] = removal;
	}
	s3_remove_all(st->objects, ops, count, &removed);
	if (removed < count)
		log_warning(
			"image %s: cannot remove %u object%s of the failed image, which nobody sees",
			id, count - removed, plural(count - removed));
}

/* Makes one of the two steps for each item without an error. Sets the error of items that fail, and
 * removes what they have put. */
static void put_step(struct storage *st, struct s3_op *ops, struct store_item *items,
                     unsigned count, bool is_json)
{
	unsigned first[ITEMS_MAX + 1] = { 0 };

	for (unsigned i = 0; i < count; i++)
		first[i + 1] = first[i] +
		               (items[i].err ? 0 : list_puts(ops + first[i], &items[i], is_json));
	s3_client_run(st->objects, ops, first[count]);
	for (unsigned i = 0; i < count; i++) {
		int err = 0;

		for (unsigned k = first[i]; k < first[i + 1]; k++) {
			err = err ? err : ops[k].err;
			text_fini(&ops[k].body);
		}
		if (!err)
			continue;
		items[i].err = err;
		withdraw(st, ops + first[i], first[i + 1] - first[i], items[i].id);
	}
}

/* Note and files come first, then image.json, which makes the image visible. */
static void put(struct storage *st, struct store_item *items, unsigned count)
{
	unsigned files = 0;

	assert(count <= ITEMS_MAX);
	for (unsigned i = 0; i < count; i++)
		files += items[i].file_count + 1; /* and the note */
	size_t size = files * sizeof(struct s3_op);
	struct s3_op *ops = count ? pool_get(size) : NULL;

	for (unsigned i = 0; i < count; i++)
		items[i].err = ops ? 0 : -ENOMEM;
	for (unsigned is_json = 0; ops && is_json < 2; is_json++) {
		memset(ops, 0, size);
		put_step(st, ops, items, count, is_json);
	}
	pool_put(ops);
}

/* ---- reading ---- */

static int read_images(struct storage *st, char (*id)[ULID_LENGTH + 1], unsigned count,
                       storage_reader *reader, void *arg)
{
	struct s3_op *ops = pool_get((count + 1) * sizeof *ops);
	int err = 0;

	assert(count <= STORAGE_READ_MAX);
	if (!ops)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		ops[i] = (struct s3_op){ .verb = S3_GET, .body_max = STORED_IMAGE_MAX };
		s3_file_key(ops[i].key, id[i], STORED_IMAGE);
	}
	s3_client_run(st->objects, ops, count);
	for (unsigned i = 0; i < count; i++) {
		if (!ops[i].err)
			reader(ops[i].body.data, ops[i].body.length, store_tag_expires(ops[i].tag),
			       arg);
		else if (ops[i].err != -ENOENT)
			err = ops[i].err;
		text_fini(&ops[i].body);
	}
	pool_put(ops);
	return err;
}

static bool add_to_page(const char *key, time_t modified, void *arg)
{
	struct store_page *page = arg;
	const char *id = key + sizeof S3_IMAGES - 1;

	(void)modified;
	if (!ulid_is_valid(id, strlen(id)))
		return true;
	if (page->before[0] && strcmp(id, page->before) >= 0)
		return false;
	memcpy(page->id[page->count++], id, ULID_LENGTH + 1);
	return page->count < page->max;
}

static int list_images(struct storage *st, struct store_page *page)
{
	char after[S3_KEY_MAX] = "";

	assert(!page->is_newest_first);
	page->count = 0;
	if (page->after[0])
		s3_file_key(after, page->after, STORED_IMAGE);
	return s3_list_keys(st->objects, S3_IMAGES, after, page->max, add_to_page, page);
}

/* ---- removals ---- */

struct removing {
	struct storage *st;
	const char *id;
	int err;
};

/* Removes the files of an image, and its note, and then its image.json. So an interrupted removal
 * is repeated by the next one. */
static void remove_one(const char *data, size_t length, uint64_t expires, void *arg)
{
	struct removing *r = arg;
	struct s3_op ops[CONF_VARIANT_MAX + 2] = { 0 };
	struct stored_info info;
	unsigned n = 0, removed;

	r->err = stored_info_read(&info, data, length);
	if (r->err)
		return;
	for (; n < info.file_count; n++)
		s3_file_key(ops[n].key, r->id, info.file[n].name);
	if (expires)
		write_expiry_key(ops[n++].key, r->id, expires);
	r->err = s3_remove_all(r->st->objects, ops, n, &removed);
	if (r->err)
		return;
	s3_file_key(ops[0].key, r->id, STORED_IMAGE);
	r->err = s3_remove(r->st->objects, ops[0].key);
}

static int remove_image(struct storage *st, const char *id)
{
	struct removing r = { st, id, -ENOENT };
	int err = storage_read(st, id, remove_one, &r);

	return err ? err : r.err;
}

struct due_list {
	struct expiry_due *due;
	unsigned max, count;
	uint64_t now;
};

static bool add_due(const char *key, time_t modified, void *arg)
{
	struct due_list *list = arg;
	struct expiry_due *due = &list->due[list->count];

	(void)modified;
	if (!expiry_read_name(key + sizeof S3_EXPIRY - 1, due))
		return true;
	if (due->expires > list->now)
		return false;
	return ++list->count < list->max;
}

static int list_expired(struct storage *st, uint64_t now, struct expiry_due *due, unsigned max)
{
	struct due_list list = { .due = due, .max = max, .now = now };
	int err = s3_list_keys(st->objects, S3_EXPIRY, "", max, add_due, &list);

	return err ? err : (int)list.count;
}

static void forget_expired(struct storage *st, const char *id, uint64_t expires)
{
	char key[S3_KEY_MAX];

	write_expiry_key(key, id, expires);
	(void)s3_remove(st->objects, key); /* it is listed again */
}

static int batch_add(struct storage *st, struct store_batch *b, const char *id)
{
	assert(b->count < STORE_BATCH_MAX);
	int err = remove_image(st, id);

	b->count += !err;
	return err;
}

static int batch_end(struct storage *st, const struct store_batch *b)
{
	(void)st, (void)b;
	return 0;
}

/* ---- a GET ---- */

static void find(struct storage *st, const char *id, const char *name, struct store_found *found,
                 void (*done)(void *arg), void *arg)
{
	/* Before the store is asked: an image leaves the spool after it is stored. */
	found->is_spooled = spooling_has(st, id);
	s3_stream_find(st->objects, id, name, found, done, arg);
}

static void url(struct storage *st, const char *id, const char *variant, struct text *to)
{
	char name[CONF_NAME_MAX + sizeof ".jpg"], key[S3_KEY_MAX];

	snprintf(name, sizeof name, "%s.jpg", variant);
	s3_file_key(key, id, name);
	s3_client_presign(st->objects, key, URL_SECONDS, to);
}

/* ---- records of keys ---- */

/* Small objects keys/<64 digits>, named by the hash of the key, with the text of
 * store/key_record.h. A record is put only if nobody else has put one since it was read, so of
 * several nodes one wins. Its version is the entity tag of the object, or "": there was none. */
#define KEYS "keys/"

static void object_key(char object[S3_KEY_MAX], const struct key_record *r)
{
	char name[2 * KEY_RECORD_HASH_SIZE + 1];

	key_record_name(r, name);
	snprintf(object, S3_KEY_MAX, KEYS "%s", name);
}

static int key_read(struct storage *st, struct key_record *r)
{
	struct s3_op op = { .verb = S3_GET, .body_max = KEY_RECORD_TEXT_MAX };

	r->version[0] = '\0';
	object_key(op.key, r);
	s3_client_run(st->objects, &op, 1);
	int err = op.err;

	if (!err) {
		memcpy(r->version, op.etag, S3_ETAG_MAX); /* also of a damaged one, to replace it */
		err = key_record_parse(r, op.body.data, op.body.length);
	}
	text_fini(&op.body);
	return err;
}

static int key_write(struct storage *st, struct key_record *r)
{
	char object[S3_KEY_MAX], match[S3_ETAG_MAX];
	struct text text;
	int err = key_record_format(r, &text);

	object_key(object, r);
	snprintf(match, sizeof match, "%s", r->version[0] ? r->version : "*");
	if (!err)
		err = s3_put_if(st->objects, object, text.data, text.length, match, r->version);
	text_fini(&text);
	return err == -ENOENT ? -EEXIST : err; /* another node has removed it */
}

static int key_remove(struct storage *st, const struct key_record *r)
{
	char object[S3_KEY_MAX];

	object_key(object, r);
	return s3_remove(st->objects, object);
}

static void key_sweep(struct storage *st, unsigned shard, uint64_t before)
{
	char prefix[S3_KEY_MAX];

	snprintf(prefix, sizeof prefix, KEYS "%02x", shard & 0xff);
	int err = s3_remove_old(st->objects, prefix, (time_t)before);

	if (err)
		log_warning(
			"expire: cannot remove old records of Idempotency-Keys: %s; trying again "
			"after a round of all of them",
			strerror(-err));
}

const struct store_class store_of_objects = {
	.is_shared = true,
	.put = put,
	.remove = remove_image,
	.read = read_images,
	.list = list_images,
	.list_expired = list_expired,
	.forget_expired = forget_expired,
	.batch_add = batch_add,
	.batch_end = batch_end,
	.find = find,
	.url = url,
	.key_read = key_read,
	.key_write = key_write,
	.key_remove = key_remove,
	.key_sweep = key_sweep,
};
