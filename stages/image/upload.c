/*
 * upload.c - the memory of an upload, the admission of its images, and their join for the response.
 *
 * Knows nothing of pixels, sockets or files. Any thread: what several images share is atomic.
 */
#include "upload.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "admission.h"
#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "client_limits.h"
#include "conf_epoch.h"
#include "image.h"
#include "image_service.h"
#include "sched/graph.h"
#include "sched/replicas.h"
#include "stage_ids.h"

#define UPLOAD_MAGIC UINT32_C(0x55504c44) /* "UPLD" */

/* ---- memory ---- */

const struct plan *upload_plan(const struct upload *u)
{
	return conf_epoch_plan(u->epoch, u->level);
}

static size_t image_size(const struct upload *u)
{
	return image_bytes(upload_plan(u));
}

/* Offsets in an upload's memory. */
struct layout {
	size_t bad_parts, pointers, flags, images, size;
};

static struct layout layout_of(const struct plan *plan, unsigned images_max, unsigned bad_parts_max)
{
	struct layout l;

	l.bad_parts = round_up(sizeof(struct upload), alignof(struct upload_bad_part));
	l.pointers = round_up(l.bad_parts + bad_parts_max * sizeof(struct upload_bad_part),
	                      alignof(struct image *));
	l.flags = l.pointers + images_max * sizeof(struct image *);
	l.images = round_up(l.flags + images_max * sizeof(bool), CACHE_LINE);
	l.size = l.images + images_max * image_bytes(plan);
	return l;
}

struct upload *upload_new(struct image_service *s, unsigned level, uint8_t *body,
                          struct budget_body *body_memory, unsigned images_max,
                          unsigned bad_parts_max)
{
	struct conf_epoch *epoch = conf_epoch_ref(&s->epochs);
	/* A reload may have removed steps since the upload was admitted. */
	unsigned level_max = epoch->degrade.count;
	struct layout l = layout_of(conf_epoch_plan(epoch, level), images_max, bad_parts_max);
	uint8_t *memory = pool_get(l.size);
	struct upload *u = (struct upload *)(void *)memory;

	if (!memory) {
		conf_epoch_unref(&s->epochs, epoch);
		return NULL;
	}
	memset(memory, 0, l.images);
	u->bad_part = (struct upload_bad_part *)(void *)(memory + l.bad_parts);
	u->image = (struct image **)(void *)(memory + l.pointers);
	u->decode_failed = (bool *)(void *)(memory + l.flags);
	u->images = memory + l.images;
	u->images_max = images_max;
	u->magic = UPLOAD_MAGIC;
	u->epoch = epoch;
	u->level = level < level_max ? level : level_max;
	atomic_init(&u->refs, 1);
	u->service = s;
	u->body = body;
	u->memory = *body_memory;
	*body_memory = (struct budget_body){ 0 };
	return u;
}

static void copy_field(char to[UPLOAD_FIELD_MAX], const char *from, size_t length)
{
	if (length >= UPLOAD_FIELD_MAX)
		length = UPLOAD_FIELD_MAX - 1;
	if (length)
		memcpy(to, from, length);
	to[length] = '\0';
}

struct image *upload_add_image(struct upload *u, const uint8_t *source, size_t source_size,
                               const char *part_name, size_t part_name_length,
                               const char *file_name, size_t file_name_length)
{
	struct image *image = (struct image *)(void *)(u->images + u->image_count * image_size(u));

	assert(u->image_count < u->images_max);
	image_init(image, u, source, source_size);
	copy_field(image->part_name, part_name, part_name_length);
	copy_field(image->file_name, file_name, file_name_length);
	u->image[u->image_count++] = image;
	return image;
}

struct problem *upload_add_bad_part(struct upload *u, const char *part_name,
                                    size_t part_name_length, const char *file_name,
                                    size_t file_name_length)
{
	struct upload_bad_part *part = &u->bad_part[u->bad_part_count++];

	copy_field(part->part_name, part_name, part_name_length);
	copy_field(part->file_name, file_name, file_name_length);
	part->images_before = u->image_count;
	return &part->problem;
}

static void body_free(struct upload *u)
{
	pool_put(u->body);
	u->body = NULL;
	budget_body_release(&u->service->budget, &u->memory);
}

void upload_body_unref(struct upload *u)
{
	/* Acquire and release: the last image frees what all others have read. */
	if (atomic_fetch_sub_explicit(&u->body_refs, 1, memory_order_acq_rel) == 1)
		body_free(u);
}

void upload_unref(struct upload *u)
{
	/* Acquire and release: the last owner sees what all others wrote. */
	if (atomic_fetch_sub_explicit(&u->refs, 1, memory_order_acq_rel) != 1)
		return;
	assert(u->magic == UPLOAD_MAGIC);
	for (unsigned i = 0; i < u->image_count; i++) {
		u->image[i]->source = NULL; /* the image may never have been started */
		image_fini(u->image[i]);
	}
	if (u->body)
		body_free(u);
	admission_cancel(u->service, &u->ticket);
	conf_epoch_unref(&u->service->epochs, u->epoch);
	u->magic = 0;
	pool_put(u);
}

bool upload_has_failed(const struct upload *u, unsigned i)
{
	if (u->respond_after_decode)
		return u->decode_failed[i];
	/* Acquire: pairs with image_set_problem(). */
	return atomic_load_explicit(&u->image[i]->has_failed, memory_order_acquire);
}

/* ---- admission ---- */

/* Returns how many images may be in flight with an upload of n. Some places are left for uploads of
 * one image, which else would stand behind forms. */
static uint64_t places_for(const struct conf *conf, unsigned n)
{
	uint64_t max = conf->limits.images_in_flight, for_forms = max - max / 16;

	return n > 1 && for_forms >= conf->limits.parts ? for_forms : max;
}

static void set_places_problem(struct problem *problem, const struct conf *conf, uint64_t places,
                               uint64_t images)
{
	uint64_t max = conf->limits.images_in_flight;

	problem_set_limit(problem, 503, "overloaded", "limits.images_in_flight", max, images);
	if (places < max)
		problem_append(problem, " - %llu, which are for uploads of one image",
		               (unsigned long long)(max - places));
}

/* Takes places for n images, or fills the problem. */
static bool admit(struct upload *u, unsigned n, struct problem *problem)
{
	struct image_service *s = u->service;
	const struct conf *conf = &u->epoch->conf;
	uint64_t max = places_for(conf, n);
	uint64_t before = atomic_fetch_add_explicit(&s->in_flight, n, memory_order_relaxed);

	if (before + n > max) {
		atomic_fetch_sub_explicit(&s->in_flight, n, memory_order_relaxed);
		set_places_problem(problem, conf, max, before + n);
		return false;
	}
	if (client_limits_begin(s, conf, &u->client, n, &u->is_client_counted, problem))
		return true;
	atomic_fetch_sub_explicit(&s->in_flight, n, memory_order_relaxed);
	return false;
}

/* Gives all images of a request to one replica, because they share its body. v: NULL outside of a
 * visit. */
static void assign_replica(struct visit *v, struct upload *u)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < u->image_count; i++)
		bytes += u->image[i]->source_size;
	unsigned replica = v ? visit_replica_take(v, STAGE_JPEG_DECODE, bytes)
	                     : graph_replica_take(u->service->graph, bytes);

	for (unsigned i = 0; i < u->image_count; i++)
		image_set_replica(u->image[i], replica);
}

int upload_start(struct visit *v, struct upload *u, struct event *waiter, unsigned waiter_instance,
                 struct problem *problem)
{
	unsigned n = u->image_count;

	assert(n > 0);
	if (!admit(u, n, problem))
		return -EAGAIN;
	admission_begin(u->service, u);
	assign_replica(v, u);
	u->waiter = waiter;
	u->waiter_instance = waiter_instance;
	atomic_store_explicit(&u->undone, n, memory_order_relaxed);
	atomic_store_explicit(&u->body_refs, n, memory_order_relaxed);
	/* One more for this function: the images may all end, and the response be sent, before the
	 * loop does. */
	atomic_fetch_add_explicit(&u->refs, n + 1, memory_order_relaxed);
	for (unsigned i = 0; i < n; i++)
		inflight_add(&u->service->inflight, u->image[i]);
	for (unsigned i = 0; i < n; i++) {
		if (client_turns_add(&u->service->turns, &u->image[i]->turn, &u->client,
		                     u->image[i]->source_size))
			image_set_urgent(u->image[i]);
		visit_unpark(v, &u->image[i]->event);
		visit_send(v, STAGE_JPEG_DECODE, &u->image[i]->event);
	}
	upload_unref(u);
	return 0;
}

bool upload_restart(struct upload *u)
{
	struct image_service *s = u->service;
	struct image *image = u->image[0];

	assert(u->image_count == 1);
	if (!inflight_add_only(&s->inflight, image))
		return false;
	admission_begin(s, u);
	atomic_store_explicit(&u->is_measured, true, memory_order_relaxed);
	assign_replica(NULL, u);
	/* Relaxed: the queue publishes them. */
	atomic_store_explicit(&u->undone, 1, memory_order_relaxed);
	atomic_store_explicit(&u->body_refs, 1, memory_order_relaxed);
	client_turns_add(&s->turns, &image->turn, &u->client, image->source_size);
	stage_push(graph_stage(s->graph, STAGE_JPEG_DECODE), 0, &image->event);
	return true;
}

/* ---- the join of its images ---- */

void upload_image_done(struct visit *v, struct upload *u)
{
	struct event *waiter = u->waiter;
	unsigned instance = u->waiter_instance;

	/* Acquire and release: the response sees what every image's last owner wrote. */
	if (atomic_fetch_sub_explicit(&u->undone, 1, memory_order_acq_rel) != 1 || !waiter)
		return;
	visit_resume(v, STAGE_ACCEPT_READ, instance, waiter);
}

void upload_image_decoded(struct visit *v, struct upload *u, const struct image *image,
                          bool has_failed)
{
	for (unsigned i = 0; i < u->image_count; i++)
		if (u->image[i] == image)
			u->decode_failed[i] = has_failed;
	upload_image_done(v, u);
}
