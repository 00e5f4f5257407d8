/* upload_key_hash.c - the hash of an upload's content. The disk's threads. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "conf_epoch.h"
#include "image.h"
#include "store/stored_lack.h"
#include "upload.h"
#include "upload_key.h"

#define HASH_TURN_MAX ((size_t)1 << 20)

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

bool upload_key_is_for(const struct upload *u)
{
	return u->image_count == 1 && u->bad_part_count == 0 && u->expires == 0;
}

/* The settings of all variants, as they are made for this upload. */
static void hash_plan(struct upload_key *k)
{
	const struct conf_epoch *epoch = k->upload->epoch;
	char data[STORED_SETTINGS_MAX];

	hash_number(k, epoch->conf.server.keep_originals);
	for (unsigned i = 0; i < epoch->conf.variant_count; i++) {
		struct conf_variant made;
		struct text t;
		struct json j;

		bool is_made = conf_degrade_variant(&epoch->degrade, k->upload->level,
		                                    &epoch->conf.variant[i], &made);

		text_init(&t, data, sizeof data);
		json_init(&j, &t);
		json_object(&j, NULL);
		stored_settings_json(&j, &made);
		hash_text(k, made.name);
		hash_data(k, data, t.length);
		hash_number(k, is_made);
	}
}

/* Makes the name of a key of the content: whose, what, and how it is made. */
static void name_content(struct upload_key *k)
{
	sha256_init(&k->context);
	hash_data(k, k->name, sizeof k->name);
	hash_data(k, k->fingerprint, sizeof k->fingerprint);
	hash_text(k, k->upload->focus);
	hash_plan(k);
	sha256_digest(&k->context, sizeof k->name, k->name);
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
		if (k->hashed == 0 && !k->is_content) {
			hash_text(k, image->part_name);
			hash_text(k, image->file_name);
		}
		if (k->hashed == 0)
			hash_number(k, image->source_size);
		sha256_update(&k->context, left < room ? left : room, image->source + k->hashed);
		if (left > room) {
			k->hashed += room;
			return true;
		}
		turn += left;
	}
	hash_rest(k);
	if (k->is_content)
		name_content(k);
	return false;
}
