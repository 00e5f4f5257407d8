/* s3_orphans.c - lists, compares with the images that there are, and removes. */
#include "s3_orphans.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "s3_lease.h"

#define FILES "file/"
#define IMAGES "image/"
#define OBJECTS_MAX 64 /* of one image that a pass removes */

struct pass {
	struct s3_store *store;
	size_t prefix_length; /* of FILES or S3_SPOOL */
	time_t newest;        /* an object that was changed later does not count */
	unsigned seen;        /* keys */
	char last[S3_KEY_MAX];
	unsigned count;
	char id[S3_ORPHANS_KEYS][ULID_LENGTH + 1]; /* with old objects; then those without image */
	unsigned at, kept;                         /* of comparing */
	bool has_original;
	unsigned op_count;
	struct s3_op op[OBJECTS_MAX]; /* removals */
};

/* ---- one list ---- */

static bool is_old(const struct pass *p, time_t modified)
{
	return modified > 0 && modified <= p->newest; /* 0: the store does not tell */
}

static bool add_old(const char *key, time_t modified, void *arg)
{
	struct pass *p = arg;
	char id[ULID_LENGTH + 1];

	snprintf(p->last, sizeof p->last, "%s", key);
	snprintf(id, sizeof id, "%.*s", ULID_LENGTH, key + p->prefix_length);
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
	const char *id = key + sizeof IMAGES - 1;

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
	snprintf(before, sizeof before, IMAGES "%.*s", ULID_LENGTH - 1, p->id[0]);
	int err = s3_list_keys(p->store, IMAGES, before, S3_ORPHANS_KEYS, drop_image, p);

	keep_before(p, NULL);
	p->count = p->kept;
	return err;
}

/* ---- one image ---- */

static bool add_removal(const char *key, time_t modified, void *arg)
{
	struct pass *p = arg;
	bool is_lease = strstr(key, S3_LEASE) != NULL;

	p->has_original |= !is_lease;
	if (!is_old(p, modified))
		return true;
	p->op[p->op_count] = (struct s3_op){ .verb = S3_DELETE };
	snprintf(p->op[p->op_count++].key, S3_KEY_MAX, "%s", key);
	return p->op_count < OBJECTS_MAX;
}

/* Returns 0 if nobody makes the image, or -errno: it is stored or acknowledged, or that is not
 * known. *has_lease: it is acknowledged if its original is there. */
static int check(struct pass *p, const char *id, bool is_spooled, bool *has_lease)
{
	struct s3_image image = { .id = id };
	struct s3_lease lease;
	char ids[1][ULID_LENGTH + 1];
	int lease_err = 0, err = is_spooled ? 0 : s3_store_read(p->store, &image, 1);

	if (!err && !is_spooled) {
		err = image.err == -ENOENT ? 0 : image.err ? image.err : -EEXIST;
		text_fini(&image.json);
	}
	memcpy(ids[0], id, sizeof ids[0]);
	if (!err)
		err = s3_lease_read(p->store, (const char(*)[ULID_LENGTH + 1]) ids, &lease,
		                    &lease_err, 1);
	*has_lease = !err && !lease_err && lease.state != S3_LEASE_REMOVED;
	if (!err && lease_err && lease_err != -ENOENT)
		err = lease_err;
	return !err && *has_lease && !is_spooled ? -EEXIST : err;
}

/* Removes what is old of an image. Its objects are listed again, because they may have been put
 * again meanwhile. Returns the objects removed or -errno. */
static int remove_one(struct pass *p, const char *id, bool is_spooled)
{
	char prefix[S3_KEY_MAX];
	bool has_lease;
	int err = check(p, id, is_spooled, &has_lease), removed = 0;

	if (err)
		return err == -EEXIST ? 0 : err;
	p->op_count = 0;
	p->has_original = false;
	snprintf(prefix, sizeof prefix, is_spooled ? S3_SPOOL "%s" : FILES "%s/", id);
	err = s3_list_keys(p->store, prefix, "", OBJECTS_MAX, add_removal, p);
	if (err || (has_lease && p->has_original))
		return err;
	s3_client_run(p->store->client, p->op, p->op_count);
	for (unsigned i = 0; i < p->op_count; i++) {
		removed += !p->op[i].err;
		err = p->op[i].err ? p->op[i].err : err;
		text_fini(&p->op[i].body);
	}
	s3_client_count_orphans(p->store->client, (unsigned)removed);
	return err ? err : removed;
}

/* ---- a pass ---- */

/* Where the next pass begins: at the end, with the other kind. */
static void move_on(struct s3_orphans *o, const struct pass *p, unsigned done)
{
	if (done < p->count) /* '0' follows '/' and '.' */
		snprintf(o->after, sizeof o->after, "%s%s0", o->is_in_spool ? S3_SPOOL : FILES,
		         p->id[done - 1]);
	else if (p->seen >= S3_ORPHANS_KEYS)
		memcpy(o->after, p->last, sizeof o->after);
	else
		*o = (struct s3_orphans){ .is_in_spool = !o->is_in_spool };
}

static int run(struct pass *p, struct s3_orphans *o, bool (*is_known)(void *arg, const char *id),
               void *arg)
{
	const char *prefix = o->is_in_spool ? S3_SPOOL : FILES;
	unsigned done = 0;
	int removed = 0;

	p->prefix_length = strlen(prefix);
	int err = s3_list_keys(p->store, prefix, o->after, S3_ORPHANS_KEYS, add_old, p);

	if (!err && !o->is_in_spool)
		err = compare(p);
	for (; !err && done < p->count && done < S3_ORPHANS_IMAGES; done++) {
		int n = is_known(arg, p->id[done]) ? 0 : remove_one(p, p->id[done], o->is_in_spool);

		removed += n > 0 ? n : 0;
		err = n < 0 ? n : 0;
	}
	if (!err)
		move_on(o, p, done);
	return err ? err : removed;
}

int s3_orphans_remove(struct s3_store *s, struct s3_orphans *o,
                      bool (*is_known)(void *arg, const char *id), void *arg)
{
	struct pass *p = pool_get(sizeof *p);

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof *p);
	p->store = s;
	p->newest = time(NULL) - S3_ORPHANS_AGE_S;
	int removed = run(p, o, is_known, arg);

	pool_put(p);
	return removed;
}
