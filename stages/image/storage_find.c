/* storage_find.c - files and objects for a GET, and what is said of those that are missing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "disk_job.h"
#include "image_service.h"
#include "problem.h"
#include "s3/s3_spool.h"
#include "s3/s3_store.h"
#include "s3/s3_stream.h"
#include "sched/graph.h"
#include "sched/push.h"
#include "stage_ids.h"
#include "storage.h"
#include "store/store_find.h"
#include "store/stored_image.h"
#include "store/stored_info.h"

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
		s3_stream_find(s->s3, job->id, job->name, &job->found, job_found, job);
	return true;
}

static void send_back(struct disk_job *job)
{
	job->work = DISK_FOUND;
	stage_push(graph_stage(job->service->graph, STAGE_DISK_WRITE), 0, &job->event);
}

static void job_found(void *arg)
{
	struct disk_job *job = arg;

	/* Of an image that waits for the store, the store need not be asked. */
	if (job->found.fd == S3_AWAY && job->found.is_spooled)
		job->found.fd = -ENOENT;
	if (!find_again(job))
		send_back(job);
}

static void job_fetched(void *arg)
{
	struct disk_job *job = arg;

	job->result = job->found.fd < 0 ? job->found.fd : 0;
	send_back(job);
}

bool storage_finds_later(const struct image_service *s, const struct disk_job *job)
{
	return s->s3 && (job->work == DISK_FIND || job->work == DISK_FETCH);
}

void storage_find(struct image_service *s, struct disk_job *job)
{
	if (!s->s3) {
		store_find(&s->store, job->id, job->name, &job->found);
		return;
	}
	job->service = s;
	if (job->work == DISK_FETCH) {
		s3_stream_next(job->found.stream, &job->found, job_fetched, job);
		return;
	}
	/* Before the store is asked: an image leaves the spool after it is stored. */
	job->found.is_spooled = spooling_has_file(s, job->id);
	job->round = 0;
	s3_stream_find(s->s3, job->id, job->name, &job->found, job_found, job);
}

void storage_seek_rest(struct s3_stream *rest, uint64_t at, uint64_t end)
{
	s3_stream_seek(rest, at, end);
}

void storage_free_rest(void *rest)
{
	s3_stream_free(rest);
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
