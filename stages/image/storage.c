/* storage.c - passes calls on to the store of the configuration. Any thread, unless marked. */
#include "storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "disk_job.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "problem.h"
#include "s3/s3_orphans.h"
#include "s3/s3_spool.h"
#include "s3/s3_store.h"
#include "sched/graph.h"
#include "sched/push.h"
#include "stage_ids.h"
#include "store/store_find.h"
#include "store/store_room.h"
#include "store/stored_image.h"
#include "store/stored_info.h"

/* ---- life ---- */

static int open_files(struct image_service *s, const struct conf *conf)
{
	bool survives_power = conf->server.durability == CONF_DURABILITY_POWER;
	int err = store_open(&s->store, conf->server.root, survives_power, &s->leftovers_cleared);

	if (!err && s->leftovers_cleared)
		log_notice("store: cleared %u unfinished or removed images in %s",
		           s->leftovers_cleared, conf->server.root);
	return err;
}

int storage_open(struct image_service *s, const struct conf *conf)
{
	int err = open_files(s, conf);

	if (err)
		return err;
	if (conf->store.kind == CONF_STORE_S3)
		err = s3_store_open(&s->s3, conf, s->store.incoming_fd);
	if (!err)
		err = spooling_init(s, conf);
	if (err)
		storage_close(s);
	return err;
}

void storage_close(struct image_service *s)
{
	spooling_fini(s);
	s3_store_close(s->s3);
	s->s3 = NULL;
	store_close(&s->store);
}

int storage_start(struct image_service *s)
{
	int err = s->s3 ? s3_store_start(s->s3) : 0;

	return err ? err : spooling_start(s);
}

void storage_stop(struct image_service *s)
{
	s3_store_stop(s->s3); /* which ends what the other thread waits for */
	spooling_stop(s);
}

int storage_tick(struct image_service *s)
{
	if (!s->s3)
		return -1;
	s3_store_check_secret(s->s3);
	return STORAGE_TICK_MS;
}

/* ---- problems ---- */

bool storage_set_problem(int err, struct problem *p)
{
	if (err != S3_AWAY && err != S3_DAMAGED && err != -EBUSY && err != -ECANCELED &&
	    err != SPOOLING_FULL)
		return false;
	problem_set(p, 503, "storage-unavailable",
	            err == S3_DAMAGED      ? "the store's answers are damaged"
	            : err == -EBUSY        ? "too many requests wait for the store"
	            : err == SPOOLING_FULL ? "the spool has store.s3_spool_bytes"
	                                   : "the store does not answer");
	return true;
}

bool storage_is_away(const struct image_service *s)
{
	return s->s3 && s3_store_is_away(s->s3);
}

bool storage_takes(struct image_service *s, uint64_t floor, bool is_spooled, struct problem *p)
{
	uint64_t free_bytes;
	bool needs_files = !s->s3 || (is_spooled && spooling_bridges(s));

	if (storage_is_away(s) && !needs_files)
		return !storage_set_problem(S3_AWAY, p);
	if (s->s3 && needs_files && !spooling_takes(s, p))
		return false;
	if (!needs_files || floor == 0 || store_has_room(&s->store, floor, &free_bytes))
		return true;
	problem_set_free_bytes(p, floor, free_bytes);
	return false;
}

/* ---- images ---- */

uint64_t storage_look(struct image_service *s, enum store_place place)
{
	return s->s3 && place != STORE_SPOOL ? UINT64_MAX : store_look(&s->store);
}

bool storage_holds(struct image_service *s, const struct image *image, struct problem *p)
{
	int err = image->is_spooled ? spooling_hold(s, image->id) : 0;

	if (!err || storage_set_problem(err, p))
		return !err;
	log_notice("image %s: another node has %s it; it is not stored by this one", image->id,
	           err == -ENOENT ? "removed" : "taken");
	problem_set(p, 503, "not-ready", "another node has the image: %s", strerror(-err));
	return false;
}

bool storage_splits(const struct image_service *s)
{
	return s->s3 != NULL;
}

void storage_put(struct image_service *s, struct store_item *items, unsigned count)
{
	if (!s->s3)
		store_put(&s->store, items, count);
	else if (count && items[0].place == STORE_SPOOL)
		spooling_put(s, items, count);
	else
		s3_store_put(s->s3, items, count);
}

int storage_remove_stored(struct image_service *s, const char *id)
{
	return s->s3 ? s3_store_remove(s->s3, id) : store_remove(&s->store, STORE_IMAGES, id);
}

/* It may be in the spool and in the store. */
int storage_remove(struct image_service *s, const char *id)
{
	if (storage_is_away(s))
		return S3_AWAY;
	int spool_err = spooling_remove(s, id), image_err = storage_remove_stored(s, id);

	if (!s->s3)
		store_look(&s->store);
	if (spool_err && spool_err != -ENOENT)
		return spool_err;
	return image_err == -ENOENT ? spool_err : image_err;
}

static int read_objects(struct image_service *s, char (*id)[ULID_LENGTH + 1], unsigned count,
                        storage_reader *reader, void *arg)
{
	struct s3_image image[STORAGE_READ_MAX];
	int err = 0;

	for (unsigned i = 0; i < count; i++)
		image[i] = (struct s3_image){ .id = id[i] };
	if ((err = s3_store_read(s->s3, image, count)))
		return err;
	for (unsigned i = 0; i < count; i++) {
		if (!image[i].err)
			reader(image[i].json.data, image[i].json.length, image[i].expires, arg);
		else if (image[i].err != -ENOENT)
			err = image[i].err;
		text_fini(&image[i].json);
	}
	return err;
}

static void note_image(const char *data, size_t length, uint64_t expires, void *arg)
{
	(void)data, (void)length, (void)expires;
	*(int *)arg = 1;
}

int storage_has(struct image_service *s, const char *id)
{
	char ids[1][ULID_LENGTH + 1];
	int has = 0;

	if (!s->s3)
		return store_has_image(&s->store, id);
	memcpy(ids[0], id, sizeof ids[0]);
	int err = read_objects(s, ids, 1, note_image, &has);

	return err ? err : has;
}

static void read_file(struct image_service *s, const char *id, storage_reader *reader, void *arg)
{
	char data[STORED_IMAGE_MAX + 1], tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = store_open_file(&s->store, id, STORED_IMAGE, &size);

	if (fd < 0)
		return;
	int length = stored_image_read(fd, data);
	uint64_t expires = store_tag(fd, tag);

	close(fd);
	if (length >= 0)
		reader(data, (size_t)length, expires, arg);
}

int storage_read(struct image_service *s, char (*id)[ULID_LENGTH + 1], unsigned count,
                 storage_reader *reader, void *arg)
{
	assert(count <= STORAGE_READ_MAX);
	if (s->s3)
		return read_objects(s, id, count, reader, arg);
	for (unsigned i = 0; i < count; i++)
		read_file(s, id[i], reader, arg);
	return 0;
}

int storage_list(struct image_service *s, struct store_page *page)
{
	return s->s3 ? s3_store_list(s->s3, page) : store_page_read(s->store.root_fd, page);
}

/* ---- the 404 of a variant ---- */

struct explanation {
	const struct conf *conf;
	struct disk_job *job;
};

static int compare_names(const void *a, const void *b)
{
	const struct stored_file *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* An object's image.json names its variants; a file's directory has them. */
static void explain_object(const char *data, size_t length, uint64_t expires, void *arg)
{
	struct explanation *e = arg;
	struct disk_job *job = e->job;
	struct stored_info info;
	char names[CONF_VARIANT_MAX * (CONF_NAME_MAX + 2)];
	uint64_t end = stored_image_end(job->id, expires, e->conf->store.max_age_ms);
	struct text list;

	if ((end && (uint64_t)time(NULL) >= end) || stored_info_read(&info, data, length))
		return;
	job->result = 0;
	if (stored_image_says_skipped(data, length, job->name)) {
		problem_set(job->problem, 404, "variant-skipped",
		            "variant %s of image %s was skipped under load", job->name, job->id);
		return;
	}
	qsort(info.file, info.file_count, sizeof info.file[0], compare_names);
	text_init(&list, names, sizeof names);
	for (unsigned i = 0; i < info.file_count; i++)
		if (strcmp(info.file[i].name, "original") != 0) {
			text_puts(&list, list.length ? ", " : "");
			text_puts(&list, info.file[i].name);
		}
	problem_set(job->problem, 404, "not-found", "image %s has no variant %s; it has %s",
	            job->id, job->name, list.length ? names : "none");
}

static void explain_file(struct store *s, const struct conf *conf, struct disk_job *job)
{
	char data[CONF_VARIANT_MAX * (CONF_NAME_MAX + 2)];
	struct text names;

	job->has_original = stored_image_has_original(s, job->id);
	if (stored_image_has_ended(s, job->id, conf->store.max_age_ms)) {
		job->result = -ENOENT;
		return;
	}
	if (stored_image_has_skipped(s, job->id, job->name)) {
		job->result = 0;
		problem_set(job->problem, 404, "variant-skipped",
		            "variant %s of image %s was skipped under load", job->name, job->id);
		return;
	}

	text_init(&names, data, sizeof data);
	int n = stored_image_variants(s, job->id, &names);

	job->result = n < 0 ? n : 0;
	problem_set(job->problem, 404, "not-found", "image %s has no variant %s; it has %s",
	            job->id, job->name, n > 0 ? data : "none");
}

void storage_explain(struct image_service *s, struct disk_job *job)
{
	struct explanation e = { image_service_conf(s), job };

	if (!s->s3) {
		explain_file(&s->store, e.conf, job);
		return;
	}
	job->has_original = false; /* nothing is made from it */
	job->result = -ENOENT;
	int err = storage_read(s, &job->id, 1, explain_object, &e);

	if (err)
		job->result = err;
}

/* ---- removals of the sweep ---- */

int storage_list_expired(struct image_service *s, uint64_t now, struct expiry_due *due,
                         unsigned max)
{
	return s->s3 ? s3_store_list_expired(s->s3, now, due, max)
	             : expiry_list(&s->store, now, due, max);
}

void storage_forget_expired(struct image_service *s, const char *id, uint64_t expires)
{
	if (s->s3)
		s3_store_forget_expired(s->s3, id, expires);
	else
		expiry_forget(&s->store, id, expires);
}

int storage_batch_add(struct image_service *s, struct store_batch *b, const char *id)
{
	if (!s->s3)
		return store_batch_add(b, &s->store, STORE_IMAGES, id);
	assert(b->count < STORE_BATCH_MAX);
	int err = s3_store_remove(s->s3, id);

	b->count += !err;
	return err;
}

int storage_batch_end(struct image_service *s, const struct store_batch *b)
{
	return s->s3 ? 0 : store_batch_end(b, &s->store);
}

static bool is_not_stored_yet(void *arg, const char *id)
{
	struct image_service *s = arg;
	uint32_t width, height;

	return inflight_find(&s->inflight, id, &width, &height) || spooling_has_file(s, id);
}

int storage_remove_orphans(struct image_service *s, struct s3_orphans *o)
{
	return !s->s3 || storage_is_away(s) ? 0 : s3_orphans_remove(s->s3, o, is_not_stored_yet, s);
}

/* ---- a GET ---- */

bool storage_find_cached(struct image_service *s, const char *id, const char *name,
                         struct store_found *found)
{
	return !s->s3 && store_find_cached(&s->store, id, name, found);
}

void storage_url(struct image_service *s, const char *id, const char *variant, struct text *url)
{
	char name[DISK_JOB_NAME_MAX];

	snprintf(name, sizeof name, "%s.jpg", variant);
	s3_store_url(s->s3, id, name, url);
}

static void job_found(void *arg);

/* What is not stored may be spooled, and if it is not, it may have been stored meanwhile. Returns
 * whether another request has begun. The client's thread. */
static bool find_again(struct disk_job *job)
{
	struct image_service *s = job->service;

	if (job->found.fd != -ENOENT || job->found.is_spooled || !s->spooling.s3 ||
	    job->round++ >= 2)
		return false;
	if (job->round == 1)
		s3_spool_find(s->spooling.s3, job->id, &job->found, job_found, job);
	else
		s3_store_find(s->s3, job->id, job->name, &job->found, job_found, job);
	return true;
}

static void job_found(void *arg)
{
	struct disk_job *job = arg;

	/* Of an image that waits for the store, the store need not be asked. */
	if (job->found.fd == S3_AWAY && job->found.is_spooled)
		job->found.fd = -ENOENT;
	if (find_again(job))
		return;
	job->work = DISK_FOUND;
	stage_push(graph_stage(job->service->graph, STAGE_DISK_WRITE), 0, &job->event);
}

bool storage_finds_later(const struct image_service *s)
{
	return s->s3 != NULL;
}

void storage_find(struct image_service *s, struct disk_job *job)
{
	if (!s->s3) {
		store_find(&s->store, job->id, job->name, &job->found);
		return;
	}
	job->service = s;
	/* Before the store is asked: an image leaves the spool after it is stored. */
	job->found.is_spooled = spooling_has_file(s, job->id);
	job->round = 0;
	s3_store_find(s->s3, job->id, job->name, &job->found, job_found, job);
}
