/* s3_objects.c - lists, conditions and removals; all of it but keys blocks. */
#include "s3_objects.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "s3_list.h"
#include "store/checksum.h"
#include "store/stored_image.h"

#define OBJECTS_MAX 64                    /* of one image that a pass removes */
#define LIST_MAX 1000                     /* keys in one answer */
#define LIST_BODY_MAX (UINT64_C(2) << 20) /* bytes of it */

void s3_file_key(char key[S3_KEY_MAX], const char *id, const char *name)
{
	if (strcmp(name, STORED_IMAGE) == 0)
		snprintf(key, S3_KEY_MAX, S3_IMAGES "%.*s", ULID_LENGTH, id);
	else
		snprintf(key, S3_KEY_MAX, S3_FILES "%.*s/%s", ULID_LENGTH, id, name);
}

int s3_list_keys(struct s3_client *c, const char *prefix, const char *after, unsigned max,
                 s3_key_reader *each, void *arg)
{
	struct s3_op op = { .verb = S3_LIST,
		            .max = max < LIST_MAX ? max : LIST_MAX,
		            .body_max = LIST_BODY_MAX,
		            .after = *after ? after : NULL };
	char key[S3_NAME_MAX] = "", last[S3_NAME_MAX];
	size_t cut = s3_client_prefix_length(c);
	struct s3_list list;
	bool has_more = true;

	snprintf(op.key, sizeof op.key, "%s", prefix);
	while (has_more) {
		bool is_wanted = true;

		s3_client_run(c, &op, 1);
		has_more = !op.err && s3_list_begin(&list, op.body.data, op.body.length);
		while (has_more && is_wanted && s3_list_next(&list, key))
			/* others are of another program */
			if (list.is_plain && strlen(key + cut) < S3_KEY_MAX)
				is_wanted = each(key + cut, list.modified, arg);
		has_more = has_more && list.is_truncated && is_wanted;
		memcpy(last, key, sizeof last);
		op.after = last + cut;
		text_fini(&op.body);
	}
	return op.err;
}

/* ---- one object ---- */

/* Returns whether the object has the content, and its entity tag. */
static bool is_same(struct s3_client *c, const char *key, const char *data, size_t size,
                    char etag[S3_ETAG_MAX])
{
	struct s3_op op = { .verb = S3_GET, .body_max = size + 1 };

	snprintf(op.key, sizeof op.key, "%s", key);
	s3_client_run(c, &op, 1);
	bool is_same = !op.err && op.body.length == size && memcmp(op.body.data, data, size) == 0;

	memcpy(etag, op.etag, S3_ETAG_MAX);
	text_fini(&op.body);
	return is_same;
}

/* Puts it once. Returns as s3_put_if(). */
static int put_if(struct s3_client *c, const char *key, const char *data, size_t size,
                  const char *match, size_t match_length, char etag[S3_ETAG_MAX])
{
	struct s3_op op = { .verb = S3_PUT, .data = data, .size = size, .type = "text/plain" };

	snprintf(op.key, sizeof op.key, "%s", key);
	snprintf(op.match, sizeof op.match, "%.*s", (int)match_length, match);
	checksum_of(data, size, op.tag);
	s3_client_run(c, &op, 1);
	text_fini(&op.body);
	memcpy(etag, op.etag, S3_ETAG_MAX);
	/* The answer to an earlier attempt may be lost, which has put it. libcurl also repeats
	 * requests by itself, if a connection that it kept has ended. */
	if (op.err == -EEXIST && is_same(c, key, data, size, etag))
		return 0;
	return op.err;
}

int s3_put_if(struct s3_client *c, const char *key, const char *data, size_t size,
              const char *match, char etag[S3_ETAG_MAX])
{
	static atomic_bool has_bare_tags; /* Relaxed: it only saves requests. */
	size_t length = strlen(match);
	bool is_tag = length > 2 && match[0] == '"' && match[length - 1] == '"';

	if (!is_tag || !atomic_load_explicit(&has_bare_tags, memory_order_relaxed)) {
		int err = put_if(c, key, data, size, match, length, etag);

		if (!is_tag || err != -EEXIST)
			return err;
	}
	/* Ceph's gateway (16) compares an entity tag without its quotes. */
	int err = put_if(c, key, data, size, match + 1, length - 2, etag);

	if (!err)
		atomic_store_explicit(&has_bare_tags, true, memory_order_relaxed);
	return err;
}

int s3_remove_all(struct s3_client *c, struct s3_op *ops, unsigned count, unsigned *removed)
{
	int err = 0;

	*removed = 0;
	for (unsigned i = 0; i < count; i++)
		ops[i].verb = S3_DELETE;
	s3_client_run(c, ops, count);
	for (unsigned i = 0; i < count; i++) {
		if (ops[i].err && ops[i].err != -ENOENT)
			err = ops[i].err;
		*removed += !ops[i].err;
		text_fini(&ops[i].body);
	}
	return err;
}

int s3_remove(struct s3_client *c, const char *key)
{
	struct s3_op op = { .verb = S3_DELETE };
	unsigned removed;

	snprintf(op.key, sizeof op.key, "%s", key);
	return s3_remove_all(c, &op, 1, &removed);
}

struct old_keys {
	struct s3_client *client;
	time_t before;
	int err;
};

static bool remove_old(const char *key, time_t modified, void *arg)
{
	struct old_keys *old = arg;

	if (modified && modified < old->before)
		old->err = s3_remove(old->client, key);
	return !old->err;
}

int s3_remove_old(struct s3_client *c, const char *prefix, time_t before)
{
	struct old_keys old = { .client = c, .before = before };
	int err = s3_list_keys(c, prefix, "", LIST_MAX, remove_old, &old);

	return err ? err : old.err;
}

/* ---- objects without an image ---- */

struct pass {
	struct s3_client *client;
	time_t newest; /* an object that was changed later does not count */
	unsigned seen; /* keys */
	char last[S3_KEY_MAX];
	unsigned count;
	char id[S3_ORPHANS_KEYS][ULID_LENGTH + 1]; /* with old objects; then those without image */
	unsigned at, kept;                         /* of comparing */
	unsigned op_count;
	struct s3_op op[OBJECTS_MAX]; /* removals */
};

static bool is_old(const struct pass *p, time_t modified)
{
	return modified > 0 && modified <= p->newest; /* 0: the store does not tell */
}

static bool add_old(const char *key, time_t modified, void *arg)
{
	struct pass *p = arg;
	char id[ULID_LENGTH + 1];

	snprintf(p->last, sizeof p->last, "%s", key);
	snprintf(id, sizeof id, "%.*s", ULID_LENGTH, key + sizeof S3_FILES - 1);
	if (is_old(p, modified) && ulid_is_valid(id, strlen(id)) &&
	    (!p->count || strcmp(p->id[p->count - 1], id) != 0))
		memcpy(p->id[p->count++], id, sizeof id);
	return ++p->seen < S3_ORPHANS_KEYS;
}

/* Keeps those before the id of an image; both lists are sorted. */
static void keep_before(struct pass *p, const char *id)
{
	for (; p->at < p->count && (!id || strcmp(p->id[p->at], id) < 0); p->at++)
		memmove(p->id[p->kept++], p->id[p->at], ULID_LENGTH + 1);
}

static bool drop_image(const char *key, time_t modified, void *arg)
{
	struct pass *p = arg;
	const char *id = key + sizeof S3_IMAGES - 1;

	(void)modified;
	keep_before(p, id);
	p->at += p->at < p->count && strcmp(p->id[p->at], id) == 0;
	return p->at < p->count;
}

/* Leaves out what has an image. */
static int compare(struct pass *p)
{
	char before[S3_KEY_MAX];

	if (!p->count)
		return 0;
	snprintf(before, sizeof before, S3_IMAGES "%.*s", ULID_LENGTH - 1, p->id[0]);
	int err = s3_list_keys(p->client, S3_IMAGES, before, S3_ORPHANS_KEYS, drop_image, p);

	keep_before(p, NULL);
	p->count = p->kept;
	return err;
}

static bool add_removal(const char *key, time_t modified, void *arg)
{
	struct pass *p = arg;

	if (!is_old(p, modified))
		return true;
	p->op[p->op_count] = (struct s3_op){ .verb = S3_DELETE };
	snprintf(p->op[p->op_count++].key, S3_KEY_MAX, "%s", key);
	return p->op_count < OBJECTS_MAX;
}

/* Removes what is old of an image that is not stored. Its objects are listed again, because they
 * may have been put again meanwhile. Returns the objects removed or -errno. */
static int remove_one(struct pass *p, const char *id)
{
	struct s3_op image = { .verb = S3_GET, .body_max = STORED_IMAGE_MAX };
	char prefix[S3_KEY_MAX];
	unsigned removed;

	s3_file_key(image.key, id, STORED_IMAGE);
	s3_client_run(p->client, &image, 1);
	text_fini(&image.body);
	if (image.err != -ENOENT)
		return image.err; /* 0: it is stored */
	p->op_count = 0;
	snprintf(prefix, sizeof prefix, S3_FILES "%s/", id);
	int err = s3_list_keys(p->client, prefix, "", OBJECTS_MAX, add_removal, p);

	if (err)
		return err;
	err = s3_remove_all(p->client, p->op, p->op_count, &removed);
	atomic_fetch_add_explicit(&s3_client_counters(p->client)->orphans, removed,
	                          memory_order_relaxed);
	return err ? err : (int)removed;
}

/* Where the next pass begins. */
static void move_on(struct s3_orphans *o, const struct pass *p, unsigned done)
{
	if (done < p->count) /* '0' follows '/' */
		snprintf(o->after, sizeof o->after, S3_FILES "%s0", p->id[done - 1]);
	else if (p->seen >= S3_ORPHANS_KEYS)
		memcpy(o->after, p->last, sizeof o->after);
	else
		o->after[0] = '\0';
}

static int run(struct pass *p, struct s3_orphans *o, bool (*is_known)(void *arg, const char *id),
               void *arg)
{
	unsigned done = 0;
	int removed = 0,
	    err = s3_list_keys(p->client, S3_FILES, o->after, S3_ORPHANS_KEYS, add_old, p);

	if (!err)
		err = compare(p);
	for (; !err && done < p->count && done < S3_ORPHANS_IMAGES; done++) {
		int n = is_known(arg, p->id[done]) ? 0 : remove_one(p, p->id[done]);

		removed += n > 0 ? n : 0;
		err = n < 0 ? n : 0;
	}
	if (!err)
		move_on(o, p, done);
	return err ? err : removed;
}

int s3_orphans_remove(struct s3_client *c, struct s3_orphans *o,
                      bool (*is_known)(void *arg, const char *id), void *arg)
{
	struct pass *p = pool_get(sizeof *p);

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof *p);
	p->client = c;
	p->newest = time(NULL) - S3_ORPHANS_AGE_S;
	int removed = run(p, o, is_known, arg);

	pool_put(p);
	return removed;
}
