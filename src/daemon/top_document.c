/* top_document.c - takes figures out of JSON. darkroom-http(7) describes its members. Main thread.
 */
#include "top_document.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_reader.h"

/* ---- members: without one, or of another type, the result is 0, "" or NULL ---- */

static const char *member(const char *object, const char *name)
{
	return object ? json_reader_member(object, name) : NULL;
}

static const char *next(const char *container, const char *value)
{
	return container ? json_reader_next(container, value) : NULL;
}

static uint64_t number(const char *object, const char *name)
{
	uint64_t n;

	return json_reader_uint(member(object, name), &n) ? n : 0;
}

static double decimal(const char *object, const char *name)
{
	double x;

	json_reader_double(member(object, name), &x);
	return x;
}

static void text(const char *object, const char *name, char to[TOP_NAME_MAX])
{
	if (!json_reader_ascii(member(object, name), to, TOP_NAME_MAX))
		*to = '\0';
}

/* ---- parts of the document ---- */

static void read_rejections(struct top_document *d, const char *object)
{
	const char *value = NULL;
	struct top_count *r;

	while (object && d->rejection_count < TOP_REJECTIONS_MAX) {
		r = &d->rejection[d->rejection_count];
		value = json_reader_next_named(object, value, r->name, sizeof r->name);
		if (!value)
			break;
		if (!json_reader_uint(value, &r->count))
			continue;
		d->rejected += r->count;
		d->rejection_count++;
	}
}

static void read_degraded(struct top_document *d, const char *steps)
{
	for (const char *step = NULL; (step = next(steps, step));) {
		uint64_t images = number(step, "images");

		/* A step contains the ones before it. */
		d->degraded = images > d->degraded ? images : d->degraded;
	}
}

static void read_uploads(struct top_document *d, const char *buckets)
{
	for (const char *b = NULL; (b = next(buckets, b)) && d->bucket_count < HISTOGRAM_BUCKETS;) {
		d->upload_ms[d->bucket_count] = decimal(b, "below_ms");
		d->uploads[d->bucket_count++] = number(b, "count");
	}
}

static void read_stages(struct top_document *d, const char *stages)
{
	for (const char *s = NULL; (s = next(stages, s)) && d->stage_count < STAGE_COUNT_MAX;) {
		struct top_stage *stage = &d->stage[d->stage_count++];
		const char *service = member(s, "service");

		text(s, "name", stage->name);
		stage->threads = number(s, "threads");
		stage->queued = number(s, "queued");
		stage->events = number(s, "events");
		stage->served = number(service, "count");
		stage->served_ms = decimal(service, "sum_ms");
	}
}

/* Reads the worker's time in each stage, and its name. */
static void read_worker(struct top_document *d, const char *worker, const char *group,
                        unsigned index)
{
	struct top_thread *thread = &d->thread[d->thread_count++];
	const char *stages = member(worker, "stages");
	uint64_t core;

	if (json_reader_uint(member(worker, "core"), &core))
		snprintf(thread->name, sizeof thread->name, "core %" PRIu64, core);
	else
		snprintf(thread->name, sizeof thread->name, "%.20s %u", group, index);
	for (unsigned i = 0; i < d->stage_count; i++)
		thread->busy_ms[i] = decimal(member(stages, d->stage[i].name), "busy_ms");
}

static void read_threads(struct top_document *d, const char *groups)
{
	char name[TOP_NAME_MAX];

	for (const char *group = NULL; (group = next(groups, group));) {
		const char *workers = member(group, "workers"), *worker = NULL;

		text(group, "name", name);
		for (unsigned i = 0;
		     (worker = next(workers, worker)) && d->thread_count < TOP_THREADS_MAX; i++)
			read_worker(d, worker, name, i);
	}
}

static bool is_true(const char *value)
{
	return value && strncmp(value, "true", 4) == 0;
}

bool top_document_read(struct top_document *d, const char *json, size_t length)
{
	const char *root = json_reader_check(json, length);
	const char *http = member(root, "http"), *images = member(root, "images"),
		   *memory = member(root, "memory"), *scheduler = member(root, "scheduler");

	*d = (struct top_document){ .uptime_s = decimal(root, "uptime_s") };
	d->is_draining = is_true(member(root, "draining"));
	text(scheduler, "policy", d->policy);
	d->in_flight = number(images, "in_flight");
	d->stored = number(images, "stored");
	d->connections = number(http, "connections");
	d->memory_bytes =
		number(memory, "reserved_body_bytes") + number(memory, "reserved_image_bytes");
	d->budget_bytes = number(memory, "budget_bytes");
	read_rejections(d, member(http, "rejections"));
	read_degraded(d, member(member(root, "overload"), "degrade"));
	read_uploads(d, member(member(http, "uploads"), "buckets"));
	read_stages(d, member(root, "stages"));
	read_threads(d, member(scheduler, "groups"));
	return d->stage_count > 0 && *d->policy;
}
