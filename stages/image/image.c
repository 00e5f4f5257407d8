/*
 * image.c - the life of an image: decoding, the fan-out into steps, their join, spooling, and the
 * return of what the image held.
 *
 * Knows nothing of pixels, sockets or files. Any thread: the owner of an event owns its object, and
 * what several steps share is atomic.
 */
#include "image.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/round.h"
#include "conf_epoch.h"
#include "image_service.h"
#include "log/log.h"
#include "pixel/picture.h"
#include "remade.h"
#include "sched/core/graph.h"
#include "sched/core/visit.h"
#include "stage_ids.h"
#include "storage/storage.h"
#include "telemetry/counter.h"

/* ---- memory ---- */

size_t image_bytes(const struct plan *plan)
{
	return round_up(sizeof(struct image) + plan->step_count * sizeof(struct step), CACHE_LINE);
}

void image_init(struct image *image, struct upload *u, const uint8_t *source, size_t source_size)
{
	const struct plan *plan = u->plan;

	memset(image, 0, image_bytes(plan));
	image->magic = IMAGE_MAGIC;
	event_init(&image->event, &u->timing);
	image->upload = u;
	image->source = source;
	image->format = file_format_of(source, source_size);
	image->source_size = source_size;
	image->event.size = source_size;
	image->made = ~plan->files.idle;
	image->unneeded = plan->unneeded;
	atomic_flag_clear(&image->problem_claimed);
	ulid_new(image->id);
	image->known = (struct inflight_image){ .id = image->id,
		                                .width = &image->width,
		                                .height = &image->height };
	event_init(&image->store_job.event, &u->timing);
	image->store_job.work = DISK_STORE;
	image->store_job.image = image;
	for (unsigned i = 0; i < plan->step_count; i++) {
		event_init(&image->step[i].event, &u->timing);
		image->step[i].image = image;
		image->step[i].index = i;
	}
}

void image_fini(struct image *image)
{
	assert(!image->source && !image->known.waiters && !image->decoder);
	event_fini(&image->event);
	event_fini(&image->store_job.event);
	for (unsigned i = 0; i < image_plan(image)->step_count; i++)
		event_fini(&image->step[i].event);
	pool_put(image->icc);
	image->magic = 0;
}

void image_hold(struct image *image, void (*release)(struct visit *v, struct image *image))
{
	assert(image->hold_count < IMAGE_HOLDS_MAX);
	image->release[image->hold_count++] = release;
}

void image_set_replica(struct image *image, unsigned replica)
{
	image->event.replica = replica;
	for (unsigned i = 0; i < image_plan(image)->step_count; i++)
		image->step[i].event.replica = replica;
}

void image_set_urgent(struct image *image)
{
	image->event.is_urgent = true;
	image->store_job.event.is_urgent = true;
	for (unsigned i = 0; i < image_plan(image)->step_count; i++)
		image->step[i].event.is_urgent = true;
}

/* ---- what it is ---- */

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

const struct conf *image_conf(const struct image *image)
{
	return &image->upload->epoch->conf;
}

const struct plan *image_plan(const struct image *image)
{
	return image->upload->plan;
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
	/* Release: pairs with the acquire before every look at the problem. */
	atomic_store_explicit(&image->has_failed, true, memory_order_release);
}

/* Returns whether the uploaded file itself is to be stored. A stored image has it already. */
static bool is_source_stored(const struct image *image)
{
	return !image->remade && image_conf(image)->server.keep_originals == CONF_YES;
}

/* Returns whether the image is acknowledged before it is stored, and must survive a crash between
 * the two. */
static bool needs_spool(const struct image *image)
{
	return image->upload->respond_after_decode &&
	       spooling_is_needed(&image->upload->service->storage, image_conf(image));
}

void image_source_done(struct image *image)
{
	if (!image->source)
		return;
	image->source = NULL;
	upload_body_unref(image->upload);
}

/* ---- steps ---- */

/* Returns the number of steps in the subtree of a step, itself included. */
static unsigned subtree_size(const struct plan *plan, unsigned index)
{
	bool in_subtree[PLAN_STEP_MAX] = { [0] = false };
	unsigned n = 0;

	in_subtree[index] = true;
	/* Parents precede their children. */
	for (unsigned i = index; i < plan->step_count; i++) {
		int parent = plan->step[i].parent;

		if (parent >= 0 && in_subtree[parent])
			in_subtree[i] = true;
		n += in_subtree[i];
	}
	return n;
}

static void send_to_stats(struct visit *v, struct image *image)
{
	visit_unpark(v, &image->event);
	visit_send(v, STAGE_STATS, &image->event);
}

/* n steps of the image have ended; after the last one the image goes on. */
static void image_steps_end(struct visit *v, struct image *image, unsigned n)
{
	/* Acquire and release: the last step sees all variants. */
	if (atomic_fetch_sub_explicit(&image->steps_left, n, memory_order_acq_rel) != n)
		return;
	image_end_turn(image); /* a slow disk keeps no core from the client's next image */
	if (atomic_load_explicit(&image->has_failed, memory_order_acquire)) {
		send_to_stats(v, image);
		return;
	}
	uint64_t size = image_files_bytes(image);

	if (!size) { /* of a stored image; an upload has its JPEGs */
		struct problem problem;

		problem_set(&problem, 500, "internal", "none of its files could be made");
		image_set_problem(image, &problem);
		send_to_stats(v, image);
		return;
	}
	disk_job_send_image(v, &image->store_job, DISK_STORE, size);
}

/* Starts every step below parent that is needed, each with a reference to the picture. Owns the
 * caller's reference. */
static void send_children(struct visit *v, struct image *image, int parent, struct picture *picture)
{
	const struct plan *plan = image_plan(image);
	unsigned unneeded = 0;

	for (unsigned i = 0; i < plan->step_count; i++) {
		if (plan->step[i].parent != parent)
			continue;
		if (image->unneeded >> i & 1) {
			unneeded += subtree_size(plan, i);
			continue;
		}
		struct step *s = &image->step[i];

		picture_ref(picture);
		s->input = picture;
		s->event.size = (uint64_t)picture->width * (uint64_t)picture->height;
		visit_unpark(v, &s->event);
		visit_send(v, plan->step[i].op.class->stage, &s->event);
	}
	picture_unref(picture);
	if (unneeded)
		image_steps_end(v, image, unneeded);
}

/* The decoder no longer needs the source. */
static void decoder_done(struct visit *v, struct image *image, bool has_failed)
{
	bool is_spooling = !has_failed && needs_spool(image);

	if (has_failed || !(is_spooling || is_source_stored(image)))
		image_source_done(image);
	image->event.size = 0; /* its own event goes to stats only, where all take equally long */
	image->decode_failed = has_failed;
	if (image->upload->respond_after_decode && !is_spooling)
		upload_image_done(v, image->upload);
}

void image_decoded(struct visit *v, struct image *image, struct picture *root)
{
	bool is_spooling = needs_spool(image);

	visit_park(v, &image->event);
	/* One more for the spool, and one for this function: the steps may all end before it
	 * returns. */
	atomic_store_explicit(&image->steps_left, image_plan(image)->step_count + is_spooling + 1,
	                      memory_order_relaxed);
	decoder_done(v, image, false);
	if (is_spooling) /* the disk writes while the steps run */
		disk_job_send_image(v, &image->store_job, DISK_SPOOL, image->source_size);
	send_children(v, image, PLAN_ROOT, root);
	image_steps_end(v, image, 1);
}

void image_decode_failed(struct visit *v, struct image *image, const struct problem *problem)
{
	image_set_problem(image, problem);
	decoder_done(v, image, true);
	visit_send(v, STAGE_STATS, &image->event);
}

void image_spooled(struct visit *v, struct image *image, const struct problem *problem)
{
	if (problem) {
		image_set_problem(image, problem);
		image->decode_failed = true;
		image->responds_at_end = true; /* the image's first problem is settled only then */
	} else {
		upload_image_done(v, image->upload);
	}
	if (problem || !is_source_stored(image))
		image_source_done(image);
	image_steps_end(v, image, 1);
}

/* Parks the step's event, and gives its input back. Returns its image. */
static struct image *end_step(struct visit *v, struct step *s)
{
	visit_park(v, &s->event);
	picture_unref(s->input);
	s->input = NULL;
	return s->image;
}

void step_done(struct visit *v, struct step *s, struct picture *result)
{
	struct image *image = end_step(v, s);

	send_children(v, image, (int)s->index, result);
	image_steps_end(v, image, 1);
}

void step_encoded(struct visit *v, struct step *s, uint8_t *data, size_t size, uint32_t width,
                  uint32_t height)
{
	struct image *image = end_step(v, s);
	struct image_file *file = &image->file[step_plan(s)->file];

	assert(!file->data);
	*file = (struct image_file){ .data = data, .size = size, .width = width, .height = height };
	image_steps_end(v, image, 1);
}

void step_left_out(struct visit *v, struct step *s, const char *why)
{
	struct image *image = end_step(v, s);

	if (why)
		log_warning("image %s: %s cannot be made: %s; the image does without it", image->id,
		            image_plan(image)->files.file[step_plan(s)->file].name, why);
	image_steps_end(v, image, 1);
}

void step_failed(struct visit *v, struct step *s, const struct problem *problem)
{
	struct image *image = end_step(v, s);

	image_set_problem(image, problem);
	image_steps_end(v, image, subtree_size(image_plan(image), s->index));
}

/* ---- whether work is still of use ---- */

/* Returns whether the client waits for the image. An acknowledged image is stored in any case. */
static bool is_awaited(const struct upload *u, bool is_decoded)
{
	return u->waiter && !(is_decoded && u->respond_after_decode);
}

static bool has_gone(const struct upload *u, struct problem *problem)
{
	/* Relaxed: only the flag matters. */
	if (!u->client_gone || !atomic_load_explicit(u->client_gone, memory_order_relaxed))
		return false;
	counter_add_shared(&u->service->client_gone);
	problem_set(problem, 503, "client-gone", "the client has reset the connection");
	return true;
}

static bool is_late(const struct upload *u, uint64_t now_ns, struct problem *problem)
{
	if (u->deadline_ns == 0 || now_ns < u->deadline_ns)
		return false;
	counter_add_shared(&u->service->too_late);
	problem_set(problem, 503, "too-late", "the time of X-Request-Deadline is over");
	return true;
}

static bool has_waited_too_long(const struct upload *u, uint64_t now_ns, struct problem *problem)
{
	uint64_t max_ms = u->epoch->conf.overload.max_queue_time_ms;

	if (max_ms == 0 || now_ns - u->admitted.begun_ns < max_ms * NS_PER_MS)
		return false;
	counter_add_shared(&u->service->too_late);
	problem_set(problem, 503, "too-late",
	            "the image has waited longer than overload.max_queue_time");
	return true;
}

bool image_is_wanted(struct visit *v, const struct image *image, struct problem *problem)
{
	const struct upload *u = image->upload;
	uint64_t now_ns = visit_now(v);

	return !is_awaited(u, false) || !(has_gone(u, problem) || is_late(u, now_ns, problem) ||
	                                  has_waited_too_long(u, now_ns, problem));
}

bool files_are_wanted(struct visit *v, const struct image *image, struct problem *problem)
{
	const struct upload *u = image->upload;

	return !is_awaited(u, true) || !(has_gone(u, problem) || is_late(u, visit_now(v), problem));
}

bool step_is_wanted(struct visit *v, struct step *s)
{
	struct problem problem;

	if (files_are_wanted(v, s->image, &problem))
		return true;
	step_failed(v, s, &problem);
	return false;
}

/* ---- CPU time, and turns ---- */

#define NS_PER_SIZE 16 /* an event's size is about that of the file */

void image_spend(struct image *image, uint64_t since_ns)
{
	atomic_fetch_add_explicit(&image->steps_ns, clock_thread_near_ns() - since_ns,
	                          memory_order_relaxed);
}

uint64_t image_event_size(const struct image *image, uint64_t bytes)
{
	uint64_t size = (uint64_t)((double)image->work / NS_PER_SIZE * (double)bytes /
	                           (double)image->source_size);

	return size * (image->remade ? REMADE_WEIGHT : 1);
}

uint64_t image_spent_ns(const struct image *image)
{
	return image->decode_ns + atomic_load_explicit(&image->steps_ns, memory_order_relaxed);
}

void image_end_turn(struct image *image)
{
	struct image_service *s = image->upload->service;

	images_resume(s, client_turns_ended(&s->turns, &image->turn, image_spent_ns(image)));
}

void images_resume(struct image_service *s, struct turn *list)
{
	while (list) {
		struct image *image = CONTAINER_OF(list, struct image, turn);

		list = list->next; /* the image is not ours once it is queued */
		stage_push(graph_stage(s->graph, STAGE_JPEG_DECODE), 0, &image->event);
	}
}

/* ---- the end ---- */

void images_send_waiters(struct image_service *s, struct waiter *list, unsigned result)
{
	while (list) {
		struct waiter *w = list;

		list = w->next; /* w is its owner's once the event is sent */
		w->result = result;
		stage_push(graph_stage(s->graph, STAGE_ACCEPT_READ), w->instance, w->event);
	}
}

void image_end(struct visit *v, struct image *image)
{
	struct upload *u = image->upload;

	/* Other images may keep the upload much longer. */
	for (unsigned i = 0; i < CONF_FILE_MAX; i++) {
		pool_put(image->file[i].data);
		image->file[i].data = NULL;
	}
	pool_put(image->icc);
	image->icc = NULL;
	visit_park(v, &image->event);
	/* The connections retry. */
	images_send_waiters(u->service, inflight_remove(&u->service->inflight, &image->known), 0);
	while (image->hold_count > 0)
		image->release[--image->hold_count](v, image);
	if (image->responds_at_end || !u->respond_after_decode)
		upload_image_done(v, u);
	upload_unref(u);
}
