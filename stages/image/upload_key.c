/* upload_key.c - what becomes of an upload with a key. The disk's threads; calls block. */
#include "upload_key.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "image.h"
#include "image_service.h"
#include "key_store.h"
#include "log/log.h"
#include "storage.h"
#include "upload_key_images.h"

static_assert(UPLOAD_KEY_HASH_SIZE == KEY_RECORD_HASH_SIZE, "a record has the name of its key");

void upload_keys_init(struct upload_keys *keys)
{
	memset(keys, 0, sizeof *keys);
	pthread_mutex_init(&keys->lock, NULL);
	client_rates_init(&keys->rates);
}

void upload_keys_fini(struct upload_keys *keys)
{
	client_rates_fini(&keys->rates);
	pthread_mutex_destroy(&keys->lock);
}

struct upload_key *upload_key_new(void)
{
	struct upload_key *k = pool_get(sizeof *k);

	if (!k)
		return NULL;
	memset(k, 0, sizeof *k);
	sha256_init(&k->context);
	return k;
}

void upload_key_free(struct upload_key *k)
{
	if (!k)
		return;
	if (k->images.data)
		text_fini(&k->images);
	pool_put(k);
}

/* ---- keys in progress ---- */

static struct upload_key **bucket_of(struct upload_keys *keys, const struct upload_key *k)
{
	return &keys->bucket[k->name[0] % UPLOAD_KEY_BUCKETS];
}

/* Returns whether the key is the caller's now; otherwise sets the verdict. */
static bool take(struct upload_keys *keys, struct upload_key *k)
{
	struct upload_key **bucket = bucket_of(keys, k);

	pthread_mutex_lock(&keys->lock);
	const struct upload_key *other = *bucket;

	while (other && memcmp(other->name, k->name, sizeof k->name) != 0)
		other = other->next;
	if (other) {
		bool is_same =
			memcmp(other->fingerprint, k->fingerprint, sizeof k->fingerprint) == 0;

		k->verdict = is_same ? UPLOAD_KEY_IN_PROGRESS : UPLOAD_KEY_OF_OTHER;
	} else {
		k->next = *bucket;
		*bucket = k;
	}
	pthread_mutex_unlock(&keys->lock);
	return !other;
}

static void give(struct upload_keys *keys, struct upload_key *k)
{
	struct upload_key **at = bucket_of(keys, k);

	pthread_mutex_lock(&keys->lock);
	while (*at != k) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = k->next;
	pthread_mutex_unlock(&keys->lock);
}

/* ---- begin ---- */

static uint64_t age_of(const struct upload_key *k)
{
	return k->upload->epoch->conf.store.idempotency_age_ms / 1000;
}

static bool fail(struct upload_key *k, int err)
{
	k->verdict = UPLOAD_KEY_FAILED;
	k->err = err;
	return true;
}

/* Reads the record of a key. Returns 0; -ENOENT if there is none, or its time is over; or -errno.
 */
static int read_record(struct image_service *s, struct upload_key *k, struct key_record *r)
{
	int err = key_store_read(s, k->name, r, k->version);

	if (err || r->created + age_of(k) > (uint64_t)time(NULL))
		return err;
	pool_put(r->id);
	r->id = NULL;
	return -ENOENT;
}

static bool is_same_content(const struct upload_key *k, const struct key_record *r)
{
	return memcmp(k->fingerprint, r->fingerprint, sizeof k->fingerprint) == 0;
}

/* Decides by an upload that has succeeded. Returns false if its image is gone, and is made again:
 * with the same content, not with the same key. */
static bool repeat(struct image_service *s, struct upload_key *k, const struct key_record *r)
{
	int has = k->is_content ? upload_key_is_complete(s, r) : 1;

	if (has < 0)
		return fail(k, has);
	if (has == 0)
		return false;
	if (is_same_content(k, r))
		upload_key_answer(s, k, r);
	else
		k->verdict = UPLOAD_KEY_OF_OTHER;
	return true;
}

/* Decides by a settled record. Returns whether there is one. */
static bool is_settled(struct image_service *s, struct upload_key *k)
{
	struct key_record r;
	int err = read_record(s, k, &r);

	if (err)
		return err != -ENOENT && fail(k, err);
	bool is_decided = r.is_settled && repeat(s, k, &r);

	pool_put(r.id);
	return is_decided;
}

/* Returns whether another node may be making the images of a record that is not settled. */
static bool has_lease(struct image_service *s, const struct key_record *r)
{
	return key_store_is_shared(s) && r->created + UPLOAD_KEY_LEASE_S > (uint64_t)time(NULL);
}

/* Decides by a record that is not settled: an earlier process has left it, or another node makes
 * its images. Returns false if its images are not complete, and the upload is made again. */
static bool settle_left(struct image_service *s, struct upload_key *k, struct key_record *r)
{
	int has = upload_key_is_complete(s, r);

	if (has < 0)
		return fail(k, has);
	if (has) {
		/* An error does not matter: it would be complete again. */
		(void)key_store_settle(s, k->name, r, k->version);
		return repeat(s, k, r);
	}
	if (!has_lease(s, r))
		return false;
	k->verdict = is_same_content(k, r) ? UPLOAD_KEY_IN_PROGRESS : UPLOAD_KEY_OF_OTHER;
	return true;
}

/* Returns whether the client may have one more key; otherwise sets the verdict. */
static bool is_below_limit(struct upload_keys *keys, struct upload_key *k)
{
	const struct upload *u = k->upload;
	uint64_t max = u->epoch->conf.limits.idempotency_keys, now = clock_ns();
	struct client_rate rate = { .rate = max * 1000 / (age_of(k) ? age_of(k) : 1),
		                    .burst = max };

	if (max == 0 || !k->has_share)
		return true;
	rate.rate += !rate.rate;
	uint64_t wait_ns = client_rates_take(&keys->rates, &u->client, rate, now, &k->used);

	if (wait_ns) {
		k->verdict = UPLOAD_KEY_TOO_MANY;
		k->wait_s = wait_ns / NS_PER_S + 1;
		return false;
	}
	if (u->image_count > 1) /* its record is as long as theirs */
		client_rates_charge(&keys->rates, &u->client, rate, u->image_count - 1, now);
	return true;
}

/* Writes the record of the upload as it is, with those images that have not failed. */
static int write_record(struct image_service *s, struct upload_key *k, bool is_settled,
                        unsigned good)
{
	const struct upload *u = k->upload;
	struct key_record r = { .created = (uint64_t)time(NULL), .is_settled = is_settled };

	memcpy(r.fingerprint, k->fingerprint, sizeof r.fingerprint);
	r.failed = u->image_count + u->bad_part_count - good;
	r.id = pool_get(((size_t)good + 1) * sizeof *r.id);
	if (!r.id)
		return -ENOMEM;
	for (unsigned i = 0; i < u->image_count; i++)
		if (!is_settled || !upload_has_failed(u, i))
			memcpy(r.id[r.count++], u->image[i]->id, sizeof *r.id);
	int err = key_store_write(s, k->name, &r, k->version);

	pool_put(r.id);
	return err;
}

/* Writes the first record of the upload. Returns whether it may start. */
static bool start(struct image_service *s, struct upload_key *k)
{
	if (!is_below_limit(&s->keys, k))
		return false;
	k->begun_ns = clock_ns();
	int err = write_record(s, k, false, k->upload->image_count);

	if (!err) {
		k->verdict = UPLOAD_KEY_NEW;
		return true;
	}
	if (err == -EEXIST || err == -EAGAIN) { /* another node was faster */
		k->verdict = UPLOAD_KEY_IN_PROGRESS;
		return false;
	}
	log_error("store: cannot write the record of an Idempotency-Key: %s; %s",
	          err == -EOPNOTSUPP ? "the store has no conditional requests" : strerror(-err),
	          k->is_content ? "not remembering the file" : "refusing the upload");
	fail(k, err);
	return false;
}

/* The key is the caller's. Returns whether the upload may start. */
static bool begin(struct image_service *s, struct upload_key *k)
{
	struct key_record r;
	int err = read_record(s, k, &r);

	if (err == -ENOENT)
		return start(s, k);
	if (err)
		return !fail(k, err);
	bool may_start = r.is_settled ? !repeat(s, k, &r) : !settle_left(s, k, &r);

	/* Files are removed first, so that a crash leaves none without a record. Of several nodes
	 * only that which has replaced the record may remove images. */
	if (may_start && !key_store_is_shared(s))
		upload_key_remove_images(s, &r);
	may_start = may_start && start(s, k);
	if (may_start && key_store_is_shared(s))
		upload_key_remove_images(s, &r);
	pool_put(r.id);
	return may_start;
}

/* Records are read before the key is taken, so that answers do not wait for each other; and then
 * once more, because an upload may have ended in between. */
void upload_key_begin(struct image_service *s, struct upload_key *k)
{
	if (!key_store_is_shared(s) && is_settled(s, k))
		return;
	if (take(&s->keys, k) && !begin(s, k))
		give(&s->keys, k);
}

/* ---- end ---- */

static unsigned count_good(const struct upload *u)
{
	unsigned good = 0;

	for (unsigned i = 0; u && i < u->image_count; i++)
		good += !upload_has_failed(u, i);
	return good;
}

/* Another node has taken the key, because this one took too long, and makes the images. */
static void lose(struct image_service *s, struct upload_key *k)
{
	if (k->is_content)
		return; /* nobody has asked for it: there are two images */
	log_warning("store: another node has taken an Idempotency-Key after %d s; removing the "
	            "images of the upload, and answering 409",
	            UPLOAD_KEY_LEASE_S);
	for (unsigned i = 0; i < k->upload->image_count; i++)
		(void)storage_remove(s, k->upload->image[i]->id);
	k->verdict = UPLOAD_KEY_IN_PROGRESS;
}

/* Replaces the record by one of the images that were made. */
static void settle_part(struct image_service *s, struct upload_key *k, unsigned good)
{
	int err = write_record(s, k, true, good);

	/* The images that have failed would otherwise be missed after a loss of power, and the
	 * others removed. */
	if (!err)
		err = key_store_flush(s);
	if (err && key_store_is_shared(s)) {
		lose(s, k); /* nobody may see these images as an upload that was not acknowledged */
		return;
	}
	if (!err)
		return;
	log_error("store: cannot write the record of an Idempotency-Key: %s; forgetting the key",
	          strerror(-err));
	(void)key_store_remove(s, k->name);
}

/* The images tell the same as a settled record, until one of them is removed. */
static void warn_of_images(int err)
{
	log_warning("store: cannot change the record of an Idempotency-Key: %s; the images decide",
	            strerror(-err));
}

/* Forgets the key of an upload that has made nothing. After the lease the record may be another
 * node's. */
static void forget(struct image_service *s, const struct upload_key *k)
{
	if (key_store_is_shared(s) && clock_ns() >= k->begun_ns + UPLOAD_KEY_LEASE_S * NS_PER_S)
		return;
	int err = key_store_remove(s, k->name);

	if (err)
		warn_of_images(err);
}

/* Returns whether another node has settled this upload, whose images it has seen: 1, 0 or -errno.
 */
static int is_settled_by_other(struct image_service *s, struct upload_key *k)
{
	struct key_record r;
	int err = read_record(s, k, &r);

	if (err)
		return err == -ENOENT ? 0 : err;
	bool is_own = r.is_settled && r.count > 0 && strcmp(r.id[0], k->upload->image[0]->id) == 0;

	pool_put(r.id);
	return is_own;
}

/* All images are stored. */
static void settle(struct image_service *s, struct upload_key *k, unsigned good)
{
	struct key_record files = { .count = 0 }; /* a file is settled in its place */
	int err = key_store_is_shared(s) ? write_record(s, k, true, good)
	                                 : key_store_settle(s, k->name, &files, k->version);
	int is_own = err == -EEXIST ? is_settled_by_other(s, k) : 1;

	if (is_own == 0)
		lose(s, k);
	else if (is_own < 0 && !k->is_content)
		k->verdict = UPLOAD_KEY_IN_PROGRESS; /* the next one with the key will see */
	else if (err && err != -EEXIST)
		warn_of_images(err);
}

void upload_key_end(struct image_service *s, struct upload_key *k)
{
	const struct upload *u = k->upload;
	unsigned good = count_good(u);

	if (good == 0)
		forget(s, k);
	else if (good < u->image_count || u->bad_part_count > 0)
		settle_part(s, k, good);
	else
		settle(s, k, good);
	give(&s->keys, k);
}
