/*
 * remake.c - takes images from the queue while little else is to do.
 *
 * An entry leaves the queue when its image is remade, or cannot be. If the daemon is killed before
 * that, the next start finds the entry, and only what is still missing is made.
 */
#include "remake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/pool.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "remade.h"
#include "remake_report.h"
#include "store/remake_queue.h"
#include "telemetry/counter.h"

#define LIST_MAX 4096    /* images of one pass; more images take another pass */
#define TURN_POLL_MS 2   /* interval between checks whether other images are in flight */
#define CALM_POLL_MS 200 /* the same, whether images are made in cheaper ways */
#define LOOK_MS 50       /* interval between looks into an empty queue, for a while after a call */
#define LOOKS_MAX 100
#define RETRY_MS_MIN 500
#define RETRY_MS_MAX 16000
#define QUIET_NS NS_PER_S

typedef char image_id[ULID_LENGTH + 1];

/* ---- waiting ---- */

/* Waits for ms. Returns true at once if the thread is to stop. */
static bool pause_for(struct remake *r, uint64_t ms)
{
	return condition_pause(&r->changed, &r->lock, &r->is_stopping, ms);
}

/* ---- results ---- */

static void give_up(struct remake *r, const char *id, const char *why)
{
	int err = remake_queue_drop(&r->service->store, id);

	if (err == -ENOENT)
		return; /* taken out of the queue meanwhile */
	counter_add_shared(&r->failed);
	log_warning("remake: cannot remake image %s: %s; it stays as it is", id, why);
}

/* Sets the number of attempts that count. */
static void set_attempts(struct remake *r, const char *id, struct remake_entry *entry, int change)
{
	entry->attempts = (unsigned)((int)entry->attempts + change);
	int err = remake_queue_put(&r->service->store, id, entry);

	if (err)
		log_warning("remake: cannot count the attempt for image %s: %s; trying anyway", id,
		            strerror(-err));
}

/* The attempt that was counted when the image began does not count. */
static void forgive(struct remake *r, const char *id)
{
	struct remake_entry entry;

	if (remake_queue_get(&r->service->store, id, &entry) == 0 && entry.attempts > 0)
		set_attempts(r, id, &entry, -1);
}

/* Settles an attempt that has ended. Returns true if the image is retried. */
static bool settle(struct remake *r, const struct remake_slot *slot)
{
	switch (slot->result) {
	case REMAKE_MADE:
		counter_add_shared(&r->made);
		(void)remake_queue_drop(&r->service->store, slot->id);
		return false;
	case REMAKE_GONE:
		(void)remake_queue_drop(&r->service->store, slot->id);
		return false;
	case REMAKE_REFUSED:
		give_up(r, slot->id, "the present configuration refuses its original");
		return false;
	case REMAKE_LATER:
		forgive(r, slot->id);
		return true;
	default: /* the attempt counts */
		return true;
	}
}

/* Settles what has ended. Returns the number of slots in use. Under the lock, which it opens. */
static unsigned settle_all(struct remake *r, bool *is_delayed)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < REMAKE_AT_ONCE;) {
		struct remake_slot *slot = &r->slot[i++], ended = *slot;

		busy += slot->is_taken;
		if (!slot->is_taken || !slot->result)
			continue;
		slot->is_taken = false;
		pthread_mutex_unlock(&r->lock);
		*is_delayed |= settle(r, &ended);
		atomic_fetch_sub_explicit(&r->waiting, 1, memory_order_relaxed);
		pthread_mutex_lock(&r->lock);
		busy = i = 0; /* another one may have ended meanwhile, and its signal is lost */
	}
	return busy;
}

/* Waits until all started images have ended. */
static void await_all(struct remake *r, bool *is_delayed)
{
	pthread_mutex_lock(&r->lock);
	while (settle_all(r, is_delayed) > 0 && !r->is_stopping)
		condition_wait(&r->changed, &r->lock, -1);
	pthread_mutex_unlock(&r->lock);
}

static enum remake_result result_of(const struct image *image)
{
	/* Acquire: pairs with image_set_problem(). */
	if (!atomic_load_explicit(&image->has_failed, memory_order_acquire))
		return REMAKE_MADE;
	if (image->remade->is_gone)
		return REMAKE_GONE;
	if (image->problem.status < 500)
		return REMAKE_REFUSED;
	return strcmp(image->problem.slug, "internal") == 0 ? REMAKE_FAULT : REMAKE_LATER;
}

/* An average over some images. */
static void note_cost(struct remake *r, const struct image *image)
{
	uint64_t pixels = (uint64_t)image->width * image->height, ns = 0;

	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++)
		ns += counter_read(&image->upload->timing.service_ns[i]);
	uint64_t cost = pixels ? ns * 1000 / pixels : 0, was = counter_read(&r->ns_per_kilopixel);

	if (cost)
		atomic_store_explicit(&r->ns_per_kilopixel, was ? (was * 7 + cost) / 8 : cost,
		                      memory_order_relaxed);
}

void remake_image_ended(struct remake *r, struct image *image)
{
	enum remake_result result = result_of(image);

	if (result == REMAKE_MADE)
		note_cost(r, image);
	pthread_mutex_lock(&r->lock);
	image->remade->slot->result = result;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* ---- turns ---- */

/* Returns whether one more image may be in flight. */
static bool may_begin(struct remake *r, unsigned mine)
{
	uint64_t all = counter_read(&r->service->in_flight), now = clock_ns();

	if (all > mine)
		r->busy_ns = now;
	bool is_quiet = now - r->busy_ns > QUIET_NS;
	uint64_t max = is_quiet ? r->cores + 1 : r->cores > 3 ? r->cores / 2 : 1;

	return (all > mine ? all : mine) < (max < REMAKE_AT_ONCE ? max : REMAKE_AT_ONCE);
}

/* Waits for a turn. Returns false if the thread is to stop, or an image must be retried. */
static bool await_turn(struct remake *r, bool *is_delayed)
{
	bool is_calm = true;

	pthread_mutex_lock(&r->lock);
	while (!r->is_stopping && !*is_delayed) {
		unsigned mine = settle_all(r, is_delayed);

		is_calm = admission_is_calm(&r->service->admission);
		if (is_calm && may_begin(r, mine))
			break;
		condition_wait(&r->changed, &r->lock, is_calm ? TURN_POLL_MS : CALM_POLL_MS);
	}
	bool may = !r->is_stopping && !*is_delayed;

	pthread_mutex_unlock(&r->lock);
	return may;
}

/* ---- beginning ---- */

static struct remake_slot *take_slot(struct remake *r, const char *id)
{
	struct remake_slot *slot = r->slot;

	pthread_mutex_lock(&r->lock);
	while (slot->is_taken)
		slot++;
	assert(slot < r->slot + REMAKE_AT_ONCE); /* may_begin() left one */
	*slot = (struct remake_slot){ .is_taken = true };
	memcpy(slot->id, id, sizeof slot->id);
	pthread_mutex_unlock(&r->lock);
	return slot;
}

static void leave_slot(struct remake *r, struct remake_slot *slot)
{
	pthread_mutex_lock(&r->lock);
	slot->is_taken = false;
	pthread_mutex_unlock(&r->lock);
}

/* The image did not start. Returns whether it is retried. */
static bool settle_start(struct remake *r, const char *id, int result)
{
	switch (result) {
	case REMADE_COMPLETE:
	case -ENOENT:
		(void)remake_queue_drop(&r->service->store, id);
		return false;
	case -ENODATA:
		give_up(r, id, "it has no original");
		return false;
	case -EBADMSG:
		give_up(r, id, "its original or its image.json is damaged");
		return false;
	case -EFBIG:
		give_up(r, id, "limits.memory_budget is too small for its original");
		return false;
	case -EAGAIN:
	case -EALREADY:
		forgive(r, id);
		return true;
	default:
		log_warning("remake: cannot start image %s: %s; retrying later", id,
		            strerror(-result));
		return true;
	}
}

/* Starts an image. Returns whether it is started; sets *is_delayed if it must be retried. */
static bool begin(struct remake *r, const char *id, struct remake_entry *entry, bool *is_delayed)
{
	if (entry->attempts >= REMAKE_QUEUE_ATTEMPTS_MAX) {
		give_up(r, id, "3 attempts failed");
		return false;
	}
	set_attempts(r, id, entry, 1);
	struct remake_slot *slot = take_slot(r, id);
	const struct remade_order order = { .id = id, .entry = entry, .slot = slot };
	int err = remade_start(r->service, &order);

	if (!err)
		return true;
	leave_slot(r, slot);
	*is_delayed |= settle_start(r, id, err);
	return false;
}

/* ---- the thread ---- */

/* Returns whether the image has an entry that can be read. */
static bool read_entry(struct remake *r, const char *id, struct remake_entry *entry)
{
	int err = remake_queue_get(&r->service->store, id, entry);

	if (err && err != -ENOENT)
		give_up(r, id, "its entry in .remake is damaged");
	return !err;
}

/* Starts the images of the list. Those that were in progress when the daemon ended go alone, and
 * last: one of them may have been the cause. Without alone they become the list. Returns their
 * number. */
static int start_all(struct remake *r, image_id *list, int n, bool alone, bool *is_delayed)
{
	struct remake_entry entry;
	int left = 0;

	for (int i = 0; i < n && await_turn(r, is_delayed); i++) {
		bool is_there = read_entry(r, list[i], &entry);

		if (is_there && entry.attempts > 0 && !alone) {
			memmove(list[left++], list[i], sizeof *list);
			continue;
		}
		if (is_there)
			remake_tell_begin(r);
		if (!is_there || !begin(r, list[i], &entry, is_delayed))
			atomic_fetch_sub_explicit(&r->waiting, 1, memory_order_relaxed);
		else if (alone)
			await_all(r, is_delayed);
	}
	return left;
}

/* Makes one pass over the queue. Sets *is_delayed if an image must be retried. Returns the number
 * of images that were in it. */
static int pass(struct remake *r, image_id *list, bool *is_delayed)
{
	uint64_t all;

	pthread_mutex_lock(&r->counting);
	int n = remake_queue_list(&r->service->store, list, LIST_MAX, &all);

	if (n >= 0)
		atomic_store_explicit(&r->waiting, all, memory_order_relaxed);
	pthread_mutex_unlock(&r->counting);
	if (n < 0) {
		log_error("remake: cannot list .remake: %s; retrying later", strerror(-n));
		*is_delayed = true;
		return 0;
	}
	int left = start_all(r, list, n, false, is_delayed);

	await_all(r, is_delayed);
	if (left > 0)
		start_all(r, list, left, true, is_delayed);
	return n;
}

/* Waits for a call, or with looks left for a while. Returns false if the thread is to stop. */
static bool await_call(struct remake *r, unsigned *looks)
{
	pthread_mutex_lock(&r->lock);
	if (!r->is_called && !r->is_stopping && *looks > 0)
		condition_wait(&r->changed, &r->lock, LOOK_MS);
	else
		while (!r->is_called && !r->is_stopping)
			condition_wait(&r->changed, &r->lock, -1);
	if (r->is_called)
		*looks = LOOKS_MAX;
	else if (*looks > 0 && --*looks == 0)
		remake_tell_end(r);
	r->is_called = false;
	bool is_stopping = r->is_stopping;

	pthread_mutex_unlock(&r->lock);
	return !is_stopping;
}

static void *remake_run(void *arg)
{
	struct remake *r = arg;
	image_id *list = calloc(LIST_MAX, sizeof *list);
	unsigned retry_ms = RETRY_MS_MIN;
	int n = 0;
	unsigned looks = 1;

	if (!list)
		log_error("remake: no memory for the list; nothing is remade until a restart");
	while (list && (n > 0 || await_call(r, &looks))) {
		bool is_delayed = false;

		n = pass(r, list, &is_delayed);
		if (!is_delayed)
			retry_ms = RETRY_MS_MIN;
		else if (pause_for(r, retry_ms))
			break;
		else if (retry_ms < RETRY_MS_MAX)
			retry_ms *= 2;
		if (pause_for(r, 0))
			break;
	}
	free(list);
	pool_thread_fini();
	return NULL;
}

/* ---- start and stop ---- */

int remake_init(struct remake *r, struct image_service *s)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int err = remake_queue_make(&s->store);

	if (err)
		return err;
	r->service = s;
	r->cores = cores > 1 ? (unsigned)cores : 1;
	err = condition_init(&r->changed);
	if (err)
		return err;
	pthread_mutex_init(&r->counting, NULL);
	pthread_mutex_init(&r->lock, NULL);
	return 0;
}

void remake_fini(struct remake *r)
{
	bool ignored = false;

	remake_stop(r);
	pthread_mutex_lock(&r->lock);
	settle_all(r, &ignored); /* the last results */
	pthread_mutex_unlock(&r->lock);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->counting);
}

int remake_start(struct remake *r)
{
	r->is_called = true; /* for what the last run has left */
	int err = -pthread_create(&r->thread, NULL, remake_run, r);

	if (err)
		log_error("remake: cannot start its thread: %s", strerror(-err));
	r->is_started = !err;
	return err;
}

void remake_stop(struct remake *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_stopping = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (r->is_started)
		pthread_join(r->thread, NULL);
	r->is_started = false;
}

/* ---- calls ---- */

void remake_call(struct remake *r)
{
	pthread_mutex_lock(&r->lock);
	if (!r->is_called)
		pthread_cond_signal(&r->changed);
	r->is_called = true;
	pthread_mutex_unlock(&r->lock);
}
