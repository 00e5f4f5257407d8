/* claims.c - compares answers and the bucket with what was promised. */
#include "claims.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "s3/s3_objects.h"
#include "store/expiry.h"

#define CLOCK_NS (20 * NS_PER_S) /* ends of images may be off by this */

struct claims claims;

struct photo *photo_find(const char *id)
{
	for (unsigned i = 0; i < claims.images; i++)
		if (strncmp(claims.image[i].id, id, ULID_LENGTH) == 0)
			return &claims.image[i];
	return NULL;
}

bool photo_may_have_ended(const struct photo *image)
{
	uint64_t now = cluster.now_ns + CLOCK_NS + claims.off_ns;
	uint64_t born = (uint64_t)ulid_time(image->id) * NS_PER_S;

	return (image->ends_ns && now >= image->ends_ns) ||
	       (claims.max_age_ns && now >= born + claims.max_age_ns);
}

/* ---- answers ---- */

struct claim claim_begin(const struct photo *image, int node)
{
	return (struct claim){ .is_there = image->is_there && !image->removals &&
		                           (image->spool < 0 || image->spool == node) &&
		                           !photo_may_have_ended(image),
		               .is_gone = image->removed_ns || image->cannot_come };
}

void claim_check(struct photo *image, struct claim claim, bool is_found, bool is_spooled)
{
	if (is_found && claim.is_gone)
		FAIL("%s is there, but must be gone", image->id);
	if (!is_found && !is_spooled && claim.is_there && !image->removals &&
	    !photo_may_have_ended(image))
		FAIL("%s is gone, but was acknowledged or seen", image->id);
	image->is_there |= is_found;
}

void claim_version(struct photo *image, unsigned version)
{
	if (image->version && image->version != version)
		FAIL("%s has the versions %u and %u", image->id, image->version, version);
	image->version = version;
}

/* ---- the bucket ---- */

/* While the record of one upload counts, another one with the key makes no image. */
static void check_key(const struct photo *image)
{
	for (unsigned i = 0; i < claims.images; i++) {
		const struct photo *other = &claims.image[i],
				   *first = other->recorded_ns < image->recorded_ns ? other : image,
				   *second = first == other ? image : other;

		if (other == image || !other->is_made || other->key != image->key ||
		    other->part != image->part)
			continue;
		if (second->recorded_ns < first->recorded_last_ns + (KEY_AGE_S - 2) * NS_PER_S)
			FAIL("one key has made %s and %s", first->id, second->id);
	}
}

static void check_image(const struct object *o)
{
	struct photo *image = photo_find(o->key + sizeof S3_IMAGES + 2);
	char note[S3_KEY_MAX];
	uint64_t expires = 0;

	if (!image || o->size == MARK_SIZE)
		return;
	if (image->removed_ns || image->cannot_come || image->is_made)
		FAIL("%s is made, but must not be any more", image->id);
	image->is_made = true;
	if (image->key && !image->recorded_ns)
		FAIL("%s is made before the record of its key", image->id);
	if (image->key)
		check_key(image);
	sscanf(o->data, "image 1 %*8s %10" SCNu64, &expires);
	s3_note_key(note, image->id, expires);
	if (expires && !bucket_find(note))
		FAIL("%s ends, but has no note", image->id);
}

/* A note goes after its image. */
static void check_note(const struct object *o)
{
	char key[S3_IMAGE_KEY_MAX];
	struct expiry_due due;
	uint64_t expires = 0;

	if (!expiry_read_name(o->key + sizeof S3_EXPIRY - 1, &due))
		return;
	s3_image_key(key, due.id);
	const struct object *image = bucket_find(key);

	if (image && sscanf(image->data, "image 1 %*8s %10" SCNu64, &expires) == 1 &&
	    expires == due.expires)
		FAIL("the note of %s goes before the image", due.id);
}

static void note_record(const struct object *o)
{
	for (unsigned i = 0; i < claims.images; i++) {
		struct photo *image = &claims.image[i];

		if (!strstr(o->data, image->id))
			continue;
		image->recorded_last_ns = cluster.now_ns;
		if (!image->recorded_ns)
			image->recorded_ns = cluster.now_ns;
	}
}

void claims_change(const struct object *o, bool is_removed)
{
	if (is_removed && strncmp(o->key, S3_EXPIRY, sizeof S3_EXPIRY - 1) == 0)
		check_note(o);
	if (is_removed)
		return;
	if (strncmp(o->key, "keys/", 5) == 0)
		note_record(o);
	else if (strncmp(o->key, S3_IMAGES, sizeof S3_IMAGES - 1) == 0 &&
	         strlen(o->key) == S3_IMAGE_KEY_MAX - 1)
		check_image(o);
}
