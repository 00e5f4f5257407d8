/* remade.c - opens a stored image, reads its original, and starts it. */
#include "remade.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "base/pool.h"
#include "image.h"
#include "image_service.h"
#include "store/store_find.h"
#include "store/stored_info.h"
#include "store/stored_lack.h"

/* ---- the stored image ---- */

void remade_free(struct remade *r)
{
	if (!r)
		return;
	if (r->directory_fd >= 0)
		close(r->directory_fd);
	free(r);
}

/* Returns whether the document is as it was written, and reads what the figures need. */
static bool is_sound(struct remade *r)
{
	char own[CHECKSUM_LENGTH + 1];
	struct stored_info info;

	if (stored_info_read(&info, r->document, r->length))
		return false;
	r->bytes = stored_info_bytes(&info);
	memcpy(r->token, info.token, sizeof r->token);
	if (!info.has_record)
		return true;
	checksum_of(r->document, info.own_sum_at, own);
	return strcmp(own, info.own_sum) == 0;
}

static int read_document(struct remade *r)
{
	int fd = openat(r->directory_fd, STORED_IMAGE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -EBADMSG : -errno;
	int length = stored_image_read(fd, r->document);
	char tag[STORE_TAG_MAX];

	r->expires = store_tag(fd, tag);
	close(fd);
	if (length < 0)
		return length == -EFBIG ? -EBADMSG : length;
	r->length = (size_t)length;
	return is_sound(r) ? 0 : -EBADMSG;
}

static int open_stored(struct image_service *s, const struct remade_order *order,
                       struct remade **result)
{
	struct remade *r = calloc(1, sizeof *r);

	if (!r)
		return -ENOMEM;
	r->slot = order->slot;
	r->missing = order->missing;
	r->directory_fd = store_open_directory(&s->store, order->id);
	int err = r->directory_fd < 0 ? r->directory_fd : read_document(r);

	if (err)
		remade_free(r);
	else
		*result = r;
	return err;
}

/* Returns the variants to make, one bit for each. */
static uint32_t variants_to_make(const struct remake_entry *entry, const struct conf *conf,
                                 const struct stored_lack *lack)
{
	uint32_t lacking = lack->missing | (entry->only_missing ? 0 : lack->differs), wanted = 0;

	for (unsigned i = 0; i < conf->variant_count; i++)
		if (remake_entry_wants(entry, conf->variant[i].name))
			wanted |= UINT32_C(1) << i;
	return lacking & wanted;
}

void remade_set_item(struct store_item *item, const struct remade *r, const char *data,
                     size_t length)
{
	struct stored_info info;

	item->place = STORE_REPLACED;
	item->token = r->token;
	item->old_fd = r->directory_fd;
	item->old_bytes = r->bytes;
	item->new_bytes =
		stored_info_read(&info, data, length) ? r->bytes : stored_info_bytes(&info);
}

/* ---- the original ---- */

static int read_all(int fd, uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Compares the original with the record, if that has its checksum. */
static int check_original(struct remade *r, const uint8_t *data, size_t size)
{
	char expected[CHECKSUM_LENGTH + 1];
	const char *all = json_reader_check(r->document, r->length);
	const char *record = all ? json_reader_member(all, STORED_RECORD) : NULL;
	const char *original = record ? json_reader_member(record, "original") : NULL;
	const char *sum = original ? json_reader_member(original, "xxh128") : NULL;

	checksum_of(data, size, r->original_sum);
	if (!json_reader_ascii(sum, expected, sizeof expected))
		return 0;
	return strcmp(expected, r->original_sum) == 0 ? 0 : -EBADMSG;
}

static int read_original(struct remade *r, uint8_t *data, size_t size)
{
	int fd = openat(r->directory_fd, STORE_ORIGINAL, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ENODATA : -errno;
	int err = read_all(fd, data, size);

	close(fd);
	return err ? err : check_original(r, data, size);
}

/* ---- room ---- */

/* Takes a place among the images in flight. */
static int take_place(const struct upload *u)
{
	struct image_service *s = u->service;
	uint64_t before = atomic_fetch_add_explicit(&s->in_flight, 1, memory_order_relaxed);

	if (before < u->epoch->conf.limits.images_in_flight)
		return 0;
	atomic_fetch_sub_explicit(&s->in_flight, 1, memory_order_relaxed);
	return -EAGAIN;
}

/* Makes an upload of the original, with memory for it. Returns NULL without room. */
static struct upload *make_upload(struct image_service *s, const char *id, size_t size)
{
	struct budget_body memory;
	uint8_t *body;
	struct upload *u;

	budget_body_init(&s->budget, &memory,
	                 size <= budget_small_max(&s->budget) ? BUDGET_SMALL_BODY : BUDGET_BODY,
	                 NULL);
	if (!budget_body_try(&s->budget, &memory, size))
		return NULL;
	body = pool_get(size);
	u = body ? upload_new(s, 0, body, &memory, 1, 0) : NULL;
	if (!u) {
		pool_put(body);
		budget_body_release(&s->budget, &memory);
		return NULL;
	}
	struct image *image = upload_add_image(u, body, size, "", 0, "", 0);

	memcpy(image->id, id, sizeof image->id);
	return u;
}

/* ---- start ---- */

/* Without a focal point it stays empty. */
static void read_focus(const struct remade *r, struct upload *u)
{
	const char *all = json_reader_check(r->document, r->length);

	if (!json_reader_ascii(all ? json_reader_member(all, STORED_FOCUS) : NULL, u->focus,
	                       sizeof u->focus))
		u->focus[0] = '\0';
}

/* Finds what is to be made. Returns 0, REMADE_COMPLETE or -errno. */
static int find_variants(const struct remade_order *order, struct remade *r,
                         const struct conf *conf, struct stored_lack *lack, uint32_t *made)
{
	if (stored_lack_find(lack, conf, r->directory_fd, r->document, r->length))
		return -EBADMSG;
	*made = variants_to_make(order->entry, conf, lack);
	r->is_complete = !((lack->missing | lack->differs) & ~*made);
	if (*made == 0)
		return REMADE_COMPLETE;
	return lack->has_original ? 0 : -ENODATA;
}

/* Starts the image. Owns r. */
static int start(struct image_service *s, const struct remade_order *order, struct remade *r,
                 uint64_t size)
{
	struct upload *u = make_upload(s, order->id, (size_t)size);
	struct stored_lack lack;
	uint32_t made;

	if (!u) {
		remade_free(r);
		return -EAGAIN;
	}
	u->image[0]->remade = r;
	u->expires = r->expires;
	read_focus(r, u);
	int err = find_variants(order, r, &u->epoch->conf, &lack, &made);

	if (!err && lack.original_bytes != size)
		err = -EBADMSG;
	if (!err)
		err = read_original(r, u->body, (size_t)size);
	if (!err)
		err = take_place(u);
	if (!err) {
		image_make_only(u->image[0], made);
		u->image[0]->event.size = size * REMADE_WEIGHT;
		if (upload_restart(u))
			return 0;
		atomic_fetch_sub_explicit(&s->in_flight, 1, memory_order_relaxed);
		err = -EALREADY;
	}
	upload_unref(u);
	return err;
}

int remade_start(struct image_service *s, const struct remade_order *order)
{
	uint32_t width, height, made;
	struct stored_lack lack;
	struct remade *r;

	if (inflight_find(&s->inflight, order->id, &width, &height))
		return -EALREADY;
	int err = open_stored(s, order, &r);

	if (err)
		return err;
	/* A first look, so that most images need no memory. */
	struct conf_epoch *epoch = conf_epoch_ref(&s->epochs);

	err = find_variants(order, r, &epoch->conf, &lack, &made);
	conf_epoch_unref(&s->epochs, epoch);
	if (!err && lack.original_bytes > budget_max(&s->budget))
		err = -EFBIG;
	if (!err)
		return start(s, order, r, lack.original_bytes);
	remade_free(r);
	return err;
}
