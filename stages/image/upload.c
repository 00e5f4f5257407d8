/*
 * upload.c - the memory of an upload, the admission of its images, and their join for the response.
 *
 * Knows nothing of pixels, sockets or files. Any thread: what several images share is atomic.
 */
#include "upload.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "conf_epoch.h"
#include "image.h"
#include "image_service.h"
#include "plan/memory_need.h"
#include "sched/core/graph.h"
#include "sched/core/replicas.h"
#include "stage_ids.h"

#define UPLOAD_MAGIC UINT32_C(0x55504c44) /* "UPLD" */

/* ---- memory ---- */

/* Offsets in an upload's memory. */
struct layout {
	size_t bad_parts, pointers, images, size;
};

static struct layout layout_of(const struct plan *plan, unsigned images_max, unsigned bad_parts_max)
{
	struct layout l;

	l.bad_parts = round_up(sizeof(struct upload), alignof(struct upload_bad_part));
	l.pointers = round_up(l.bad_parts + bad_parts_max * sizeof(struct upload_bad_part),
	                      alignof(struct image *));
	l.images = round_up(l.pointers + images_max * sizeof(struct image *), CACHE_LINE);
	l.size = l.images + images_max * image_bytes(plan);
	return l;
}

struct upload *upload_new(struct image_service *s, unsigned level, uint8_t *body,
                          struct budget_body *body_memory, unsigned images_max,
                          unsigned bad_parts_max)
{
	struct conf_epoch *epoch = conf_epoch_ref(&s->epochs);

	if (level > epoch->degrade.count) /* a reload has removed steps since it was admitted */
		level = epoch->degrade.count;
	const struct plan *plan = level ? &epoch->degraded[level - 1] : &epoch->plan;
	struct layout l = layout_of(plan, images_max, bad_parts_max);
	uint8_t *memory = pool_get(l.size);
	struct upload *u = (struct upload *)(void *)memory;

	if (!memory) {
		conf_epoch_unref(&s->epochs, epoch);
		return NULL;
	}
	memset(memory, 0, l.images);
	u->bad_part = (struct upload_bad_part *)(void *)(memory + l.bad_parts);
	u->image = (struct image **)(void *)(memory + l.pointers);
	u->images = memory + l.images;
	u->images_max = images_max;
	u->magic = UPLOAD_MAGIC;
	u->epoch = epoch;
	u->plan = plan;
	u->level = level;
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
	struct image *image =
		(struct image *)(void *)(u->images + u->image_count * image_bytes(u->plan));

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
	conf_epoch_unref(&u->service->epochs, u->epoch);
	u->magic = 0;
	pool_put(u);
}

void upload_drop(struct upload *u)
{
	if (!u->has_begun)
		body_free(u);
	upload_unref(u);
}

bool upload_has_failed(const struct upload *u, unsigned i)
{
	if (u->respond_after_decode)
		return u->image[i]->decode_failed;
	/* Acquire: pairs with image_set_problem(). */
	return atomic_load_explicit(&u->image[i]->has_failed, memory_order_acquire);
}

/* ---- the start of its images, and their end ---- */

/* Sets the work of each image, and returns the sum. */
static uint64_t set_work(struct upload *u)
{
	uint64_t work = 0;

	for (unsigned i = 0; i < u->image_count; i++) {
		struct image *image = u->image[i];
		struct cost_facts *f = &image->facts;
		struct memory_need_step root;

		*f = cost_facts_of_file(image->source, image->source_size);
		if (f->width > 0 && f->height > 0) {
			memory_need_root(image_plan(image), (int)f->width, (int)f->height, 1,
			                 &root);
			f->made = (double)root.width * root.height;
		}
		image->work = admission_work(&u->service->admission, f);
		image->event.size = image_event_size(image, image->source_size);
		work += image->work;
	}
	return work;
}

/* Gives back what the start of the image has taken. */
static void give_back(struct visit *v, struct image *image)
{
	struct upload *u = image->upload;
	struct image_service *s = u->service;
	const struct admission_end end = {
		.work = image->work,
		.facts = image->facts,
		.spent_ns = image->remade ? 0 : image_spent_ns(image),
		/* Relaxed: the image's event has come from the thread that set it. */
		.has_failed = atomic_load_explicit(&image->has_failed, memory_order_relaxed),
		.level = u->level,
		.degrade = &u->epoch->degrade,
	};

	graph_replica_give(s->graph, image->event.replica, image->source_size);
	image_end_turn(image); /* if its decoding has failed */
	admission_end(v, &s->admission, &u->admitted, &end);
	image_source_done(image);
}

/* Gives all images of a request to one replica, because they share its body. Each has a reference
 * to the upload from now on. */
static void prepare(struct upload *u, unsigned replica)
{
	unsigned n = u->image_count;

	for (unsigned i = 0; i < n; i++) {
		image_set_replica(u->image[i], replica);
		image_hold(u->image[i], give_back);
	}
	u->has_begun = true;
	/* Relaxed: the queue publishes them. */
	atomic_store_explicit(&u->undone, n, memory_order_relaxed);
	atomic_store_explicit(&u->body_refs, n, memory_order_relaxed);
}

/* The image takes part in its client's turns. Returns whether the image is urgent. Without
 * fairness all clients are one, which has all turns. */
static bool add_turn(struct upload *u, struct image *image)
{
	bool is_fair = u->epoch->conf.experiment.fair_clients == CONF_YES;

	return client_turns_add(&u->service->turns, &image->turn,
	                        is_fair ? u->admitted.client.slot : 0, image->work);
}

int upload_start(struct visit *v, struct upload *u, struct admission_waiter *waiter,
                 struct problem *problem)
{
	struct image_service *s = u->service;
	unsigned n = u->image_count;
	uint64_t bytes = 0, work = set_work(u);

	for (unsigned i = 0; i < n; i++)
		bytes += u->image[i]->source_size;
	assert(n > 0);
	if (!admission_begin(&s->admission, &u->admitted, waiter, &u->epoch->conf, n, work,
	                     problem))
		return -EAGAIN;
	prepare(u, visit_replica_take(v, STAGE_JPEG_DECODE, bytes));
	u->waiter = waiter->event;
	u->waiter_instance = waiter->instance;
	atomic_fetch_add_explicit(&u->refs, n, memory_order_relaxed);
	for (unsigned i = 0; i < n; i++)
		(void)inflight_add(&s->inflight, &u->image[i]->known); /* its id is new */
	/* An image that is not sent yet keeps the upload: those that were sent may all have ended.
	 */
	for (unsigned i = 0; i < n; i++) {
		struct image *image = u->image[i];

		if (add_turn(u, image))
			image_set_urgent(image);
		visit_unpark(v, &image->event);
		visit_send(v, STAGE_JPEG_DECODE, &image->event);
	}
	return 0;
}

bool upload_restart(struct upload *u)
{
	struct image_service *s = u->service;
	struct image *image = u->image[0];

	assert(u->image_count == 1);
	if (!inflight_add(&s->inflight, &image->known))
		return false;
	admission_begin_own(&s->admission, &u->admitted, set_work(u));
	prepare(u, graph_replica_take(s->graph, image->source_size));
	add_turn(u, image);
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
