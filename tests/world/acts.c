/* acts.c - what clients ask of nodes, and whether the answers are right. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "bucket.h"
#include "content.h"
#include "image/image.h"
#include "s3/s3_stream.h"
#include "seeds.h"
#include "server.h"
#include "store/stored_image.h"

#define SMALL ((size_t)1500) /* bytes of a file: it comes with the head */
#define LARGE ((size_t)600 << 10)

/* ---- images ---- */

struct photo *new_photo(const struct key *key, unsigned part)
{
	struct photo *image = &claims.image[claims.images];

	if (claims.images == IMAGES_MAX)
		return NULL;
	claims.images++;
	*image = (struct photo){
		.max = draw(16) ? SMALL : LARGE, .spool = -1, .key = key, .part = part
	};
	ulid_new(image->id);
	return image;
}

/* Returns a random image, mostly one of the last: those are busy. */
static struct photo *some_photo(void)
{
	unsigned recent = claims.images < 4 || draw(4) == 0 ? claims.images : 4;

	return recent ? &claims.image[claims.images - 1 - draw(recent)] : NULL;
}

/* An error that is not an answer. */
static void check_error(const struct photo *image, const char *what, int err)
{
	if (err && !bucket.was_hurt && !image->removals && !photo_may_have_ended(image))
		FAIL("%s %s failed without a fault: %s", what, image->id, strerror(-err));
}

struct making {
	char *memory;
	struct content content;
	struct store_file file[CONTENT_FILES];
};

/* Puts images, each in a version of its own, and sets their errors. */
static void put_images(struct server *s, struct photo **image, unsigned count, int *err)
{
	struct making making[PARTS_MAX];
	struct store_item item[PARTS_MAX];

	for (unsigned i = 0; i < count; i++) {
		struct making *m = &making[i];
		unsigned version = ++image[i]->versions;

		m->memory = pool_get(CONTENT_BYTES(image[i]->max));
		content_make(&m->content, m->memory, image[i]->id, version, version, image[i]->max);
		for (unsigned f = 0; f < CONTENT_FILES; f++)
			m->file[f] = (struct store_file){ content_names[f], m->content.data[f],
				                          m->content.size[f], m->content.sum[f] };
		item[i] = (struct store_item){ .place = STORE_IMAGES,
			                       .id = image[i]->id,
			                       .file = m->file,
			                       .file_count = CONTENT_FILES,
			                       .expires = image[i]->expires };
	}
	storage_put(storage_of(s), item, count);
	for (unsigned i = 0; i < count; i++) {
		err[i] = item[i].err;
		tell("node %d has put %s: %s", s->number, image[i]->id, strerror(-err[i]));
		pool_put(making[i].memory);
	}
}

static void do_upload(struct server *s)
{
	struct photo *image = new_photo(NULL, 0);
	int err;

	if (!image)
		return;
	if (draw(4) == 0) {
		uint64_t left_s = 60 + draw(3 * 3600);

		image->expires = (uint64_t)time(NULL) + left_s;
		image->ends_ns = cluster.now_ns + left_s * NS_PER_S;
	}
	if (draw(3) == 0) { /* it is answered when the disk has it */
		image->spool = s->number;
		image->is_there = image->is_busy = true;
	}
	put_images(s, &image, 1, &err);
	check_error(image, "putting", err);
	if (!err && image->is_busy)
		(void)spooling_end(storage_of(s), image->id);
	image->is_there |= !err;
	image->is_busy = false;
}

/* As recovery does with what its disk has. */
static void recover(struct server *s, struct photo *image)
{
	image->is_busy = true;
	int err = storage_has(storage_of(s), image->id);

	if (err > 0) {
		(void)spooling_remove(storage_of(s), image->id);
	} else if (err == 0) {
		put_images(s, &image, 1, &err);
		if (!err)
			(void)spooling_end(storage_of(s), image->id);
	}
	if (err == -ETIME) { /* it is set aside for the operator */
		image->spool = -1;
		image->is_there = false;
	}
	image->is_busy = false;
}

void act_recover(struct server *s)
{
	for (unsigned i = 0; i < claims.images; i++)
		if (claims.image[i].spool == s->number && !claims.image[i].is_busy)
			recover(s, &claims.image[i]);
}

static void do_remove(struct server *s)
{
	struct photo *image = some_photo();

	if (!image)
		return;
	bool is_certain = claim_begin(image, -1).is_there;

	image->removals++;
	int err = storage_remove(storage_of(s), image->id);

	tell("node %d has removed %s: %s", s->number, image->id, strerror(-err));
	if (!err)
		image->removed_ns = cluster.now_ns;
	if (err == -ENOENT && is_certain && image->removals == 1 && !photo_may_have_ended(image))
		FAIL("%s is not there to be removed", image->id);
	if (err && err != -ENOENT && !bucket.was_hurt)
		FAIL("%s cannot be removed: %s", image->id, strerror(-err));
}

/* ---- reading ---- */

/* Returns whether it is what this version has from `at` on. */
static bool is_version(const struct photo *image, unsigned version, unsigned file, uint64_t at,
                       const char *data, size_t size)
{
	char *memory = pool_get(CONTENT_BYTES(image->max));
	struct content c;

	content_make(&c, memory, image->id, version, version, image->max);
	bool is_equal = at + size <= c.size[file] && memcmp(c.data[file] + at, data, size) == 0;

	pool_put(memory);
	return is_equal;
}

static void check_bytes(struct photo *image, unsigned file, uint64_t at, const char *data,
                        size_t size)
{
	unsigned version = image->versions;

	while (version && !is_version(image, version, file, at, data, size))
		version--;
	if (!version)
		FAIL("%s of %s has wrong bytes", content_names[file], image->id);
	if (size >= sizeof(uint64_t)) /* others may be the same by chance */
		claim_version(image, version);
}

static void wake(void *task)
{
	task_go(task);
}

static void find(struct server *s, const struct photo *image, unsigned file,
                 struct store_found *found)
{
	storage_of(s)->class->find(storage_of(s), image->id, content_names[file], found, wake,
	                           task_self());
	task_stop();
	if (found->fd != -ENOENT || found->is_spooled)
		return;
	found->fd = storage_adopt(storage_of(s), image->id);
	if (found->fd)
		return;
	storage_of(s)->class->find(storage_of(s), image->id, content_names[file], found, wake,
	                           task_self());
	task_stop();
}

/* Reads from what was found, and the parts behind it, up to `end`. Returns 0 or -errno. */
static int read_parts(struct photo *image, unsigned file, struct store_found *found, uint64_t at,
                      uint64_t end)
{
	uint64_t begin = at;
	char *data = pool_get(end - at);

	for (;;) {
		if (found->fd >= 0) {
			if (pread(found->fd, data + (at - begin), end - at, 0) !=
			    (ssize_t)found->held)
				FAIL("a part of %s has another size", image->id);
			close(found->fd);
			at += found->held;
		}
		if (found->fd < 0 || at == end)
			break;
		task_sleep(draw(draw(8) ? NS_PER_S : 3600 * NS_PER_S)); /* a slow client */
		s3_stream_next(found, wake, task_self());
		task_stop();
	}
	if (at > begin)
		check_bytes(image, file, begin, data, at - begin);
	pool_put(data);
	return found->fd < 0 ? found->fd : 0;
}

/* Reads a file, or a range of it. */
void act_read(struct server *s, struct photo *image, unsigned file)
{
	struct claim claim = claim_begin(image, s->number);
	struct store_found found = { .fd = -EIO };
	int err = 0;

	find(s, image, file, &found);
	tell("node %d has looked for %s of %s: %s", s->number, content_names[file], image->id,
	     found.fd < 0 ? strerror(-found.fd) : "there");
	if (found.fd >= 0 || found.fd == -ENOENT)
		claim_check(image, claim, found.fd >= 0, found.is_spooled);
	if (found.fd < 0) {
		check_error(image, "reading", found.fd == -ENOENT ? 0 : found.fd);
		return;
	}
	struct s3_stream *stream = found.stream;
	uint64_t at = stream && draw(2) ? draw(found.size) : 0;

	if (at) {
		uint64_t end = at + 1 + draw(found.size - at);

		close(found.fd);
		s3_stream_seek(stream, at, end);
		s3_stream_next(&found, wake, task_self());
		task_stop();
		err = found.fd < 0 ? found.fd : read_parts(image, file, &found, at, end);
	} else {
		err = read_parts(image, file, &found, 0, found.size);
	}
	check_error(image, "reading a part of", err);
	s3_stream_free(stream);
}

static void do_read(struct server *s)
{
	struct photo *image = some_photo();

	if (image)
		act_read(s, image, (unsigned)draw(CONTENT_FILES));
}

/* What GET /images/{id} responds. */
static void do_look(struct server *s)
{
	struct photo *image = some_photo();
	struct text text;

	if (!image)
		return;
	struct claim claim = claim_begin(image, -1);

	text_init_growable(&text, STORED_IMAGE_MAX);
	text_puts(&text, "[");
	int has = stored_list_append(&text, storage_of(s), image->id);

	if (has >= 0)
		claim_check(image, claim, has, false);
	else
		check_error(image, "reading the text of", has);
	text_fini(&text);
}

void act_list(struct server *s)
{
	struct claim *claim = pool_get(IMAGES_MAX * sizeof *claim);
	struct stored_list *list = pool_get(sizeof *list);
	unsigned count = claims.images;

	*list = (struct stored_list){ .page.max = STORED_LIST_MAX };
	for (unsigned i = 0; i < count; i++)
		claim[i] = claim_begin(&claims.image[i], -1);
	int err = stored_list_make(list, storage_of(s));

	tell("node %d has listed %u images: %s", s->number, list->page.count, strerror(-err));
	for (unsigned i = 0; i < count && !err; i++) {
		struct photo *image = &claims.image[i];

		if (!image->is_former) /* it is listed when it has its object */
			claim_check(image, claim[i], strstr(list->images.data, image->id), false);
	}
	text_fini(&list->images);
	pool_put(list);
	pool_put(claim);
}

/* ---- uploads with keys ---- */

/* A form with the images of a key's upload. */
struct form {
	struct upload upload;
	struct photo *list[PARTS_MAX]; /* of claims.h */
	struct upload_key *key;
	char source[8];
};

/* What an answer from memory tells of the images. */
static void check_known(const struct form *form, const struct key *key, uint64_t began_ns)
{
	const struct upload_key *k = form->key;
	uint64_t told = k->failed;

	for (unsigned i = 0; i < claims.images; i++) {
		struct photo *image = &claims.image[i];
		const char *at = strstr(k->images.data, image->id);

		if (!at)
			continue;
		told++;
		bool is_removed = strstr(at, "\"status\":\"removed\"") &&
		                  strncmp(at + ULID_LENGTH, "\",\"url\"", 7) == 0;

		tell("%s is known%s", image->id, is_removed ? " as removed" : "");
		if (image->key != key || image->is_other != (form->source[0] == 'o'))
			FAIL("the answer of another upload has %s", image->id);
		if (is_removed ? !image->removals && !photo_may_have_ended(image)
		               : image->cannot_come ||
		                         (image->removed_ns && image->removed_ns < began_ns))
			FAIL("%s is told as %s", image->id, is_removed ? "removed" : "made");
		if (!is_removed)
			image->is_there = true;
	}
	if (told != key->parts)
		FAIL("an answer tells of %" PRIu64 " images instead of %u", told, key->parts);
}

/* Makes the images of an upload whose key is new, or those that another node has begun. Some cannot
 * be decoded. */
static void make_images(struct server *s, struct form *form)
{
	struct photo *image[PARTS_MAX];
	struct upload *u = &form->upload;
	unsigned of[PARTS_MAX], count = 0;
	int err[PARTS_MAX];

	for (unsigned i = 0; i < u->image_count; i++) {
		form->list[i] = photo_find(u->image[i]->id);
		if (draw(6) == 0) {
			u->image[i]->has_failed = true;
			continue;
		}
		of[count] = i;
		image[count++] = form->list[i];
	}
	put_images(s, image, count, err);
	for (unsigned i = 0; i < count; i++)
		u->image[of[i]]->has_failed = err[i] != 0;
}

/* The upload is answered, unless its key is refused. */
static void end_upload(struct server *s, struct form *form)
{
	struct upload *u = &form->upload;
	unsigned good = 0;

	if (draw(10) == 0)
		task_sleep(draw(30 * NS_PER_S));
	while (upload_key_serve(&s->service, form->key))
		;
	tell("node %d ends a key: %s", s->number,
	     form->key->verdict == UPLOAD_KEY_ENDED ? "well" : form->key->problem.slug);
	if (form->key->verdict != UPLOAD_KEY_ENDED)
		return;
	for (unsigned i = 0; i < u->image_count; i++)
		good += !upload_has_failed(u, i);
	for (unsigned i = 0; i < u->image_count; i++) {
		form->list[i]->is_there |= !upload_has_failed(u, i);
		form->list[i]->cannot_come |= good && upload_has_failed(u, i);
	}
}

static const struct key *some_key(void)
{
	struct key *key = &claims.key[claims.keys];

	if (claims.keys == KEYS_MAX || (claims.keys && draw(3)))
		return &claims.key[claims.keys - 1 - draw(claims.keys < 2 ? 1 : 2)];
	claims.keys++;
	for (unsigned i = 0; i < sizeof key->name; i++)
		key->name[i] = (uint8_t)draw(256);
	key->parts = 1 + (unsigned)draw(PARTS_MAX);
	return key;
}

static void serve_key(struct server *s, struct form *form, const struct key *key)
{
	uint64_t began_ns = cluster.now_ns;

	while (upload_key_serve(&s->service, form->key))
		;
	tell("node %d has a key: verdict %d %s", s->number, (int)form->key->verdict,
	     form->key->problem.slug ? form->key->problem.slug : "");
	if (form->key->verdict == UPLOAD_KEY_KNOWN) {
		check_known(form, key, began_ns);
	} else if (form->key->verdict == UPLOAD_KEY_NEW && draw(10) == 0) {
		form->key->upload = NULL; /* it is not admitted */
		(void)upload_key_serve(&s->service, form->key);
	} else if (form->key->verdict == UPLOAD_KEY_NEW) {
		make_images(s, form);
		end_upload(s, form);
	}
}

/* Returns the same image for the daemon's code. */
static struct image *image_of_form(const struct form *form, const struct photo *photo)
{
	struct image *image = pool_get(sizeof *image);

	memset(image, 0, sizeof *image);
	memcpy(image->id, photo->id, sizeof image->id);
	image->source = (const uint8_t *)form->source;
	image->source_size = 1;
	return image;
}

static void do_key(struct server *s)
{
	const struct key *key = some_key();
	struct form *form = pool_get(sizeof *form);
	struct image *list[PARTS_MAX];

	memset(form, 0, sizeof *form);
	form->source[0] = draw(8) ? 's' : 'o';
	form->key = upload_key_new();
	memcpy(form->key->record.name, key->name, sizeof key->name);
	form->key->upload = &form->upload;
	form->upload = (struct upload){ .service = &s->service,
		                        .epoch = s->service.epochs.now,
		                        .image = list };
	for (unsigned i = 0; i < key->parts; i++) {
		struct photo *photo = new_photo(key, i);

		if (!photo)
			break;
		photo->is_other = form->source[0] == 'o';
		list[form->upload.image_count++] = image_of_form(form, photo);
	}
	if (form->upload.image_count == key->parts)
		serve_key(s, form, key);
	for (unsigned i = 0; i < form->upload.image_count; i++)
		pool_put(list[i]);
	upload_key_free(form->key);
	pool_put(form);
}

void act_of_client(struct server *s)
{
	static void (*const acts[])(struct server *) = { do_upload, do_upload, do_upload, do_remove,
		                                         do_remove, do_read,   do_read,   do_look,
		                                         do_key,    do_key,    do_key,    do_key };

	if (draw(48) == 0)
		act_list(s);
	else
		acts[draw(COUNT_OF(acts))](s);
}
