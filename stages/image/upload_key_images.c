/* upload_key_images.c - looks for images of an earlier upload, and removes them. */
#include "upload_key_images.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "image_service.h"
#include "log/log.h"
#include "spooling.h"
#include "storage.h"
#include "store/stored_image.h"
#include "stored_list.h"
#include "upload_key.h"

/* Returns whether the image is stored, or will be: 1, 0 or -errno. The spool comes before a second
 * look, because the image leaves it when it is stored. */
static int will_be_stored(struct image_service *s, const char *id)
{
	int has = storage_has(s, id);

	if (has == 0)
		has = spooling_has(s, id);
	return has == 0 ? storage_has(s, id) : has;
}

int upload_key_is_complete(struct image_service *s, const struct key_record *r)
{
	int has = r->count > 0;

	for (unsigned i = 0; i < r->count && has > 0; i++)
		has = will_be_stored(s, r->id[i]);
	return has;
}

void upload_key_remove_images(struct image_service *s, const struct key_record *r)
{
	for (unsigned i = 0; i < r->count; i++) {
		int err = storage_remove(s, r->id[i]);

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

/* Returns 0 or -errno. */
static int append_image(struct image_service *s, struct upload_key *k, const char *id)
{
	uint32_t width, height;
	int has = stored_list_append(&k->images, s, id);

	if (has)
		return has < 0 ? has : 0;
	has = inflight_find(&s->inflight, id, &width, &height) ? 1 : spooling_has(s, id);
	if (has < 0)
		return has;
	if (has) {
		append_status(&k->images, id, "processing");
		k->is_processing = true;
		return 0;
	}
	has = stored_list_append(&k->images, s, id); /* stored meanwhile? */
	if (!has)
		append_status(&k->images, id, "removed");
	return has < 0 ? has : 0;
}

void upload_key_answer(struct image_service *s, struct upload_key *k, const struct key_record *r)
{
	int err = 0;

	k->verdict = UPLOAD_KEY_KNOWN;
	k->failed = r->failed;
	if (r->count == 1)
		memcpy(k->id, r->id[0], sizeof k->id);
	text_init_growable(&k->images, ((size_t)r->count + 1) * (STORED_IMAGE_MAX + 2));
	text_puts(&k->images, "[");
	for (unsigned i = 0; i < r->count && !err; i++)
		err = append_image(s, k, r->id[i]);
	text_puts(&k->images, "]");
	if (!err && k->images.overflowed)
		err = -ENOMEM;
	if (err) {
		k->verdict = UPLOAD_KEY_FAILED;
		k->err = err;
	}
}
