/*
 * image.c - the life of uploads, images and steps: admission, fan-out, the join of an image's
 * steps, the join of an upload's images, and what is given back when. Knows nothing of pixels,
 * sockets or files.
 *
 * Any thread: an object is touched by whoever owns its event; what several steps or images share is
 * atomic.
 */
#include "image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/round.h"
#include "base/text.h"
#include "log/log.h"
#include "pixel/picture.h"
#include "sched/graph.h"
#include "stages.h"

/* ---- upload ---- */

static size_t image_size(const struct conf_epoch *epoch)
{
	return round_up(sizeof(struct image) + epoch->plan.step_count * sizeof(struct step),
	                CACHE_LINE);
}

/* Where in an upload's memory things lie. */
struct layout {
	size_t bad_parts, pointers, flags, images, size;
};

static struct layout layout_of(const struct conf_epoch *epoch, unsigned images_max,
                               unsigned bad_parts_max)
{
	struct layout l;

	l.bad_parts = round_up(sizeof(struct upload), alignof(struct upload_bad_part));
	l.pointers = round_up(l.bad_parts + bad_parts_max * sizeof(struct upload_bad_part),
	                      alignof(struct image *));
	l.flags = l.pointers + images_max * sizeof(struct image *);
	l.images = round_up(l.flags + images_max * sizeof(bool), CACHE_LINE);
	l.size = l.images + images_max * image_size(epoch);
	return l;
}

struct upload *upload_new(struct server *s, uint8_t *body, uint64_t body_reserved,
                          unsigned images_max, unsigned bad_parts_max)
{
	struct conf_epoch *epoch = conf_epoch_ref(&s->conf_epochs);
	struct layout l = layout_of(epoch, images_max, bad_parts_max);
	uint8_t *memory = pool_get(l.size);
	struct upload *u = (struct upload *)(void *)memory;

	if (!memory) {
		conf_epoch_unref(&s->conf_epochs, epoch);
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
	atomic_init(&u->refs, 1);
	u->server = s;
	u->body = body;
	u->body_reserved = body_reserved;
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
	unsigned step_count = u->epoch->plan.step_count;
	struct image *image =
		(struct image *)(void *)(u->images + u->image_count * image_size(u->epoch));

	assert(u->image_count < u->images_max);
	memset(image, 0, image_size(u->epoch));
	image->magic = IMAGE_MAGIC;
	event_init(&image->event, &u->timing);
	image->server = u->server;
	image->upload = u;
	image->source = source;
	image->source_size = source_size;
	image->event.size = source_size;
	atomic_flag_clear(&image->problem_claimed);
	copy_field(image->part_name, part_name, part_name_length);
	copy_field(image->file_name, file_name, file_name_length);
	ulid_new(image->id);
	event_init(&image->store_job.event, &u->timing);
	image->store_job.work = DISK_STORE;
	image->store_job.image = image;
	for (unsigned i = 0; i < step_count; i++) {
		event_init(&image->step[i].event, &u->timing);
		image->step[i].image = image;
		image->step[i].index = i;
	}
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
	return &part->problem;
}

const struct conf *image_conf(const struct image *image)
{
	return &image->upload->epoch->conf;
}

const struct plan *image_plan(const struct image *image)
{
	return &image->upload->epoch->plan;
}

static void image_fini(struct image *image)
{
	assert(!image->source && !image->waiters && !image->decoder);
	event_fini(&image->event);
	event_fini(&image->store_job.event);
	for (unsigned i = 0; i < image_plan(image)->step_count; i++)
		event_fini(&image->step[i].event);
	pool_put(image->icc);
	image->magic = 0;
}

/* Of images that are not stored as they came, the body is freed long before the last variant is
 * stored. */
static void body_free(struct upload *u)
{
	pool_put(u->body);
	u->body = NULL;
	if (u->body_reserved)
		budget_release(&u->server->budget, BUDGET_BODY, u->body_reserved);
	u->body_reserved = 0;
}

void upload_unref(struct upload *u)
{
	/* Acquire and release: the last one sees what all others wrote. */
	if (atomic_fetch_sub_explicit(&u->refs, 1, memory_order_acq_rel) != 1)
		return;
	assert(u->magic == UPLOAD_MAGIC);
	for (unsigned i = 0; i < u->image_count; i++) {
		u->image[i]->source = NULL; /* it may never have been started */
		image_fini(u->image[i]);
	}
	if (u->body)
		body_free(u);
	conf_epoch_unref(&u->server->conf_epochs, u->epoch);
	u->magic = 0;
	pool_put(u);
}

/* Takes places for n images or fills the problem. */
static bool admit(struct upload *u, unsigned n, struct problem *problem)
{
	struct server *s = u->server;
	const struct conf *conf = &u->epoch->conf;
	uint64_t max = conf->limits.images_in_flight, per_client = conf->limits.images_per_client,
		 now;
	int err;

	uint64_t before = atomic_fetch_add_explicit(&s->images_in_flight, n, memory_order_relaxed);

	if (before + n > max) {
		atomic_fetch_sub_explicit(&s->images_in_flight, n, memory_order_relaxed);
		problem_set_limit(problem, 503, "overloaded", "limits.images_in_flight", max,
		                  before + n);
		return false;
	}
	err = inflight_client_take(&s->inflight, &u->client, n, per_client, &now);
	u->is_client_counted = !err && per_client != 0;
	if (!err)
		return true;
	atomic_fetch_sub_explicit(&s->images_in_flight, n, memory_order_relaxed);
	if (err == -ENOMEM)
		problem_set(problem, 503, "overloaded", "no memory");
	else
		problem_set_limit(problem, 429, "too-many-requests", "limits.images_per_client",
		                  per_client, now + n);
	return false;
}

/* All images of a request go to the same replica: they share its body. v: NULL outside of any
 * visit. */
static void assign_replica(struct visit *v, struct upload *u)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < u->image_count; i++)
		bytes += u->image[i]->source_size;
	unsigned replica = v ? visit_replica_take(v, STAGE_JPEG_DECODE, bytes)
	                     : graph_replica_take(u->server->graph, bytes);
	for (unsigned i = 0; i < u->image_count; i++) {
		struct image *image = u->image[i];

		image->event.replica = replica;
		for (unsigned k = 0; k < image_plan(image)->step_count; k++)
			image->step[k].event.replica = replica;
	}
}

int upload_start(struct visit *v, struct upload *u, struct event *waiter, unsigned waiter_instance,
                 struct problem *problem)
{
	unsigned n = u->image_count;

	assert(n > 0);
	if (!admit(u, n, problem))
		return -EAGAIN;
	assign_replica(v, u);
	u->waiter = waiter;
	u->waiter_instance = waiter_instance;
	atomic_store_explicit(&u->undone, n, memory_order_relaxed);
	atomic_store_explicit(&u->body_refs, n, memory_order_relaxed);
	/* One more while we are at it: the images may all end, and the response be sent, before the
	 * loop does. */
	atomic_fetch_add_explicit(&u->refs, n + 1, memory_order_relaxed);
	for (unsigned i = 0; i < n; i++)
		inflight_add(&u->server->inflight, u->image[i]);
	for (unsigned i = 0; i < n; i++) {
		visit_unpark(v, &u->image[i]->event);
		visit_send(v, STAGE_JPEG_DECODE, &u->image[i]->event);
	}
	upload_unref(u);
	return 0;
}

void upload_start_again(struct upload *u)
{
	struct server *s = u->server;
	struct image *image = u->image[0];

	assert(u->image_count == 1);
	assign_replica(NULL, u);
	/* Relaxed: the queue publishes it all. */
	atomic_store_explicit(&u->undone, 1, memory_order_relaxed);
	atomic_store_explicit(&u->body_refs, 1, memory_order_relaxed);
	inflight_add(&s->inflight, image);
	stage_push(graph_stage(s->graph, STAGE_JPEG_DECODE), 0, &image->event);
}

/* One image less that the response waits for. */
static void upload_image_done(struct visit *v, struct upload *u)
{
	struct event *waiter = u->waiter;
	unsigned instance = u->waiter_instance;

	/* Acquire and release: the response sees what every image's last owner wrote. */
	if (atomic_fetch_sub_explicit(&u->undone, 1, memory_order_acq_rel) != 1 || !waiter)
		return;
	visit_unpark(v, waiter);
	visit_send_to(v, STAGE_ACCEPT_READ, instance, waiter);
}

/* ---- image ---- */

struct image *image_of(struct event *ev)
{
	struct image *image = CONTAINER_OF(ev, struct image, event);

	assert(image->magic == IMAGE_MAGIC);
	return image;
}

struct step *step_of(struct event *ev)
{
	struct step *s = CONTAINER_OF(ev, struct step, event);

	assert(s->image->magic == IMAGE_MAGIC);
	return s;
}

const struct plan_step *step_plan(const struct step *s)
{
	return &image_plan(s->image)->step[s->index];
}

void image_set_problem(struct image *image, const struct problem *problem)
{
	assert(problem->status);
	if (atomic_flag_test_and_set_explicit(&image->problem_claimed, memory_order_relaxed))
		return;
	image->problem = *problem;
	/* Release: with the acquire of whoever reads the problem because this is set. */
	atomic_store_explicit(&image->has_failed, true, memory_order_release);
}

/* Whether the uploaded file itself is to be stored. */
static bool is_source_stored(const struct image *image)
{
	return image_conf(image)->server.keep_originals == CONF_YES;
}

/* Whether the image is acknowledged before it is stored, and must not be lost in between. */
static bool needs_spool(const struct image *image)
{
	return image->upload->respond_after_decode &&
	       image_conf(image)->server.durability != CONF_DURABILITY_NONE;
}

void image_source_done(struct image *image)
{
	struct upload *u = image->upload;

	if (!image->source)
		return;
	image->source = NULL;
	/* Acquire and release: the last one frees what all others have read. */
	if (atomic_fetch_sub_explicit(&u->body_refs, 1, memory_order_acq_rel) == 1)
		body_free(u);
}

/* With a 202 to come, nothing more is to be said of the image: it goes on alone, or has failed. */
static void answer_early(struct visit *v, struct image *image, bool failed)
{
	struct upload *u = image->upload;

	for (unsigned i = 0; i < u->image_count; i++)
		if (u->image[i] == image)
			u->decode_failed[i] = failed;
	upload_image_done(v, u);
}

/* The decoder is through with the source, whether it could make sense of it or not. */
static void decoder_done(struct visit *v, struct image *image, bool failed)
{
	bool spools = !failed && needs_spool(image);

	if (failed || !(spools || is_source_stored(image)))
		image_source_done(image);
	image->event.size =
		0; /* what is left for its own event, to be counted, is the same for all */
	if (image->upload->respond_after_decode && !spools)
		answer_early(v, image, failed);
}

/* Sends every step below parent on its way, each with a reference to the picture; takes over the
 * caller's own. */
static void send_children(struct visit *v, struct image *image, int parent, struct picture *picture)
{
	const struct plan *plan = image_plan(image);
	unsigned step_count = plan->step_count;

	for (unsigned i = 0; i < step_count; i++) {
		if (plan->step[i].parent != parent)
			continue;
		struct step *s = &image->step[i];

		picture_ref(picture);
		s->input = picture;
		s->event.size = (uint64_t)picture->width * (uint64_t)picture->height;
		visit_unpark(v, &s->event);
		visit_send(v, plan->step[i].stage, &s->event);
	}
	picture_unref(picture);
}

static uint64_t variants_size(const struct image *image)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < image_plan(image)->variant_count; i++)
		size += image->variant[i].size;
	return size;
}

/* n steps of the image have ended; after the last one the image goes on. */
static void image_steps_end(struct visit *v, struct image *image, unsigned n)
{
	/* Acquire and release: the last one sees all variants. */
	if (atomic_fetch_sub_explicit(&image->steps_left, n, memory_order_acq_rel) != n)
		return;
	if (atomic_load_explicit(&image->has_failed, memory_order_acquire)) {
		visit_unpark(v, &image->event);
		visit_send(v, STAGE_STATS, &image->event);
	} else {
		image->store_job.event.size = variants_size(image);
		visit_unpark(v, &image->store_job.event);
		visit_send(v, STAGE_DISK_WRITE, &image->store_job.event);
	}
}

/* While the steps run, the file goes to the disk. */
static void send_to_spool(struct visit *v, struct image *image)
{
	image->store_job.work = DISK_SPOOL;
	image->store_job.event.size = image->source_size;
	visit_unpark(v, &image->store_job.event);
	visit_send(v, STAGE_DISK_WRITE, &image->store_job.event);
}

void image_spooled(struct visit *v, struct image *image, const struct problem *problem)
{
	image->store_job.work = DISK_STORE;
	if (problem) {
		image_set_problem(image, problem);
		image->answers_at_end =
			true; /* by then it is settled which of its problems is told */
	} else {
		image->is_spooled = true;
		answer_early(v, image, false);
	}
	if (problem || !is_source_stored(image))
		image_source_done(image);
	image_steps_end(v, image, 1);
}

void image_decoded(struct visit *v, struct image *image, struct picture *root)
{
	bool spools = needs_spool(image);

	visit_park(v, &image->event);
	/* One more for the spool, and one for ourselves: the steps may all be through before this
	 * returns. */
	atomic_store_explicit(&image->steps_left, image_plan(image)->step_count + spools + 1,
	                      memory_order_relaxed);
	decoder_done(v, image, false);
	if (spools)
		send_to_spool(v, image);
	send_children(v, image, PLAN_ROOT, root);
	image_steps_end(v, image, 1);
}

void image_decode_failed(struct visit *v, struct image *image, const struct problem *problem)
{
	image_set_problem(image, problem);
	decoder_done(v, image, true);
	visit_send(v, STAGE_STATS, &image->event);
}

/* Steps in the subtree of a step, itself included. */
static unsigned subtree_size(const struct plan *plan, unsigned index)
{
	bool in_subtree[PLAN_STEP_MAX] = { [0] = false };
	unsigned n = 0;

	in_subtree[index] = true;
	for (unsigned i = index; i < plan->step_count;
	     i++) { /* parents stand before their children */
		int parent = plan->step[i].parent;

		if (parent >= 0 && in_subtree[parent])
			in_subtree[i] = true;
		n += in_subtree[i];
	}
	return n;
}

static void input_done(struct step *s)
{
	picture_unref(s->input);
	s->input = NULL;
}

void step_done(struct visit *v, struct step *s, struct picture *result)
{
	struct image *image = s->image;

	visit_park(v, &s->event);
	input_done(s);
	send_children(v, image, (int)s->index, result);
	image_steps_end(v, image, 1);
}

void step_encoded(struct visit *v, struct step *s, uint8_t *data, size_t size, uint32_t width,
                  uint32_t height)
{
	struct image *image = s->image;
	struct image_variant *variant = &image->variant[step_plan(s)->variant];

	visit_park(v, &s->event);
	input_done(s);
	assert(!variant->data);
	*variant = (struct image_variant){
		.data = data, .size = size, .width = width, .height = height
	};
	image_steps_end(v, image, 1);
}

void step_failed(struct visit *v, struct step *s, const struct problem *problem)
{
	struct image *image = s->image;

	image_set_problem(image, problem);
	visit_park(v, &s->event);
	input_done(s);
	image_steps_end(v, image, subtree_size(image_plan(image), s->index));
}

/* Those who asked for the image while it was in the making look again. */
static void send_waiters(struct visit *v, struct waiter *list)
{
	while (list) {
		struct waiter *w = list;

		list = w->next; /* before the event is sent: then it is its owner's */
		visit_unpark(v, w->event);
		visit_send_to(v, STAGE_ACCEPT_READ, w->instance, w->event);
	}
}

void image_end(struct visit *v, struct image *image)
{
	struct server *s = image->server;
	struct upload *u = image->upload;

	for (unsigned i = 0; i < image_plan(image)->variant_count; i++) {
		pool_put(image->variant[i].data);
		image->variant[i].data = NULL;
	}
	/* Not with the upload, which others of its images may keep for long: it is paid for until
	 * here. */
	pool_put(image->icc);
	image->icc = NULL;
	image_source_done(image);
	graph_replica_give(s->graph, image->event.replica, image->source_size);
	visit_park(v, &image->event);
	send_waiters(v, inflight_remove(&s->inflight, image));
	if (u->is_client_counted)
		inflight_client_give(&s->inflight, &u->client, 1);
	atomic_fetch_sub_explicit(&s->images_in_flight, 1, memory_order_relaxed);
	if (image->reserved_bytes) {
		uint64_t bytes = image->reserved_bytes;

		image->reserved_bytes = 0;
		budget_release(&s->budget, BUDGET_IMAGE, bytes);
	}
	if (image->is_spooled)
		recovery_image_ended(&s->recovery, image);
	if (image->answers_at_end)
		answer_early(v, image, true);
	else if (!u->respond_after_decode)
		upload_image_done(v, u);
	upload_unref(u);
}

/* variant: its name, or NULL for the image's own. */
static void json_url(struct json *j, const char *id, const char *variant)
{
	char url[96];
	struct text t;

	text_init(&t, url, sizeof url);
	text_puts(&t, "/images/");
	text_puts(&t, id);
	if (variant) {
		text_puts(&t, "/");
		text_puts(&t, variant);
		text_puts(&t, ".jpg");
	}
	json_string_n(j, "url", t.data, t.length);
}

void image_json(struct json *j, const struct image *image, bool is_stored)
{
	const struct conf *conf = image_conf(image);

	json_string(j, "id", image->id);
	json_url(j, image->id, NULL);
	json_uint(j, "width", atomic_load_explicit(&image->width, memory_order_relaxed));
	json_uint(j, "height", atomic_load_explicit(&image->height, memory_order_relaxed));
	if (image->file_name[0])
		json_string(j, "filename", image->file_name);
	if (image->is_damaged)
		json_bool(j, "damaged", true);
	if (!is_stored) {
		json_string(j, "status", "processing");
		return;
	}
	json_object(j, "variants");
	for (unsigned i = 0; i < image_plan(image)->variant_count; i++) {
		const struct image_variant *variant = &image->variant[i];

		json_object(j, conf->variant[i].name);
		json_url(j, image->id, conf->variant[i].name);
		json_uint(j, "width", variant->width);
		json_uint(j, "height", variant->height);
		json_uint(j, "bytes", variant->size);
		json_object_end(j);
	}
	json_object_end(j);
}
