/*
 * disk_write.c - puts finished images into the store, and takes removed ones out.
 *
 * The only stage whose handler may block; its group's threads are there for that. All that waits
 * when a thread comes, up to DISK_BATCH_MAX, is one commit (group commit): so an image waits for a
 * flush that others have begun, and for its own, and the slower the disk, the more share one. Knows
 * nothing of pixels or HTTP. STAGE_SHARED.
 */
#include "image/disk_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/json.h"
#include "base/text.h"
#include "image/image.h"
#include "log/log.h"
#include "stages.h"
#include "store/spool.h"

#define METADATA_BYTES_MAX (16u << 10) /* image.json of 16 variants takes a quarter of it */
#define DISK_BATCH_MAX 16
#define FILE_COUNT_MAX (CONF_VARIANT_MAX + 2) /* the variants, image.json, the original */

/* What a commit is made of; one per worker. Handlers that send may be called again for what they
 * have sent, so it is used only until the first event is sent. */
struct disk_scratch {
	struct store_item item[DISK_BATCH_MAX];
	struct store_file file[DISK_BATCH_MAX][FILE_COUNT_MAX];
	char metadata[DISK_BATCH_MAX][METADATA_BYTES_MAX];
};

/* Status and slug for a failure of the store, and a message for the operator. */
static void store_problem(struct server *s, struct problem *p, const struct image *image, int err)
{
	bool is_full = err == -ENOSPC || err == -EDQUOT;

	atomic_fetch_add_explicit(is_full ? &s->store_full : &s->store_failed, 1,
	                          memory_order_relaxed);
	log_error("image %s of request %s cannot be stored: %s", image->id, image_request(image),
	          strerror(-err));
	if (is_full)
		problem_set(p, 507, "storage-full", "%s", strerror(-err));
	else
		problem_set(p, 500, "storage-failed", "%s", strerror(-err));
}

static struct disk_job *disk_job_of(struct event *ev)
{
	return CONTAINER_OF(ev, struct disk_job, event);
}

/* The files of a finished image. 0 or -ENOMEM. */
static int list_files(struct disk_scratch *d, unsigned index, const struct image *image)
{
	struct store_file *file = d->file[index];
	const struct conf_epoch *epoch = image->upload->epoch;
	unsigned n = epoch->plan.variant_count;
	struct text metadata;
	struct json j;

	text_init(&metadata, d->metadata[index], sizeof d->metadata[index]);
	json_init(&j, &metadata);
	json_object(&j, NULL);
	image_json(&j, image, true);
	json_object_end(&j);
	text_puts(&metadata, "\n");
	if (metadata.overflowed)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		file[i] = (struct store_file){ epoch->file_name[i], image->variant[i].data,
			                       image->variant[i].size };
	file[n] = (struct store_file){ "image.json", metadata.data, metadata.length };
	if (epoch->conf.server.keep_originals == CONF_YES)
		file[++n] =
			(struct store_file){ STORE_ORIGINAL, image->source, image->source_size };
	d->item[index] = (struct store_item){
		.place = STORE_IMAGES, .id = image->id, .file = file, .file_count = n + 1
	};
	return 0;
}

static void list_spooled(struct disk_scratch *d, unsigned index, const struct image *image)
{
	struct store_file *file = d->file[index];

	file[0] = (struct store_file){ STORE_ORIGINAL, image->source, image->source_size };
	file[1] = (struct store_file){ SPOOL_NOTE, d->metadata[index],
		                       spool_note(d->metadata[index], image->file_name) };
	d->item[index] = (struct store_item){
		.place = STORE_SPOOL, .id = image->id, .file = file, .file_count = 2
	};
}

/* What is spooled of a stored image is not needed any more; unless it has gone: then the image was
 * removed before it was made again. If the daemon ends before this, recovery finds both. */
static void unspool(struct server *s, struct image *image)
{
	int err = store_unspool(&s->store, image->id);

	if (err == -ENOENT)
		err = store_remove(&s->store, STORE_IMAGES, image->id);
	if (!err || err == -ENOENT) /* removed in the same batch */
		return;
	log_warning("image %s is stored or removed, but not out of the spool yet: %s", image->id,
	            strerror(-err));
	image->stays_spooled = true;
}

static void spooled(struct visit *v, struct disk_job *job, int err)
{
	struct image *image = job->image;
	struct problem problem;

	if (err)
		store_problem(visit_app(v), &problem, image, err);
	visit_park(v, &job->event);
	image_spooled(v, image, err ? &problem : NULL);
}

/* The image's event goes on to stats, with its problem if it has one. */
static void stored(struct visit *v, struct disk_job *job, int err)
{
	struct image *image = job->image;

	if (err) {
		struct problem problem;

		store_problem(visit_app(v), &problem, image, err);
		image_set_problem(image, &problem);
	} else if (image->is_spooled) {
		unspool(visit_app(v), image);
	}
	visit_park(v, &job->event);
	visit_unpark(v, &image->event);
	visit_send(v, STAGE_STATS, &image->event);
}

/* One commit of all jobs that store; their results, in their order, go to err[]. */
static void commit(struct visit *v, struct event *const *batch, unsigned n, int err[DISK_BATCH_MAX])
{
	struct server *s = visit_app(v);
	struct disk_scratch *d = visit_scratch(v);
	unsigned index[DISK_BATCH_MAX], count = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct disk_job *job = disk_job_of(batch[i]);

		err[i] = 0;
		if (job->work == DISK_REMOVE)
			continue;
		if (job->work == DISK_SPOOL)
			list_spooled(d, count, job->image);
		else
			err[i] = list_files(d, count, job->image);
		if (!err[i])
			index[count++] = i;
	}
	store_put(&s->store, d->item, count);
	for (unsigned k = 0; k < count; k++)
		err[index[k]] = d->item[k].err;
}

/* An image that is in the spool is there to be made again, or was stored and not taken out yet. */
static int remove_both(struct store *s, const char *id)
{
	int spool_err = store_remove(s, STORE_SPOOL, id),
	    image_err = store_remove(s, STORE_IMAGES, id);

	if (spool_err && spool_err != -ENOENT)
		return spool_err;
	return image_err == -ENOENT ? spool_err : image_err;
}

static void remove_image(struct visit *v, struct disk_job *job)
{
	struct server *s = visit_app(v);
	struct event *reply = job->reply;
	unsigned instance = job->reply_instance;

	job->result = remove_both(&s->store, job->id);
	if (job->result && job->result != -ENOENT)
		log_error("image %s cannot be removed: %s", job->id, strerror(-job->result));
	visit_park(v,
	           &job->event); /* before the reply: its owner may use the job again, or free it */
	visit_unpark(v, reply);
	visit_send_to(v, STAGE_ACCEPT_READ, instance, reply);
}

static void disk_write_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	int err[DISK_BATCH_MAX];

	assert(n <= DISK_BATCH_MAX);
	commit(v, batch, n, err);
	for (unsigned i = 0; i < n; i++) {
		struct disk_job *job = disk_job_of(batch[i]);

		if (job->work == DISK_REMOVE)
			remove_image(v, job);
		else if (job->work == DISK_SPOOL)
			spooled(v, job, err[i]);
		else
			stored(v, job, err[i]);
	}
}

const struct stage_class stage_disk_write = {
	.name = "disk_write",
	.kind = STAGE_SHARED,
	.batch_max = DISK_BATCH_MAX,
	.scratch_size = sizeof(struct disk_scratch),
	.handle = disk_write_handle,
};
