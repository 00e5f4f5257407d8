/*
 * disk_write.c - writes finished images into the store, removes images, and remembers the keys of
 * uploads.
 *
 * Its handler may block, as that of disk_read; it has threads of its own. All waiting jobs, up to
 * DISK_BATCH_MAX, are one commit (group commit). So an image waits for a flush in progress and for
 * its own, and on a slower disk more images share one flush. Knows nothing of pixels or HTTP.
 * STAGE_SHARED.
 */
#include <errno.h>
#include <string.h>

#include "app.h"
#include "background/background.h"
#include "base/round.h"
#include "base/text.h"
#include "conf/conf.h"
#include "http/problem.h"
#include "image/conf_epoch.h"
#include "image/disk_job.h"
#include "image/image.h"
#include "image/image_json.h"
#include "image/image_service.h"
#include "image/remade.h"
#include "image/upload_key.h"
#include "log/log.h"
#include "stages.h"
#include "storage/storage.h"
#include "store/checksum.h"
#include "store/spool.h"
#include "store/store.h"
#include "store/stored_image.h"

#define DISK_BATCH_MAX 16
#define BELOW_FLOOR 1   /* an error beside -errno: limits.free_bytes would not be left */
#define NOT_WANTED 2    /* another one: the image has its problem */
#define BLOCK_SIZE 4096 /* of most file systems; a directory takes one, too */

static_assert(UPLOAD_FIELD_MAX <= SPOOL_FILE_NAME_MAX, "a note has room for an upload's file name");
static_assert(FOCUS_TEXT_MAX == SPOOL_FOCUS_MAX, "a note has room for a focal point");

/* The files of one commit; one per worker. Sending an event may call this handler again, so they
 * are used only until the first event is sent. */
struct disk_scratch {
	struct store_item item[DISK_BATCH_MAX];
	struct store_file file[DISK_BATCH_MAX][STORED_FILES_MAX];
	char metadata[DISK_BATCH_MAX][STORED_IMAGE_MAX];
	char sum[DISK_BATCH_MAX][STORED_FILES_MAX][CHECKSUM_LENGTH + 1];
};

/* Counts and logs a failure of the store, and sets the image's problem. */
static void problem_from_store(struct visit *v, struct problem *p, const struct image *image,
                               int err)
{
	struct server_counters *counters = app(v)->counters;
	bool is_full = err == -ENOSPC || err == -EDQUOT || err == BELOW_FLOOR;

	counter_add_shared(is_full ? &counters->store_full : &counters->store_failed);
	log_error("image %s: cannot store it for request %s: %s", image->id, image_request(image),
	          err == BELOW_FLOOR ? "limits.free_bytes of the disk would not be left"
	                             : strerror(-err));
	if (image_service_set_problem(err, p))
		return;
	if (err == BELOW_FLOOR)
		problem_set_free_bytes(p, image->upload->epoch->conf.limits.free_bytes,
		                       atomic_load_explicit(&app(v)->images->store.free_bytes,
		                                            memory_order_relaxed));
	else if (err == -ETIME)
		problem_set(p, 404, "not-found",
		            "the image was uploaded so long ago that it may have been removed");
	else if (is_full)
		problem_set(p, 507, "storage-full", "%s", strerror(-err));
	else if (err == -ENOENT)
		problem_set(p, 503, "storage-missing", "%s",
		            store_lost_reason(&app(v)->images->store));
	else
		problem_set(p, 500, "storage-failed", "%s", strerror(-err));
}

static struct store_file summed_file(const char *name, const void *data, size_t size,
                                     char sum[CHECKSUM_LENGTH + 1])
{
	checksum_of(data, size, sum);
	return (struct store_file){ name, data, size, sum };
}

/* Lists the files of a finished image, and gives them their versions. Returns 0 or -ENOMEM.
 */
static int list_files(struct disk_scratch *d, unsigned index, struct image *image)
{
	struct store_file *file = d->file[index];
	char(*sum)[CHECKSUM_LENGTH + 1] = d->sum[index];
	const struct conf_epoch *epoch = image->upload->epoch;
	const struct conf_files *files = &image_plan(image)->files;
	bool is_remade = image->remade != NULL;
	unsigned n = 0;
	struct image_sums sums = { .file = (const char(*)[CHECKSUM_LENGTH + 1]) sum };
	struct text metadata;

	for (unsigned i = 0; i < files->count; i++) {
		struct image_file *made = &image->file[i];

		if (!image_has(image, i))
			continue;
		file[n++] = summed_file(files->file[i].name, made->data, made->size, sum[i]);
		memcpy(made->version, sum[i], IMAGE_VERSION_MAX - 1);
	}
	if (!is_remade && epoch->conf.server.keep_originals == CONF_YES) {
		char *of_original = sum[CONF_FILE_MAX];

		file[n++] =
			summed_file(STORE_ORIGINAL, image->source, image->source_size, of_original);
		sums.original = of_original;
	}
	text_init(&metadata, d->metadata[index], sizeof d->metadata[index]);
	if (is_remade)
		remade_record_write(&metadata, image, &sums);
	else
		image_record_write(&metadata, image, &sums);
	if (metadata.overflowed)
		return -ENOMEM;
	file[n++] =
		summed_file(STORED_IMAGE, metadata.data, metadata.length, sum[CONF_FILE_MAX + 1]);
	d->item[index] = (struct store_item){ .place = STORE_IMAGES,
		                              .id = image->id,
		                              .file = file,
		                              .file_count = n,
		                              .token = image->upload->token_name,
		                              .expires = image->upload->expires };
	if (is_remade)
		remade_set_item(&d->item[index], image->remade, metadata.data, metadata.length);
	return 0;
}

/* Lists the files of an image to spool. */
static void list_spooled(struct disk_scratch *d, unsigned index, const struct image *image)
{
	struct store_file *file = d->file[index];
	struct spool_names names = { .expires = image->upload->expires,
		                     .metadata = image->upload->metadata };

	memcpy(names.file, image->file_name, sizeof image->file_name);
	memcpy(names.token, image->upload->token_name, sizeof names.token);
	memcpy(names.focus, image->upload->focus, sizeof names.focus);
	file[0] = (struct store_file){ STORE_ORIGINAL, image->source, image->source_size, NULL };
	file[1] = (struct store_file){ SPOOL_NOTE, d->metadata[index],
		                       spool_note(d->metadata[index], &names), NULL };
	d->item[index] = (struct store_item){
		.place = STORE_SPOOL, .id = image->id, .file = file, .file_count = 2
	};
}

static void end_spool(struct visit *v, struct disk_job *job, int err)
{
	struct image *image = job->image;
	struct problem problem;

	if (err)
		problem_from_store(v, &problem, image, err);
	else
		recovery_watch(image);
	visit_park(v, &job->event);
	image_spooled(v, image, err ? &problem : NULL);
}

/* Sends the image's event to stats. */
static void end_store(struct visit *v, struct disk_job *job, int err)
{
	struct image *image = job->image;
	struct problem problem;

	if (err == -ENOENT && image->remade && store_check(&app(v)->images->store)) {
		image->remade->is_gone = true;
		problem_set(&problem, 404, "not-found", "image %s was removed", image->id);
	} else if (err == -ESTALE && image->remade) {
		image->remade->is_stale = true;
		problem_set(&problem, 503, "not-ready", "image %s was remade meanwhile", image->id);
	} else if (err && err != NOT_WANTED) {
		problem_from_store(v, &problem, image, err);
	}
	if (err && err != NOT_WANTED)
		image_set_problem(image, &problem);
	/* If the daemon ends before, recovery finds both. */
	if (!err && image->is_spooled &&
	    (err = spooling_end(&app(v)->images->storage, image->id))) {
		log_warning("image %s: cannot remove it from the spool: %s; retrying later",
		            image->id, strerror(-err));
		image->stays_spooled = true;
	}
	visit_park(v, &job->event);
	visit_unpark(v, &image->event);
	visit_send(v, STAGE_STATS, &image->event);
}

/* Returns whether the item leaves limits.free_bytes of *free_bytes, and takes its size off those.
 */
static bool leaves_floor(const struct store_item *item, const struct image *image,
                         uint64_t *free_bytes)
{
	uint64_t floor = image->upload->epoch->conf.limits.free_bytes, bytes = BLOCK_SIZE;

	for (unsigned i = 0; i < item->file_count; i++)
		bytes += round_up(item->file[i].size, BLOCK_SIZE);
	if (floor > 0 && *free_bytes < floor + bytes)
		return false;
	*free_bytes -= bytes < *free_bytes ? bytes : *free_bytes;
	return true;
}

/* The jobs of a call, as they came: an image that is spooled may come back as one to store before
 * the call ends. */
struct disk_batch {
	struct disk_job *job[DISK_BATCH_MAX];
	enum disk_work work[DISK_BATCH_MAX];
	int err[DISK_BATCH_MAX]; /* of commit() */
	unsigned count;
};

/* Makes one commit of all jobs that spool, of all that store, or both. */
static void commit(struct visit *v, struct disk_batch *b, bool spools, bool stores)
{
	struct disk_scratch *d = visit_scratch(v);
	bool is_backfilled[DISK_BATCH_MAX];
	unsigned index[DISK_BATCH_MAX], count = 0;
	uint64_t free_bytes = storage_look(&app(v)->images->storage, !stores);

	for (unsigned i = 0; i < b->count; i++) {
		bool is_stored = b->work[i] == DISK_STORE;
		int err = 0;

		if (!(is_stored ? stores : spools && b->work[i] == DISK_SPOOL))
			continue; /* it may have ended */
		struct image *image = b->job[i]->image;
		struct problem problem;

		if (!is_stored) {
			list_spooled(d, count, image);
		} else if (files_are_wanted(v, image, &problem)) {
			err = list_files(d, count, image);
		} else { /* nothing of the image is in the store */
			image_set_problem(image, &problem);
			err = NOT_WANTED;
		}
		if (!err && !leaves_floor(&d->item[count], image, &free_bytes))
			err = BELOW_FLOOR;
		b->err[i] = err;
		if (err)
			continue;
		is_backfilled[count] =
			is_stored && remake_skipped(&app(v)->background->remake, image);
		index[count++] = i;
	}
	storage_put(&app(v)->images->storage, d->item, count);
	for (unsigned k = 0; k < count; k++) {
		b->err[index[k]] = d->item[k].err;
		if (is_backfilled[k])
			remake_skipped_end(&app(v)->background->remake, b->job[index[k]]->image,
			                   d->item[k].err);
	}
}

static void remove_image(struct visit *v, struct disk_job *job, int err)
{
	(void)err;
	job->result = storage_remove(&app(v)->images->storage, job->id);
	if (job->result && job->result != -ENOENT)
		log_error("image %s: cannot remove it: %s; responding by an error", job->id,
		          strerror(-job->result));
	disk_job_reply(v, job);
}

/* Uploads are hashed in turns, so that the others of the batch do not wait for all of one. */
static void serve_key(struct visit *v, struct disk_job *job, int err)
{
	(void)err;
	if (upload_key_serve(app(v)->images, job->key)) {
		visit_yield(v, &job->event, 0);
		return;
	}
	if (job->key->verdict == UPLOAD_KEY_KNOWN)
		counter_add_shared(&app(v)->counters->uploads_replayed);
	disk_job_reply(v, job);
}

/* Serves the jobs of one kind. */
static void serve(struct visit *v, const struct disk_batch *b, enum disk_work work,
                  void (*end)(struct visit *v, struct disk_job *job, int err))
{
	for (unsigned i = 0; i < b->count; i++)
		if (b->work[i] == work)
			end(v, b->job[i], b->err[i]);
}

/* Uploads wait for commits, which come first. Commits to an S3 store may take long, so keys do not
 * wait for them. */
static void disk_write_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	struct disk_batch b = { .count = n };
	bool is_shared = app(v)->images->storage.class->is_shared;

	assert(n <= DISK_BATCH_MAX);
	for (unsigned i = 0; i < n; i++) {
		b.job[i] = disk_job_of(batch[i]);
		b.work[i] = b.job[i]->work;
	}
	commit(v, &b, true, !is_shared);
	serve(v, &b, DISK_SPOOL, end_spool);
	serve(v, &b, DISK_KEY, serve_key);
	if (is_shared)
		commit(v, &b, false, true);
	serve(v, &b, DISK_STORE, end_store);
	serve(v, &b, DISK_REMOVE, remove_image);
}

const struct stage_class stage_disk_write = {
	.name = "disk_write",
	.kind = STAGE_SHARED,
	.batch_max = DISK_BATCH_MAX,
	.scratch_size = sizeof(struct disk_scratch),
	.handle = disk_write_handle,
};
