/*
 * store_objects.c - finished images as objects of an S3 store (s3/s3_objects.h). Any thread.
 *
 * If the answer to a request is lost, its effect may still come. So a failed image may appear
 * later, but then it is whole. Nothing is removed but by a request that names what is there.
 *
 * [U1] and the like are the steps of the protocol, which tests/model has as well.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sys/random.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/text.h"
#include "log/log.h"
#include "s3/s3_objects.h"
#include "s3/s3_stream.h"
#include "storage.h"
#include "store/stored_image.h"

#define ITEMS_MAX 16 /* of one put() */

static_assert(KEY_RECORD_VERSION_MAX == S3_ETAG_MAX, "a version is an entity tag");

/* ---- putting ---- */

/* Of one put(), each by its item. */
struct putting {
	struct s3_op op[ITEMS_MAX]; /* without a verb: nothing is put */
	struct text head[ITEMS_MAX];
	struct iovec piece[ITEMS_MAX][STORED_FILES_MAX];
	uint64_t expires[ITEMS_MAX]; /* by the store's clock */
};

/* Notes when an image ends, before it can be there. A note without an image does no harm. */
static void begin_note(struct storage *st, struct putting *p, const struct store_item *item,
                       unsigned i)
{
	static const struct iovec content = { (void *)(uintptr_t)S3_NOTE, sizeof S3_NOTE - 1 };

	p->expires[i] = s3_end_there(st->objects, item->expires);
	p->op[i] = (struct s3_op){ .verb = item->expires ? S3_PUT : 0,
		                   .piece = &content,
		                   .piece_count = 1 };
	s3_note_key(p->op[i].key, item->id, p->expires[i]);
}

/* [U2] The id is of this upload: its object is there, or was removed. Or another node, which made
 * the same upload, has failed. Returns 0 or -errno. */
static int look_at_other(struct storage *st, const char *id)
{
	int fate = s3_image_fate(st->objects, id, false);

	return fate == S3_THERE || fate == S3_REMOVED ? 0 : fate < 0 ? fate : -EAGAIN;
}

static void begin_image(struct putting *p, struct store_item *item, unsigned i)
{
	int pieces = item->err ? item->err
	             : s3_id_is_too_old(item->id)
	                     ? -ETIME /* [U3] */
	                     : s3_image_write(&p->head[i], p->piece[i], item, p->expires[i]);

	item->err = pieces < 0 ? pieces : 0;
	p->op[i] = (struct s3_op){ .verb = item->err ? 0 : S3_PUT,
		                   .match = "*",
		                   .piece = p->piece[i],
		                   .piece_count = (unsigned)pieces };
	s3_image_key(p->op[i].key, item->id);
}

static void put(struct storage *st, struct store_item *items, unsigned count)
{
	struct putting *p = count ? pool_get(sizeof *p) : NULL;

	assert(count <= ITEMS_MAX);
	for (unsigned i = 0; i < count; i++) {
		items[i].err = p ? 0 : -ENOMEM;
		if (p)
			begin_note(st, p, &items[i], i);
	}
	if (!p)
		return;
	s3_client_run(st->objects, p->op, count);
	for (unsigned i = 0; i < count; i++) {
		items[i].err = p->op[i].err;
		text_init_growable(&p->head[i], S3_HEAD_MAX + 1);
		begin_image(p, &items[i], i);
	}
	s3_client_run(st->objects, p->op, count); /* [U1] */
	for (unsigned i = 0; i < count; i++) {
		int err = p->op[i].err == -EEXIST ? look_at_other(st, items[i].id) : p->op[i].err;

		if (!items[i].err) /* -ENOENT tells nothing of files */
			items[i].err = err == -ENOENT ? S3_AWAY : err;
		text_fini(&p->head[i]);
	}
	pool_put(p);
}

/* ---- reading ---- */

/* Calls the reader with image.json and a zero behind it. */
static void give_json(struct s3_client *c, struct s3_op *op, storage_reader *reader, void *arg)
{
	const struct s3_section *json;
	struct s3_head head;

	if (s3_head_of(&head, op))
		return;
	json = &head.section[0];
	op->body.data[json->at + json->bytes] = '\0';
	reader(op->body.data + json->at, json->bytes, s3_end_here(c, head.expires), arg);
}

static int read_images(struct storage *st, char (*id)[ULID_LENGTH + 1], unsigned count,
                       storage_reader *reader, void *arg)
{
	struct s3_op *ops = pool_get((count + 1) * sizeof *ops);
	int err = 0;

	assert(count <= STORAGE_READ_MAX);
	if (!ops)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		ops[i] = s3_head_op(id[i]);
	s3_client_run(st->objects, ops, count);
	for (unsigned i = 0; i < count; i++) {
		if (ops[i].err == -ENOENT && !(ops[i].err = storage_adopt(st, id[i]))) {
			ops[i] = s3_head_op(id[i]);
			s3_client_run(st->objects, &ops[i], 1);
		}
		if (!ops[i].err)
			give_json(st->objects, &ops[i], reader, arg);
		else if (ops[i].err != -ENOENT && ops[i].err != S3_IS_REMOVED &&
		         ops[i].err != S3_IS_FAILED)
			err = ops[i].err;
		text_fini(&ops[i].body);
	}
	pool_put(ops);
	return err;
}

static int list_images(struct storage *st, struct store_page *page)
{
	assert(!page->is_newest_first);
	return s3_list_images(st->objects, page);
}

/* ---- removals ---- */

static void forget_expired(struct storage *st, const char *id, uint64_t expires)
{
	char key[S3_KEY_MAX];

	s3_note_key(key, id, expires);
	(void)s3_remove(st->objects, key, ""); /* it is listed again */
}

static int remove_image(struct storage *st, const char *id)
{
	uint64_t bytes;

	return s3_image_remove(st->objects, id, spooling_has(st, id), 0, &bytes);
}

struct due_list {
	struct expiry_due *due;
	unsigned max, count;
	uint64_t now;
};

static int add_due(const struct s3_listed *listed, void *arg)
{
	struct due_list *list = arg;
	struct expiry_due *due = &list->due[list->count];

	if (!expiry_read_name(listed->key + sizeof S3_EXPIRY - 1, due))
		return S3_LIST_FOREIGN;
	if (due->expires > list->now || ++list->count == list->max)
		return S3_LIST_END;
	return S3_LIST_NEXT;
}

static int list_expired(struct storage *st, uint64_t now, struct expiry_due *due, unsigned max)
{
	struct due_list list = { .due = due, .max = max, .now = s3_end_there(st->objects, now) };
	int err = s3_list_keys(st->objects, S3_EXPIRY, max, add_due, &list);

	return err ? err : (int)list.count;
}

static int batch_add(struct storage *st, struct store_batch *b, const char *id, uint64_t due,
                     uint64_t *bytes)
{
	assert(b->count < STORE_BATCH_MAX);
	int err = s3_image_remove(st->objects, id, due != 0, due, bytes);

	b->count += !err;
	return err;
}

/* ---- a GET ---- */

static void find(struct storage *st, const char *id, const char *name, struct store_found *found,
                 void (*done)(void *arg), void *arg)
{
	/* Before the store is asked: an image leaves the spool after it is stored. */
	found->is_spooled = spooling_has(st, id);
	s3_stream_find(st->objects, st->heads, id, name, found, done, arg);
}

/* ---- records of keys ---- */

/* Small objects keys/<64 digits>, named by the hash of the key, with the text of
 * store/key_record.h. A record is put only if nobody else has put one since it was read, so of
 * several nodes one wins. Its version is the entity tag of the object, or "": there was none. */
#define KEYS "keys/"
#define KEY_NAME_LENGTH (2 * (size_t)KEY_RECORD_HASH_SIZE)
#define KEYS_AT_ONCE 1000 /* in a list */

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
		r->age_s = (uint64_t)s3_age(&op, op.modified);
		err = key_record_parse(r, op.body.data, op.body.length);
	}
	text_fini(&op.body);
	return err;
}

static int key_write(struct storage *st, struct key_record *r)
{
	char object[S3_KEY_MAX], match[S3_ETAG_MAX];
	struct text text;

	while (getrandom(&r->created, sizeof r->created, 0) != sizeof r->created)
		; /* no two texts may be the same, because entity tags are of the text */
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
	struct key_record none = *r;

	none.count = 0;
	return key_write(st, &none); /* [K6] */
}

static int fate(struct storage *st, const char *id, bool ends)
{
	return s3_image_fate(st->objects, id, ends);
}

struct old_keys {
	struct s3_client *client;
	time_t age_s;
};

static int remove_old(const struct s3_listed *listed, void *arg)
{
	struct old_keys *old = arg;
	const char *name = listed->key + sizeof KEYS - 1;

	if (strlen(name) != KEY_NAME_LENGTH || strspn(name, "0123456789abcdef") != KEY_NAME_LENGTH)
		return S3_LIST_FOREIGN;
	int err = listed->age_s > old->age_s ? s3_remove(old->client, listed->key, listed->etag)
	                                     : 0; /* [K7] */

	return err && err != -EEXIST ? err : S3_LIST_NEXT;
}

/* Without a condition, a record could go that a client has made again meanwhile. */
static void key_sweep(struct storage *st, unsigned shard, uint64_t before)
{
	struct old_keys old = { st->objects, time(NULL) - (time_t)before };
	char prefix[S3_KEY_MAX];

	if (!atomic_load(&st->objects->has_conditional_removals))
		return;
	snprintf(prefix, sizeof prefix, KEYS "%02x", shard & 0xff);
	int err = s3_list_keys(st->objects, prefix, KEYS_AT_ONCE, remove_old, &old);

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
	.find = find,
	.key_read = key_read,
	.key_write = key_write,
	.key_remove = key_remove,
	.key_sweep = key_sweep,
	.fate = fate,
};
