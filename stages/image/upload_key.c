/* upload_key.c - what becomes of an upload with a key. The disk's threads; calls block. */
#include "upload_key.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "store/key_record.h"
#include "store/store_find.h"
#include "store/store_trash.h"
#include "store/stored_image.h"
#include "stored_list.h"

#define HASH_TURN_MAX ((size_t)1 << 20)

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

/* ---- the content ---- */

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
	sha256_digest(&k->context, sizeof k->fingerprint, k->fingerprint);
}

bool upload_key_hash(struct upload_key *k)
{
	const struct upload *u = k->upload;
	size_t turn = 0;

	for (; k->hashed_images < u->image_count; k->hashed_images++, k->hashed = 0) {
		const struct image *image = u->image[k->hashed_images];
		size_t left = image->source_size - k->hashed, room = HASH_TURN_MAX - turn;

		if (room == 0)
			return true;
		if (k->hashed == 0) {
			hash_text(k, image->part_name);
			hash_text(k, image->file_name);
			hash_number(k, image->source_size);
		}
		sha256_update(&k->context, left < room ? left : room, image->source + k->hashed);
		if (left > room) {
			k->hashed += room;
			return true;
		}
		turn += left;
	}
	hash_rest(k);
	return false;
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

/* ---- an earlier upload ---- */

/* Returns whether all images of a record are stored, or will be. */
static bool is_complete(struct store *s, const struct key_record *r)
{
	for (unsigned i = 0; i < r->count; i++)
		if (!store_has_image(s, r->id[i]) && !store_is_spooled(s, r->id[i]) &&
		    !store_has_image(s, r->id[i]))
			return false;
	return r->count > 0;
}

/* Removes the images of an upload that was never acknowledged: it is made again. */
static void remove_images(struct store *s, const struct key_record *r)
{
	for (unsigned i = 0; i < r->count; i++) {
		int err = store_remove(s, STORE_SPOOL, r->id[i]);

		if (!err || err == -ENOENT)
			err = store_remove(s, STORE_IMAGES, r->id[i]);
		if (err && err != -ENOENT)
			log_warning("image %s: cannot remove it: %s; it stays, although its upload "
			            "was not answered and is made again",
			            r->id[i], strerror(-err));
	}
}

/* Appends an image that is not stored. */
static void append_status(struct text *images, const char *id, const char *status)
{
	text_puts(images, images->length > 1 ? ",\n" : "");
	text_printf(images, "{\"id\":\"%s\",\"url\":\"/images/%s\",\"status\":\"%s\"}", id, id,
	            status);
}

static void append_image(struct image_service *s, struct upload_key *k, const char *id)
{
	uint32_t width, height;

	if (stored_list_append(&k->images, s, id))
		return;
	if (inflight_find(&s->inflight, id, &width, &height) || store_is_spooled(&s->store, id)) {
		append_status(&k->images, id, "processing");
		k->is_processing = true;
	} else if (!stored_list_append(&k->images, s, id)) { /* stored meanwhile */
		append_status(&k->images, id, "removed");
	}
}

/* Makes the answer from what has become of the images. */
static void answer(struct image_service *s, struct upload_key *k, const struct key_record *r)
{
	k->verdict = UPLOAD_KEY_KNOWN;
	k->failed = r->failed;
	if (r->count == 1)
		memcpy(k->id, r->id[0], sizeof k->id);
	text_init_growable(&k->images, ((size_t)r->count + 1) * (STORED_IMAGE_MAX + 2));
	text_puts(&k->images, "[");
	for (unsigned i = 0; i < r->count; i++)
		append_image(s, k, r->id[i]);
	text_puts(&k->images, "]");
	if (k->images.overflowed) {
		k->verdict = UPLOAD_KEY_FAILED;
		k->err = -ENOMEM;
	}
}

/* ---- begin ---- */

static uint64_t age_of(const struct upload_key *k)
{
	return k->upload->epoch->conf.store.idempotency_age_ms / 1000;
}

/* Reads the record of a key. Returns false if there is none, or its time is over. */
static bool read_record(struct store *s, const struct upload_key *k, struct key_record *r)
{
	if (key_record_read(s, k->name, r)) /* as if it had been lost */
		return false;
	if (r->created + age_of(k) > (uint64_t)time(NULL))
		return true;
	pool_put(r->id);
	return false;
}

static bool is_same_content(const struct upload_key *k, const struct key_record *r)
{
	return memcmp(k->fingerprint, r->fingerprint, sizeof k->fingerprint) == 0;
}

/* Decides by a settled record. Returns whether there is one. */
static bool is_settled(struct image_service *s, struct upload_key *k)
{
	struct key_record r;

	if (!read_record(&s->store, k, &r))
		return false;
	if (r.is_settled && is_same_content(k, &r))
		answer(s, k, &r);
	else if (r.is_settled)
		k->verdict = UPLOAD_KEY_OF_OTHER;
	pool_put(r.id);
	return r.is_settled;
}

/* Settles a record that an earlier process has left. Returns whether its upload has succeeded. */
static bool settle_left(struct image_service *s, struct upload_key *k)
{
	struct key_record r;

	if (!read_record(&s->store, k, &r))
		return false;
	bool has_succeeded = is_complete(&s->store, &r);

	if (!has_succeeded)
		remove_images(&s->store, &r);
	else
		(void)key_record_settle(&s->store, k->name); /* it would be complete again */
	if (has_succeeded && is_same_content(k, &r))
		answer(s, k, &r);
	else if (has_succeeded)
		k->verdict = UPLOAD_KEY_OF_OTHER;
	pool_put(r.id);
	return has_succeeded;
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
static int write_record(struct store *s, const struct upload_key *k, bool is_settled, unsigned good)
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
	int err = key_record_write(s, k->name, &r);

	pool_put(r.id);
	return err;
}

/* The key is the caller's. Returns whether the upload may start. */
static bool begin(struct image_service *s, struct upload_key *k)
{
	if (is_settled(s, k) || settle_left(s, k) || !is_below_limit(&s->keys, k))
		return false;
	k->err = write_record(&s->store, k, false, k->upload->image_count);
	k->verdict = k->err ? UPLOAD_KEY_FAILED : UPLOAD_KEY_NEW;
	if (k->err)
		log_error("store: cannot write the record of an Idempotency-Key: %s; refusing the "
		          "upload",
		          strerror(-k->err));
	return !k->err;
}

/* Records are read before the key is taken, so that answers do not wait for each other; and then
 * once more, because an upload may have ended in between. */
void upload_key_begin(struct image_service *s, struct upload_key *k)
{
	if (!is_settled(s, k) && take(&s->keys, k) && !begin(s, k))
		give(&s->keys, k);
}

/* ---- end ---- */

/* Replaces the record by one of the images that were made. */
static void settle_part(struct store *s, struct upload_key *k, unsigned good)
{
	int err = write_record(s, k, true, good);

	/* The images that have failed would otherwise be missed after a loss of power, and the
	 * others removed. */
	if (!err)
		err = store_flush(s);
	if (!err)
		return;
	log_error("store: cannot write the record of an Idempotency-Key: %s; forgetting the key",
	          strerror(-err));
	(void)key_record_remove(s, k->name);
}

static unsigned count_good(const struct upload *u)
{
	unsigned good = 0;

	for (unsigned i = 0; u && i < u->image_count; i++)
		good += !upload_has_failed(u, i);
	return good;
}

void upload_key_end(struct image_service *s, struct upload_key *k)
{
	const struct upload *u = k->upload;
	unsigned good = count_good(u);
	int err = 0;

	if (good == 0)
		err = key_record_remove(&s->store, k->name);
	else if (good < u->image_count || u->bad_part_count > 0)
		settle_part(&s->store, k, good);
	else
		err = key_record_settle(&s->store, k->name);
	/* The images tell the same, until one of them is removed. */
	if (err)
		log_warning("store: cannot change the record of an Idempotency-Key: %s; the images "
		            "decide",
		            strerror(-err));
	give(&s->keys, k);
}
