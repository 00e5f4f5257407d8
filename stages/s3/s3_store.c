/* s3_store.c - images as several operations of the client. */
#include "s3_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "log/log.h"
#include "s3_objects.h"
#include "store/stored_image.h"
#include "store/stored_info.h"

/* ---- putting ---- */

static const char note[] = "expires\n"; /* some stores refuse an empty object */

static void set_put(struct s3_op *op, const void *data, size_t size, const char *sum,
                    uint64_t expires)
{
	op->verb = S3_PUT;
	op->data = data;
	op->size = size;
	if (expires)
		snprintf(op->tag, sizeof op->tag, "%.*s.%0*" PRIu64, CHECKSUM_LENGTH, sum,
		         S3_SECOND_LENGTH, expires % S3_SECONDS);
	else
		snprintf(op->tag, sizeof op->tag, "%.*s", CHECKSUM_LENGTH, sum);
}

static bool is_image_json(const struct store_file *file)
{
	return strcmp(file->name, STORED_IMAGE) == 0;
}

/* Writes an operation for each file but image.json, and for the note. Returns their number. */
static unsigned list_files(struct s3_op *ops, const struct store_item *item)
{
	unsigned n = 0;

	if (item->expires) {
		char sum[CHECKSUM_LENGTH + 1];

		checksum_of(note, sizeof note - 1, sum);
		s3_expiry_key(ops[n].key, item->id, item->expires);
		ops[n].type = "text/plain";
		set_put(&ops[n++], note, sizeof note - 1, sum, 0);
	}
	for (unsigned i = 0; i < item->file_count; i++) {
		const struct store_file *file = &item->file[i];

		if (is_image_json(file))
			continue;
		s3_file_key(ops[n].key, item->id, file->name);
		ops[n].type = "image/jpeg";
		set_put(&ops[n++], file->data, file->size, file->sum, item->expires);
	}
	return n;
}

/* The same for image.json. */
static unsigned list_image(struct s3_op *ops, const struct store_item *item)
{
	unsigned n = 0;

	for (unsigned i = 0; i < item->file_count; i++) {
		const struct store_file *file = &item->file[i];

		if (!is_image_json(file))
			continue;
		s3_image_key(ops[n].key, item->id);
		ops[n].type = "application/json";
		set_put(&ops[n++], file->data, file->size, file->sum, item->expires);
	}
	return n;
}

/* Makes operations that remove what list_files() and list_image() have put. */
static void turn_into_removals(struct s3_op *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct s3_op removal = { .verb = S3_DELETE, .is_once = true };

		memcpy(removal.key, ops[i].key, sizeof removal.key);
		ops[i] = removal;
	}
}

static void end_ops(struct s3_op *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		text_fini(&ops[i].body);
}

/* Removes what an item has put, as far as that is possible now. Image.json may be there although
 * its answer said otherwise; the files stay then, because it may also come later. */
static void withdraw(struct s3_store *s, struct s3_op *ops, unsigned count,
                     const struct store_item *item)
{
	unsigned failed = 0;

	if (s3_store_is_away(s) || count == 0)
		return;
	turn_into_removals(ops, count);
	s3_client_run(s->client, ops, count);
	for (unsigned i = 0; i < count; i++)
		failed += ops[i].err != 0;
	end_ops(ops, count);
	if (failed)
		log_warning(
			"image %s: cannot remove %u objects of the failed image; they stay, and "
			"are not visible",
			item->id, failed);
}

/* Runs what `list` lists for each item without an error. Sets the error of items that fail, and
 * removes what they have put. */
static void put_phase(struct s3_store *s, struct s3_op *ops, struct store_item *items,
                      unsigned count, unsigned (*list)(struct s3_op *, const struct store_item *))
{
	unsigned first[S3_STORE_ITEMS_MAX + 1] = { 0 };

	for (unsigned i = 0; i < count; i++)
		first[i + 1] = first[i] + (items[i].err ? 0 : list(ops + first[i], &items[i]));
	s3_client_run(s->client, ops, first[count]);
	end_ops(ops, first[count]);
	for (unsigned i = 0; i < count; i++) {
		int err = 0;

		for (unsigned k = first[i]; k < first[i + 1] && !err; k++)
			err = ops[k].err;
		if (!err)
			continue;
		items[i].err = err;
		withdraw(s, ops + first[i], first[i + 1] - first[i], &items[i]);
	}
}

void s3_store_put(struct s3_store *s, struct store_item *items, unsigned count)
{
	unsigned files = 0;

	assert(count <= S3_STORE_ITEMS_MAX);
	for (unsigned i = 0; i < count; i++)
		files += items[i].file_count + 1; /* and the note */
	size_t size = files * sizeof(struct s3_op);
	struct s3_op *ops = count ? pool_get(size) : NULL;

	for (unsigned i = 0; i < count; i++)
		items[i].err = ops ? 0 : -ENOMEM;
	if (!ops)
		return;
	memset(ops, 0, size);
	put_phase(s, ops, items, count, list_files);
	memset(ops, 0, size);
	put_phase(s, ops, items, count, list_image);
	pool_put(ops);
}

/* ---- reading ---- */

int s3_store_read(struct s3_store *s, struct s3_image *images, unsigned count)
{
	struct s3_op *ops = pool_get((count + 1) * sizeof *ops);

	if (!ops)
		return -ENOMEM;
	memset(ops, 0, (count + 1) * sizeof *ops);
	for (unsigned i = 0; i < count; i++) {
		ops[i].verb = S3_GET;
		ops[i].body_max = STORED_IMAGE_MAX;
		s3_image_key(ops[i].key, images[i].id);
	}
	s3_client_run(s->client, ops, count);
	for (unsigned i = 0; i < count; i++) {
		images[i].err = ops[i].err;
		images[i].json = ops[i].body;
		images[i].expires = ops[i].err ? 0 : s3_tag_expires(ops[i].tag);
	}
	pool_put(ops);
	return 0;
}

void s3_store_url(struct s3_store *s, const char *id, const char *name, struct text *url)
{
	char key[S3_KEY_MAX];

	s3_file_key(key, id, name);
	s3_client_presign(s->client, key, S3_STORE_URL_SECONDS, url);
}

/* ---- removing ---- */

/* Removes the objects. Returns 0 or the error of one. */
static int remove_objects(struct s3_store *s, struct s3_op *ops, unsigned count)
{
	int err = 0;

	s3_client_run(s->client, ops, count);
	for (unsigned i = 0; i < count; i++)
		err = ops[i].err ? ops[i].err : err;
	end_ops(ops, count);
	return err;
}

/* Removes the files of an image, and its note, and then its image.json. */
static int remove_image(struct s3_store *s, const char *id, const struct stored_info *info,
                        uint64_t expires)
{
	struct s3_op ops[CONF_VARIANT_MAX + 2];
	unsigned n = 0;

	memset(ops, 0, sizeof ops);
	for (; n < info->file_count; n++) {
		char name[CONF_NAME_MAX + 8];

		snprintf(name, sizeof name, "%s.jpg", info->file[n].name);
		s3_file_key(ops[n].key, id, name);
		ops[n].verb = S3_DELETE;
	}
	if (expires) {
		s3_expiry_key(ops[n].key, id, expires);
		ops[n++].verb = S3_DELETE;
	}
	int err = remove_objects(s, ops, n);

	if (err)
		return err;
	memset(ops, 0, sizeof ops[0]);
	ops[0].verb = S3_DELETE;
	s3_image_key(ops[0].key, id);
	return remove_objects(s, ops, 1);
}

int s3_store_remove(struct s3_store *s, const char *id)
{
	struct stored_info info;
	struct s3_image image = { .id = id };
	int err = s3_store_read(s, &image, 1);

	if (err)
		return err;
	err = image.err;
	if (!err)
		err = stored_info_read(&info, image.json.data, image.json.length);
	if (!err)
		err = remove_image(s, id, &info, image.expires);
	text_fini(&image.json);
	return err;
}

void s3_store_forget_expired(struct s3_store *s, const char *id, uint64_t expires)
{
	struct s3_op op = { .verb = S3_DELETE };

	s3_expiry_key(op.key, id, expires);
	(void)remove_objects(s, &op, 1); /* it is listed again */
}

/* ---- life ---- */

void s3_store_check_secret(struct s3_store *s)
{
	struct s3_secret secret;
	int err = s3_secret_read(s->secret_path, &secret);

	if (err && !s->has_secret_failed)
		log_error("store.s3_credentials: cannot read %s: %s; the earlier keys stay",
		          s->secret_path,
		          err == -EINVAL ? "expected aws_access_key_id and aws_secret_access_key"
		                         : strerror(-err));
	s->has_secret_failed = err != 0;
	if (!err && memcmp(&secret, &s->secret, sizeof secret) != 0) {
		bool is_first = !*s->secret.id;

		s->secret = secret;
		s3_client_set_secret(s->client, &secret);
		if (!is_first)
			log_notice(
				"store.s3_credentials: the keys have changed; using the new ones");
	}
	explicit_bzero(&secret, sizeof secret);
}

int s3_store_open(struct s3_store **out, const struct conf *conf, int directory_fd)
{
	struct s3_store *s = calloc(1, sizeof *s);

	*out = s;
	if (!s)
		return -ENOMEM;
	memcpy(s->secret_path, conf->store.s3_credentials, sizeof s->secret_path);
	int err = s3_client_new(&s->client, conf, directory_fd);

	if (err)
		return err;
	s3_store_check_secret(s);
	return s->has_secret_failed ? -EACCES : 0;
}

int s3_store_start(struct s3_store *s)
{
	return s3_client_start(s->client);
}

void s3_store_stop(struct s3_store *s)
{
	if (s)
		s3_client_stop(s->client);
}

void s3_store_close(struct s3_store *s)
{
	if (!s)
		return;
	s3_client_free(s->client);
	explicit_bzero(&s->secret, sizeof s->secret);
	free(s);
}

bool s3_store_is_away(struct s3_store *s)
{
	return s3_client_is_away(s->client);
}

const struct s3_counters *s3_store_counters(const struct s3_store *s)
{
	return s3_client_counters(s->client);
}
