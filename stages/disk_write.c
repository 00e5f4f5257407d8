/*
 * disk_write.c - puts finished images into the store, and takes removed ones out.
 *
 * The only stage whose handler may block; its group's threads are there for that. Knows nothing of pixels or HTTP.
 * STAGE_SHARED.
 */
#include "disk_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../src/log.h"
#include "../src/text.h"
#include "image.h"
#include "server.h"
#include "stages.h"

#define METADATA_BYTES_MAX (16u << 10) /* image.json of 16 variants takes a quarter of it */

/* Status and slug for a failure of the store, and a message for the operator. */
static void store_problem(struct problem *p, const char *id, int err)
{
	bool is_full = err == -ENOSPC || err == -EDQUOT;

	log_error("image %s cannot be stored: %s", id, strerror(-err));
	if (is_full)
		problem_set(p, 507, "storage-full", "%s", strerror(-err));
	else
		problem_set(p, 500, "storage-failed", "%s", strerror(-err));
}

static int put(struct server *s, const struct image *image, struct text *metadata)
{
	struct store_file file[CONF_VARIANT_MAX + 1];
	char name[CONF_VARIANT_MAX][CONF_NAME_MAX + 5]; /* ".jpg" */
	unsigned n = s->plan.variant_count;
	struct json j;

	json_init(&j, metadata);
	json_object(&j, NULL);
	image_json(&j, image, true);
	json_object_end(&j);
	text_puts(metadata, "\n");
	if (metadata->overflowed)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		snprintf(name[i], sizeof name[i], "%s.jpg", s->conf->variant[i].name);
		file[i] = (struct store_file){ name[i], image->variant[i].data, image->variant[i].size };
	}
	file[n] = (struct store_file){ "image.json", metadata->data, metadata->length };
	return store_put(&s->store, image->id, file, n + 1);
}

static void store_image(struct visit *v, struct disk_job *job)
{
	struct image *image = job->image;
	char buffer[METADATA_BYTES_MAX];
	struct text metadata;

	text_init(&metadata, buffer, sizeof buffer);
	int err = put(visit_app(v), image, &metadata);

	if (err) {
		struct problem problem;

		store_problem(&problem, image->id, err);
		image_set_problem(image, &problem);
	}
	visit_aside(v, &job->event);
	visit_resume(v, &image->event);
	visit_send(v, STAGE_STATS, &image->event);
}

static void remove_image(struct visit *v, struct disk_job *job)
{
	struct server *s = visit_app(v);
	struct event *reply = job->reply;
	unsigned instance = job->reply_instance;

	job->result = store_remove(&s->store, job->id);
	if (job->result && job->result != -ENOENT)
		log_error("image %s cannot be removed: %s", job->id, strerror(-job->result));
	visit_aside(v, &job->event); /* before the reply: its owner may use the job again, or free it */
	visit_resume(v, reply);
	visit_send_to(v, STAGE_ACCEPT_READ, instance, reply);
}

static unsigned disk_write_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct disk_job *job = CONTAINER_OF(batch[i], struct disk_job, event);

		if (job->work == DISK_STORE)
			store_image(v, job);
		else
			remove_image(v, job);
	}
	return n;
}

const struct stage_class stage_disk_write = {
	.name = "disk_write",
	.kind = STAGE_SHARED,
	.batch_max = 1,
	.handle = disk_write_handle,
};
