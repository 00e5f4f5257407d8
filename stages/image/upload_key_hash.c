/* upload_key_hash.c - the hash of an upload's content. The disk's threads. */
#include <string.h>

#include "image.h"
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
