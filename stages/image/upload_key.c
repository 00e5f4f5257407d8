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
#include "log/log.h"
#include "storage/storage.h"
#include "store/stored_image.h"
#include "upload.h"

/* SHA-256, because a client may not find two contents with one fingerprint. */
#define HASH_TURN_MAX ((size_t)1 << 20)

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
	text_init_growable(&k->images, 1);
	return k;
}

void upload_key_free(struct upload_key *k)
{
	if (k)
		text_fini(&k->images);
	pool_put(k);
}

/* ---- refusals ---- */

static void refuse_in_progress(struct upload_key *k)
{
	k->verdict = UPLOAD_KEY_REFUSED;
	problem_set(&k->problem, 409, "idempotency-key-in-use",
	            "an upload with this Idempotency-Key has not been answered yet");
	k->problem.retry_after_s = 1;
}

static void refuse_other(struct upload_key *k)
{
	k->verdict = UPLOAD_KEY_REFUSED;
	problem_set(&k->problem, 422, "idempotency-key-reused",
	            "this Idempotency-Key was used for an upload with another content");
}

/* err: an error of storage.h. */
static void refuse_failed(struct upload_key *k, int err)
{
	k->verdict = UPLOAD_KEY_REFUSED;
	if (image_service_set_problem(err, &k->problem))
		k->problem.retry_after_s = 1;
	else if (err == -ENOSPC || err == -EDQUOT)
		problem_set(&k->problem, 507, "storage-full", "%s", strerror(-err));
	else if (err == -ENOMEM)
		problem_set(&k->problem, 503, "overloaded", "no memory");
	else if (err == -EOPNOTSUPP)
		problem_set(&k->problem, 500, "storage-failed",
		            "the store has no conditional requests, which Idempotency-Key needs");
	else
		problem_set(&k->problem, 500, "storage-failed", "%s", strerror(-err));
}

/* ---- keys in progress ---- */

static struct upload_key **bucket_of(struct upload_keys *keys, const struct upload_key *k)
{
	return &keys->bucket[k->record.name[0] % UPLOAD_KEY_BUCKETS];
}

static bool is_same_content(const struct upload_key *k, const struct key_record *r)
{
	return memcmp(k->record.fingerprint, r->fingerprint, sizeof r->fingerprint) == 0;
}

/* Returns whether the key is the caller's now; otherwise it is refused. */
static bool take(struct upload_keys *keys, struct upload_key *k)
{
	struct upload_key **bucket = bucket_of(keys, k);

	pthread_mutex_lock(&keys->lock);
	const struct upload_key *other = *bucket;

	while (other && memcmp(other->record.name, k->record.name, sizeof k->record.name) != 0)
		other = other->next;
	bool is_same = other && is_same_content(k, &other->record);

	if (!other) {
		k->next = *bucket;
		*bucket = k;
	}
	pthread_mutex_unlock(&keys->lock);
	if (is_same)
		refuse_in_progress(k);
	else if (other)
		refuse_other(k);
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

/* ---- the hash of the content ---- */

static void hash_number(struct upload_key *k, uint64_t number)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(number >> 8 * i);
	sha256_update(&k->context, sizeof bytes, bytes);
}

static void hash_data(struct upload_key *k, const void *data, size_t length)
{
	hash_number(k, length);
	sha256_update(&k->context, length, data);
}

static void hash_text(struct upload_key *k, const char *text)
{
	hash_data(k, text, strlen(text));
}

/* What is left behind the images. */
static void hash_rest(struct upload_key *k)
{
	const struct upload *u = k->upload;

	hash_data(k, u->metadata.data, u->metadata.length);
	hash_number(k, u->bad_part_count);
	for (unsigned i = 0; i < u->bad_part_count; i++) {
		hash_text(k, u->bad_part[i].part_name);
		hash_text(k, u->bad_part[i].file_name);
		hash_text(k, u->bad_part[i].problem.detail);
	}
	sha256_digest(&k->context, sizeof k->record.fingerprint, k->record.fingerprint);
}

/* Hashes up to HASH_TURN_MAX. Returns true if more is left. */
static bool hash(struct upload_key *k)
{
	const struct upload *u = k->upload;
	size_t room = HASH_TURN_MAX;

	for (; k->hashed_images < u->image_count; k->hashed_images++, k->hashed = 0) {
		const struct image *image = u->image[k->hashed_images];
		size_t left = image->source_size - k->hashed, n = left < room ? left : room;

		if (k->hashed == 0) {
			hash_text(k, image->part_name);
			hash_text(k, image->file_name);
			hash_number(k, image->source_size);
		}
		sha256_update(&k->context, n, image->source + k->hashed);
		k->hashed += n;
		room -= n;
		if (room == 0)
			return true;
	}
	hash_rest(k);
	return false;
}

/* ---- the images of an earlier upload ---- */

/* Removes the images of an upload that was never acknowledged: it is made again. */
static void remove_images(struct image_service *s, const struct key_record *r)
{
	for (unsigned i = 0; i < r->count; i++) {
		int err = storage_remove(&s->storage, r->id[i]);

		if (err && err != -ENOENT)
			log_warning("image %s: cannot remove it: %s; it stays, although its upload "
			            "was not answered and is made again",
			            r->id[i], strerror(-err));
	}
}

/* Appends an image to the answer. Returns 1; 0 if it is not stored and will not be; or -errno. The
 * spool comes before a second look, because the image leaves it when it is stored. */
static int append_image(struct image_service *s, struct upload_key *k, const char *id)
{
	const char *status = "removed";
	int has = stored_list_append(&k->images, &s->storage, id);

	if (has)
		return has;
	if (inflight_find(&s->inflight, id, NULL) || spooling_has(&s->storage, id)) {
		status = "processing";
		k->is_processing = true;
		has = 1;
	} else if ((has = stored_list_append(&k->images, &s->storage, id))) {
		return has;
	}
	text_printf(&k->images, "%s{\"id\":\"%s\",\"url\":\"/images/%s\",\"status\":\"%s\"}",
	            k->images.length > 1 ? ",\n" : "", id, id, status);
	return has;
}

static void begin_answer(struct upload_key *k, const struct key_record *r)
{
	if (r->count == 1)
		memcpy(k->id, r->id[0], sizeof k->id);
	k->failed = r->failed;
	text_init_growable(&k->images, ((size_t)r->count + 1) * (STORED_IMAGE_MAX + 2));
	text_puts(&k->images, "[");
}

/* ---- before the images ---- */

static uint64_t age_of(const struct upload_key *k)
{
	return k->upload->epoch->conf.store.idempotency_age_ms / 1000;
}

/* Reads the record of the key. Returns 0; -ENOENT if there is none, or its time is over; or -errno.
 */
static int read_record(struct image_service *s, struct upload_key *k, struct key_record *r)
{
	memcpy(r->name, k->record.name, sizeof r->name);
	r->version[0] = '\0';
	int err = s->storage.class->key_read(&s->storage, r);

	memcpy(k->record.version, r->version, sizeof r->version);
	if (err || r->age_s < age_of(k))
		return err;
	pool_put(r->id);
	return -ENOENT;
}

/* Returns whether the client may have one more key. */
static bool is_below_limit(struct upload_keys *keys, struct upload_key *k)
{
	const struct upload *u = k->upload;
	uint64_t max = u->epoch->conf.limits.idempotency_keys, now = clock_ns(), used;
	struct client_rate rate = { .rate = max * 1000 / (age_of(k) ? age_of(k) : 1),
		                    .burst = max };

	if (max == 0 || !k->has_share)
		return true;
	rate.rate += !rate.rate;
	uint64_t wait_ns = client_rates_take(&keys->rates, &u->admitted.client, rate, now, &used);

	if (wait_ns) {
		k->verdict = UPLOAD_KEY_REFUSED;
		problem_set_limit(&k->problem, 429, "too-many-requests", "limits.idempotency_keys",
		                  max, used + 1);
		k->problem.retry_after_s = (unsigned)(wait_ns / NS_PER_S + 1);
	} else if (u->image_count > 1) { /* its record is as long as theirs */
		client_rates_charge(&keys->rates, &u->admitted.client, rate, u->image_count - 1,
		                    now);
	}
	return !wait_ns;
}

/* Writes the record of the upload as it is, with those images that have not failed. */
static int write_record(struct image_service *s, struct upload_key *k, bool is_settled,
                        unsigned good)
{
	const struct upload *u = k->upload;
	struct key_record *r = &k->record;

	r->created = (uint64_t)time(NULL);
	r->is_settled = is_settled;
	r->failed = u->image_count + u->bad_part_count - good;
	r->count = 0;
	r->id = pool_get(((size_t)good + 1) * sizeof *r->id);
	if (!r->id)
		return -ENOMEM;
	for (unsigned i = 0; i < u->image_count; i++)
		if (!is_settled || !upload_has_failed(u, i))
			memcpy(r->id[r->count++], u->image[i]->id, sizeof *r->id);
	int err = s->storage.class->key_write(&s->storage, r);

	pool_put(r->id);
	return err;
}

/* Writes the first record of the upload. */
static void start(struct image_service *s, struct upload_key *k)
{
	if (!is_below_limit(s->keys, k))
		return;
	int err = write_record(s, k, false, k->upload->image_count);

	if (!err) {
		k->verdict = UPLOAD_KEY_NEW;
	} else if (err == -EEXIST || err == -EAGAIN) {
		refuse_in_progress(k); /* another node was faster */
	} else {
		refuse_failed(k, err);
		log_error("store: cannot write the record of an Idempotency-Key: %s; refusing the "
		          "upload",
		          err == -EOPNOTSUPP ? "the store has no conditional requests"
		                             : strerror(-err));
	}
}

/* [K3] Returns whether the record was as it is for UPLOAD_KEY_WAIT_S, as this node has seen it. */
static bool has_waited(struct upload_keys *keys, const struct upload_key *k)
{
	const struct key_record *r = &k->record;
	uint64_t now = clock_ns();

	pthread_mutex_lock(&keys->lock);
	__typeof__(keys->seen[0]) *seen = &keys->seen[r->name[1] % UPLOAD_KEY_SEEN];
	bool is_known = memcmp(seen->name, r->name, sizeof seen->name) == 0 &&
	                strcmp(seen->version, r->version) == 0;

	if (!is_known) {
		memcpy(seen->name, r->name, sizeof seen->name);
		memcpy(seen->version, r->version, sizeof seen->version);
		seen->since_ns = now;
	}
	bool has_waited = now - seen->since_ns >= UPLOAD_KEY_WAIT_S * NS_PER_S;

	pthread_mutex_unlock(&keys->lock);
	return has_waited;
}

/* What the images of a record tell. */
struct fates {
	unsigned open, old, failed; /* that may come; of these that nobody makes; that failed */
	int err;
};

/* Makes the answer from what has become of the images. */
static struct fates make_answer(struct image_service *s, struct upload_key *k,
                                const struct key_record *r)
{
	bool is_shared = s->storage.class->is_shared;
	struct fates f = { .err = 0 };

	begin_answer(k, r);
	for (unsigned i = 0; i < r->count && !f.err; i++) {
		bool is_coming = inflight_find(&s->inflight, r->id[i], NULL) ||
		                 spooling_has(&s->storage, r->id[i]);
		int has = stored_list_append(&k->images, &s->storage, r->id[i]), fate = S3_THERE;

		if (!has && !is_coming)
			fate = s->storage.class->fate(&s->storage, r->id[i], false);
		if (fate == S3_ABSENT && r->is_settled)
			fate = S3_REMOVED;
		f.open += fate == S3_ABSENT;
		/* This process has taken the key, so no other one makes an image of files. */
		f.old += fate == S3_ABSENT && (!is_shared || s3_id_is_too_old(r->id[i]));
		f.failed += fate == S3_HAS_FAILED;
		if (!has && (fate == S3_THERE || fate == S3_REMOVED))
			has = append_image(s, k, r->id[i]);
		f.err = has < 0 ? has : fate < 0 ? fate : 0;
	}
	text_puts(&k->images, "]");
	k->failed += f.failed;
	if (!f.err && k->images.overflowed)
		f.err = -ENOMEM;
	return f;
}

/* [K4] Makes the images of the record, which nobody may have made. */
static void take_over(struct image_service *s, struct upload_key *k, const struct key_record *r)
{
	struct upload *u = k->upload;

	if (r->count != u->image_count) {
		refuse_other(k);
		return;
	}
	for (unsigned i = 0; i < r->count; i++)
		memcpy(u->image[i]->id, r->id[i], sizeof u->image[i]->id);
	k->is_taken_over = true;
	start(s, k);
}

/* All images of the record are made. Of an earlier process, nobody has settled it: an error does
 * not matter, because the images would tell the same again. */
static void end_known(struct image_service *s, struct upload_key *k, struct key_record *r)
{
	if (!s->storage.class->is_shared && !r->is_settled) {
		r->is_settled = true;
		(void)s->storage.class->key_write(&s->storage, r);
	}
	if (is_same_content(k, r))
		k->verdict = UPLOAD_KEY_KNOWN;
	else
		refuse_other(k);
}

/* The images of the record were not all made, and nobody makes them: the upload is made again. Of
 * files, those that were made are removed first, so that a crash leaves none without a record. */
static void start_again(struct image_service *s, struct upload_key *k, const struct key_record *r)
{
	if (!s->storage.class->is_shared)
		remove_images(s, r);
	start(s, k);
}

/* [K1] Decides by a record with ids. A store of files has one that is not settled if an earlier
 * process did not come to it; its upload was not answered, so it may have another content. */
static void decide(struct image_service *s, struct upload_key *k, struct key_record *r)
{
	if (!is_same_content(k, r) && (s->storage.class->is_shared || r->is_settled)) {
		refuse_other(k); /* whatever has become of its images */
		return;
	}
	struct fates f = make_answer(s, k, r);

	if (f.err)
		refuse_failed(k, f.err);
	else if (!f.open && f.failed < r->count)
		end_known(s, k, r);
	else if (!f.open || f.old) /* nothing was made, or it may have been removed */
		start_again(s, k, r);
	else if (has_waited(s->keys, k))
		take_over(s, k, r);
	else
		refuse_in_progress(k);
	if (k->verdict != UPLOAD_KEY_KNOWN) {
		text_fini(&k->images);
		k->failed = 0;
	}
}

/* Decides about a key. Without taking it, only a settled record counts. */
static void begin(struct image_service *s, struct upload_key *k, bool is_taken)
{
	struct key_record r;
	int err = read_record(s, k, &r);
	bool has_ids = !err && r.count > 0;

	if (err && err != -ENOENT)
		refuse_failed(k, err);
	else if (has_ids && (is_taken || r.is_settled))
		decide(s, k, &r);
	else if (!has_ids && is_taken)
		start(s, k); /* [K2] */
	if (!err)
		pool_put(r.id);
}

/* ---- after the images ---- */

/* The images tell the same as a settled record, until one of them is removed. */
static void warn_of_images(int err)
{
	log_warning("store: cannot change the record of an Idempotency-Key: %s; the images decide",
	            strerror(-err));
}

/* Forgets the key of an upload that has made nothing. */
static void forget(struct image_service *s, const struct upload_key *k)
{
	int err = s->storage.class->key_remove(&s->storage, &k->record);

	if (err)
		warn_of_images(err);
}

/* The images of a record tell what was made. So those that have failed must not come later. Returns
 * 0; 1 if one was made by another node; or -errno. */
static int end_failed_images(struct image_service *s, const struct upload *u)
{
	int result = 0;

	for (unsigned i = 0; i < u->image_count; i++) {
		int fate = upload_has_failed(u, i)
		                   ? s->storage.class->fate(&s->storage, u->image[i]->id, true)
		                   : S3_HAS_FAILED;

		if (fate != S3_HAS_FAILED && result >= 0)
			result = fate < 0 ? fate : 1;
	}
	return result;
}

static void end_shared(struct image_service *s, struct upload_key *k, unsigned good)
{
	int result = k->upload ? end_failed_images(s, k->upload) : 0;

	if (result > 0)
		refuse_in_progress(k); /* the next one with the key gets the answer */
	else if (result && good > 0)
		refuse_failed(k, result);
	else if (!result && good == 0 && (k->upload || !k->is_taken_over))
		forget(s, k); /* [K6] */
}

/* Settles the record of an upload of which `good` images succeeded. */
static void settle(struct image_service *s, struct upload_key *k, unsigned good)
{
	int err = write_record(s, k, true, good);

	if (!err)
		return;
	if (k->record.failed == 0) {
		warn_of_images(err);
		return;
	}
	log_error("store: cannot write the record of an Idempotency-Key: %s; forgetting the key",
	          strerror(-err));
	(void)s->storage.class->key_remove(&s->storage, &k->record);
}

static void end(struct image_service *s, struct upload_key *k)
{
	const struct upload *u = k->upload;
	unsigned good = 0;

	for (unsigned i = 0; u && i < u->image_count; i++)
		good += !upload_has_failed(u, i);
	k->verdict = UPLOAD_KEY_ENDED;
	if (s->storage.class->is_shared)
		end_shared(s, k, good);
	else if (good > 0)
		settle(s, k, good);
	else
		forget(s, k);
	give(s->keys, k);
}

bool upload_key_serve(struct image_service *s, struct upload_key *k)
{
	if (k->verdict) {
		end(s, k);
		return false;
	}
	if (hash(k))
		return true;
	if (!s->storage.class->is_shared)
		begin(s, k, false); /* so that answers do not wait for each other */
	if (k->verdict || !take(s->keys, k))
		return false;
	begin(s, k, true);
	if (k->verdict != UPLOAD_KEY_NEW)
		give(s->keys, k);
	return false;
}
