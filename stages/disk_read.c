/*
 * disk_read.c - reads files that are not in memory, and lists images. It serves GET only, beside
 * the nine stages that an upload takes.
 *
 * Its handler may block, as that of disk_write, and it has threads of its own: a GET never waits
 * behind a put. Files of an S3 store are found by the thread of its client, which sends the job
 * back here as DISK_FOUND. Knows nothing of pixels or HTTP. STAGE_SHARED.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "background/background.h"
#include "base/check.h"
#include "conf/conf_files.h"
#include "http/problem.h"
#include "image/disk_job.h"
#include "image/image_service.h"
#include "s3/s3_stream.h"
#include "sched/core/graph.h"
#include "sched/core/push.h"
#include "stages.h"
#include "storage/storage.h"
#include "store/directory.h"
#include "store/store_verify.h"
#include "store/stored_image.h"

#define SMALL_FILE ((uint64_t)64 << 10) /* is read with its name */

/* One per worker. */
struct read_scratch {
	char piece[DISK_READ_MAX]; /* of a file that is read into the page cache */
};

/* Reads a piece, so that it is in the page cache. Returns 0 or -errno; a file that has become
 * shorter is found by its reader. */
static int read_piece(struct read_scratch *d, const struct disk_job *job)
{
	ssize_t n = directory_read_at(job->fd, d->piece, job->length, (uint64_t)job->at);

	return n < 0 ? (int)n : 0;
}

/* Finds a file. A small one is read as well, so that its content needs no further job. */
static void find_file(struct visit *v, struct disk_job *job)
{
	struct storage *st = &app(v)->images->storage;

	st->class->find(st, job->id, job->name, &job->found, NULL, NULL);
	if (job->found.fd < 0 || job->found.size > SMALL_FILE)
		return;
	job->fd = job->found.fd;
	job->at = 0;
	job->length = (size_t)job->found.size;
	read_piece(visit_scratch(v), job);
}

/* Fills in the 503 of a file that was damaged. */
static void set_damaged(struct disk_job *job, const char *name, const char *suffix, bool is_made)
{
	problem_set(job->problem, 503, "damaged-file",
	            "%s%s of image %s was damaged on the disk, and %s", name, suffix, job->id,
	            is_made ? "is made again from the original" : "cannot be made again");
	if (!is_made)
		job->problem->retry_after_s = 3600; /* somebody has to bring a copy */
}

/* Compares a file with its checksum. */
static void verify(struct visit *v, struct disk_job *job)
{
	struct storage *st = &app(v)->images->storage;
	struct remake *remake = &app(v)->background->remake;
	int err = store_verify(st->files, job->id, job->name, &job->found), made;

	job->result = err == -EUCLEAN ? -EBADMSG : err;
	if (job->result != -EBADMSG)
		return;
	const char *name = err == -EUCLEAN ? STORED_IMAGE : job->name;

	made = remake_damaged(remake, app_conf(v), job->id, name, job->found.fd);
	if (made < 0)
		job->result = made;
	else
		set_damaged(job, name, "", made);
}

/* Fills in the 404 of an image without the variant, or the 503 of one that has lost it. */
static void explain(struct visit *v, struct disk_job *job)
{
	struct storage *st = &app(v)->images->storage;
	struct storage_explanation e = { .id = job->id,
		                         .label = job->name,
		                         .max_age_ms = app_conf(v)->store.max_age_ms };

	job->result = storage_explain(st, &e);
	job->has_original = e.has_original;
	job->is_lost = e.is_lost;
	if (job->is_lost)
		set_damaged(job, job->name,
		            file_format_of_name(job->name) ? "" : file_format_suffix(FILE_JPEG),
		            e.has_original && conf_files_have_label(app_conf(v), job->name));
	else if (strcmp(job->name, STORE_ORIGINAL_NAME) == 0)
		problem_set(job->problem, 404, "not-found",
		            "image %s does not exist, or its original is not kept", job->id);
	else if (e.is_skipped)
		problem_set(job->problem, 404, "variant-skipped",
		            "variant %s of image %s was skipped under load", job->name, job->id);
	else
		problem_set(job->problem, 404, "not-found", "image %s has no variant %s; it has %s",
		            job->id, job->name, e.variants[0] ? e.variants : "none");
}

/* The job comes back from another thread. */
static void come_back(void *arg)
{
	struct disk_job *job = arg;

	if (job->work == DISK_FETCH)
		job->result = job->found.fd < 0 ? job->found.fd : 0;
	bool is_missing =
		job->work == DISK_FIND && job->found.fd == -ENOENT && !job->found.is_spooled;

	job->work = is_missing ? DISK_MISSING : DISK_FOUND;
	stage_push(graph_stage(job->graph, STAGE_DISK_READ), 0, &job->event);
}

/* Serves a job of the line. */
static void read_file(struct visit *v, struct disk_job *job)
{
	struct storage *st = &app(v)->images->storage;

	if (job->work == DISK_MISSING) { /* the image may be stored as former versions did */
		job->found.fd = storage_adopt(st, job->id);
		job->work = job->found.fd ? DISK_FOUND : DISK_AGAIN;
	}
	if (st->class->is_shared &&
	    (job->work == DISK_FIND || job->work == DISK_AGAIN || job->work == DISK_FETCH)) {
		job->graph = app(v)->images->graph; /* another thread finds the file */
		visit_park(v, &job->event);
		if (job->work != DISK_FETCH)
			st->class->find(st, job->id, job->name, &job->found, come_back, job);
		else
			s3_stream_next(&job->found, come_back, job);
		return;
	}
	if (job->work == DISK_FIND)
		find_file(v, job);
	else if (job->work == DISK_EXPLAIN)
		explain(v, job);
	else if (job->work == DISK_VERIFY)
		verify(v, job);
	else if (job->work == DISK_READ)
		job->result = read_piece(visit_scratch(v), job);
	disk_job_reply(v, job);
	struct disk_job *next = disk_reads_end(&app(v)->images->reads);

	if (!next)
		return;
	visit_unpark(v, &next->event);
	visit_yield(v, &next->event, next->length); /* never calls a handler: it costs no stack */
}

static void disk_read_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	struct disk_job *job = disk_job_of(batch[0]);

	assert(n == 1);
	if (job->work != DISK_LIST) {
		read_file(v, job);
		return;
	}
	job->result = stored_list_make(job->list, &app(v)->images->storage);
	disk_job_reply(v, job);
}

const struct stage_class stage_disk_read = {
	.name = "disk_read",
	.kind = STAGE_SHARED,
	.batch_max = 1, /* another thread may read the next file at the same time */
	.scratch_size = sizeof(struct read_scratch),
	.handle = disk_read_handle,
};
