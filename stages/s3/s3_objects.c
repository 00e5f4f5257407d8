/* s3_objects.c - names of objects, lists of them, and single ones. Any thread; most of it blocks.
 */
#include "s3_objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "s3_list.h"
#include "store/checksum.h"
#include "store/stored_image.h"

#define IMAGES "image/"
#define FILES "file/"
#define EXPIRY "expiry/"
#define LIST_MAX 1000                     /* keys in one answer */
#define LIST_BODY_MAX (UINT64_C(2) << 20) /* bytes of it */

void s3_image_key(char key[S3_KEY_MAX], const char *id)
{
	snprintf(key, S3_KEY_MAX, IMAGES "%.*s", ULID_LENGTH, id);
}

void s3_file_key(char key[S3_KEY_MAX], const char *id, const char *name)
{
	if (strcmp(name, STORED_IMAGE) == 0)
		s3_image_key(key, id);
	else
		snprintf(key, S3_KEY_MAX, FILES "%.*s/%s", ULID_LENGTH, id, name);
}

void s3_expiry_key(char key[S3_KEY_MAX], const char *id, uint64_t expires)
{
	snprintf(key, S3_KEY_MAX, EXPIRY "%0*" PRIu64 ".%.*s", S3_SECOND_LENGTH,
	         expires % S3_SECONDS, ULID_LENGTH, id);
}

uint64_t s3_tag_expires(const char *tag)
{
	return strlen(tag) > CHECKSUM_LENGTH ? strtoull(tag + CHECKSUM_LENGTH + 1, NULL, 10) : 0;
}

/* ---- lists ---- */

int s3_list_keys(struct s3_store *s, const char *prefix, const char *after, unsigned max,
                 s3_key_reader *each, void *arg)
{
	struct s3_op op = { .verb = S3_LIST };
	char key[S3_KEY_MAX + CONF_TEXT_MAX];
	bool has_more = true;
	int err = 0;

	snprintf(op.key, sizeof op.key, "%s", prefix);
	snprintf(op.after, sizeof op.after, "%s", after);
	op.max = max < LIST_MAX ? max : LIST_MAX;
	op.body_max = LIST_BODY_MAX;
	size_t cut = s3_client_prefix_length(s->client);

	while (has_more && !err) {
		struct s3_list list;

		s3_client_run(s->client, &op, 1);
		err = op.err;
		has_more = !err && s3_list_begin(&list, op.body.data, op.body.length) &&
		           list.is_truncated;
		bool is_wanted = true, has_any = false;

		while (!err && is_wanted && s3_list_next(&list, key, sizeof key)) {
			if (strlen(key) < cut || strlen(key + cut) >= sizeof op.after)
				continue;
			has_any = true;
			memcpy(op.after, key + cut, strlen(key + cut) + 1);
			is_wanted = each(key + cut, list.modified, arg);
		}
		has_more = has_more && is_wanted && has_any;
		text_fini(&op.body);
	}
	return err;
}

static bool add_to_page(const char *key, time_t modified, void *arg)
{
	(void)modified;
	struct store_page *page = arg;
	const char *id = key + sizeof IMAGES - 1;

	(void)modified;
	if (!ulid_is_valid(id, strlen(id)))
		return true;
	if (page->before[0] && strcmp(id, page->before) >= 0)
		return false;
	memcpy(page->id[page->count++], id, ULID_LENGTH + 1);
	return page->count < page->max;
}

int s3_store_list(struct s3_store *s, struct store_page *page)
{
	char after[S3_KEY_MAX] = "";

	assert(!page->is_newest_first);
	page->count = 0;
	if (page->after[0])
		s3_image_key(after, page->after);
	return s3_list_keys(s, IMAGES, after, page->max, add_to_page, page);
}

struct due_list {
	struct expiry_due *due;
	unsigned max, count;
	uint64_t now;
};

static bool add_due(const char *key, time_t modified, void *arg)
{
	(void)modified;
	struct due_list *list = arg;
	const char *second = key + sizeof EXPIRY - 1, *id = second + S3_SECOND_LENGTH + 1;

	(void)modified;
	if (strspn(second, "0123456789") != S3_SECOND_LENGTH || second[S3_SECOND_LENGTH] != '.' ||
	    !ulid_is_valid(id, strlen(id)))
		return true;
	uint64_t expires = strtoull(second, NULL, 10);

	if (expires > list->now)
		return false;
	list->due[list->count].expires = expires;
	memcpy(list->due[list->count++].id, id, ULID_LENGTH + 1);
	return list->count < list->max;
}

int s3_store_list_expired(struct s3_store *s, uint64_t now, struct expiry_due *due, unsigned max)
{
	struct due_list list = { .due = due, .max = max, .now = now };
	int err = s3_list_keys(s, EXPIRY, "", max, add_due, &list);

	return err ? err : (int)list.count;
}

/* ---- one object ---- */

/* Returns whether the object has the content, and its entity tag. */
static bool is_same(struct s3_store *s, const char *key, const char *data, size_t size,
                    char etag[S3_ETAG_MAX])
{
	struct s3_op op = { .verb = S3_GET, .body_max = size + 1 };

	snprintf(op.key, sizeof op.key, "%s", key);
	s3_client_run(s->client, &op, 1);
	bool is_same = !op.err && op.body.length == size && memcmp(op.body.data, data, size) == 0;

	memcpy(etag, op.etag, S3_ETAG_MAX);
	text_fini(&op.body);
	return is_same;
}

/* Puts it once. Returns as s3_put_if(). */
static int put_if(struct s3_store *s, const char *key, const char *data, size_t size,
                  const char *match, size_t match_length, char etag[S3_ETAG_MAX])
{
	struct s3_op op = { .verb = S3_PUT, .data = data, .size = size, .type = "text/plain" };

	snprintf(op.key, sizeof op.key, "%s", key);
	snprintf(op.match, sizeof op.match, "%.*s", (int)match_length, match);
	checksum_of(data, size, op.tag);
	s3_client_run(s->client, &op, 1);
	text_fini(&op.body);
	memcpy(etag, op.etag, S3_ETAG_MAX);
	/* The answer to an earlier attempt may be lost, which has put it. libcurl also repeats
	 * requests by itself, if a connection that it kept has ended. */
	if (op.err == -EEXIST && is_same(s, key, data, size, etag))
		return 0;
	return op.err;
}

int s3_put_if(struct s3_store *s, const char *key, const char *data, size_t size, const char *match,
              char etag[S3_ETAG_MAX])
{
	size_t length = strlen(match);
	bool is_tag = length > 2 && match[0] == '"' && match[length - 1] == '"';
	/* Relaxed: it only saves requests. */
	bool is_bare = atomic_load_explicit(&s->has_bare_tags, memory_order_relaxed);

	if (!is_tag || !is_bare) {
		int err = put_if(s, key, data, size, match, length, etag);

		if (!is_tag || err != -EEXIST)
			return err;
	}
	/* Ceph's gateway (16) compares an entity tag without its quotes. */
	int err = put_if(s, key, data, size, match + 1, length - 2, etag);

	if (!err)
		atomic_store_explicit(&s->has_bare_tags, true, memory_order_relaxed);
	return err;
}

int s3_remove(struct s3_store *s, const char *key)
{
	struct s3_op op = { .verb = S3_DELETE };

	snprintf(op.key, sizeof op.key, "%s", key);
	s3_client_run(s->client, &op, 1);
	text_fini(&op.body);
	return op.err == -ENOENT ? 0 : op.err;
}

struct old_keys {
	struct s3_store *store;
	time_t before;
	int err;
};

static bool remove_old(const char *key, time_t modified, void *arg)
{
	struct old_keys *old = arg;

	if (modified && modified < old->before)
		old->err = s3_remove(old->store, key);
	return !old->err;
}

int s3_remove_old(struct s3_store *s, const char *prefix, time_t before)
{
	struct old_keys old = { .store = s, .before = before };
	int err = s3_list_keys(s, prefix, "", LIST_MAX, remove_old, &old);

	return err ? err : old.err;
}
