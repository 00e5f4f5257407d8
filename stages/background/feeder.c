/* feeder.c - the thread, its passes, its slots and its uploads. */
#include "feeder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/text.h"
#include "image/image.h"
#include "image/image_service.h"
#include "image/remade.h"
#include "log/log.h"
#include "store/directory.h"
#include "telemetry/counter.h"

#define RETRY_MS_MIN 500
#define RETRY_MS_MAX 16000
#define OBJECTS_RETRY_MS_MAX 1000 /* with store.kind = s3 */
#define ROOM_POLL_MS 20           /* interval between checks for room */

/* ---- ends ---- */

enum feeder_result feeder_result_of(const struct image *image)
{
	/* Acquire: pairs with image_set_problem(). */
	if (!atomic_load_explicit(&image->has_failed, memory_order_acquire))
		return FEEDER_MADE;
	if (image->remade && image->remade->is_gone)
		return FEEDER_GONE;
	if (image->remade && image->remade->is_stale)
		return FEEDER_AGAIN;
	if (image->problem.status < 500)
		return FEEDER_REFUSED;
	return strcmp(image->problem.slug, "internal") == 0 ? FEEDER_FAULT : FEEDER_LATER;
}

/* Returns the result of an image that could not start, and notes why. */
static enum feeder_result result_of(struct feeder_slot *slot, int err)
{
	const char *why = NULL;

	switch (-err) {
	case 0:
		return FEEDER_IN_FLIGHT;
	case ENOENT:
		return FEEDER_GONE;
	case EAGAIN:
	case EALREADY:
		return FEEDER_AGAIN;
	case EBUSY:
	case ENOMEM:
		return FEEDER_LATER;
	case ERANGE:
		why = "3 attempts failed";
		break;
	case ENODATA:
		why = "it has no original";
		break;
	case EBADMSG:
		why = "its original or its image.json is damaged";
		break;
	case EFBIG:
		why = "limits.memory_budget is too small for it";
		break;
	case EINVAL:
		why = slot->feeder->class->damaged;
		break;
	}
	snprintf(slot->why, sizeof slot->why, "%s", why ? why : strerror(-err));
	return why ? FEEDER_REFUSED : FEEDER_FAULT;
}

static void set_attempts(struct feeder_slot *slot, unsigned attempts, int *err)
{
	*err = slot->feeder->class->set_attempts(slot->feeder, slot->item.id, attempts);
	if (*err && *err != -ENOENT)
		log_warning("%s: cannot count the attempt for image %s: %s; trying anyway",
		            slot->feeder->class->name, slot->item.id, strerror(-*err));
}

/* Settles an image of a list. */
static void settle_listed(struct feeder *f, struct feeder_slot *slot)
{
	int err;

	if (slot->result == FEEDER_AGAIN)
		slot->result = FEEDER_LATER;
	if (slot->result == FEEDER_FAULT && slot->why[0])
		log_warning("%s: cannot start image %s: %s; retrying later", f->class->name,
		            slot->item.id, slot->why);
	if (slot->result == FEEDER_LATER && slot->is_counted)
		set_attempts(slot, slot->item.attempts, &err);
	f->is_delayed |= slot->result == FEEDER_LATER || slot->result == FEEDER_FAULT;
	f->gone += slot->result == FEEDER_GONE;
	if (slot->result == FEEDER_MADE)
		counter_add_shared(&f->made);
	atomic_fetch_sub_explicit(&f->waiting, 1, memory_order_relaxed);
}

/* The slot is free before the class lets another image of front() begin: there is one for each. */
static void settle_slot(struct feeder *f, struct feeder_slot *slot)
{
	if (!slot->item.asked)
		settle_listed(f, slot);
	struct feeder_slot ended = *slot;

	pthread_mutex_lock(&f->lock);
	slot->is_taken = false;
	pthread_mutex_unlock(&f->lock);
	f->class->ended(f, &ended);
}

/* Notes the end of a slot's image. By the thread that ends it. */
static void slot_ended(struct visit *v, struct image *image)
{
	struct feeder_slot *slot = image->upload->slot;
	struct feeder *f = slot->feeder;
	enum feeder_result result = feeder_result_of(image);
	bool is_asked = slot->item.asked; /* another image may have the slot soon */

	(void)v;
	if (result == FEEDER_REFUSED)
		snprintf(slot->why, sizeof slot->why, "%.60s: %s", image->problem.title,
		         image->problem.detail);
	pthread_mutex_lock(&f->lock);
	slot->result = result;
	feeder_wake(f);
	pthread_mutex_unlock(&f->lock);
	if (is_asked) /* a client waits for it, even if the thread has stopped */
		settle_slot(f, slot);
}

/* Settles what has ended. Returns the number of the lists' images in flight. */
static unsigned settle(struct feeder *f)
{
	unsigned busy = 0;

	for (struct feeder_slot *slot = f->slot; slot < f->slot + FEEDER_SLOTS; slot++) {
		pthread_mutex_lock(&f->lock);
		bool is_listed = slot->is_taken && !slot->item.asked,
		     has_ended = is_listed && slot->result;

		pthread_mutex_unlock(&f->lock);
		busy += is_listed && !has_ended;
		if (has_ended)
			settle_slot(f, slot);
	}
	return busy;
}

/* ---- uploads ---- */

/* Makes an upload of one image with memory for it. Returns 0, -EAGAIN or -ENOMEM. */
static int make_upload(struct image_service *s, size_t size, const char *file_name,
                       struct upload **result)
{
	bool is_small = size <= budget_small_max(&s->budget);
	struct budget_body memory;

	budget_body_init(&s->budget, &memory, is_small ? BUDGET_SMALL_BODY : BUDGET_BODY,
	                 BUDGET_NO_CLIENT);
	if (!budget_body_try(&s->budget, &memory, size))
		return -EAGAIN;
	uint8_t *body = pool_get(size);
	struct upload *u = body ? upload_new(s, 0, body, &memory, 1, 0) : NULL;

	if (!u) {
		pool_put(body);
		budget_body_release(&s->budget, &memory);
		return -ENOMEM;
	}
	upload_add_image(u, body, size, "", 0, file_name, strlen(file_name));
	*result = u;
	return 0;
}

int feeder_upload_new(struct feeder_slot *slot, uint64_t size, const char *file_name, int fd,
                      struct upload **result)
{
	struct image_service *s = slot->feeder->service;
	struct upload *u;

	if (slot->item.attempts >= FEEDER_ATTEMPTS_MAX)
		return -ERANGE;
	if (size > budget_max(&s->budget))
		return -EFBIG;
	int err = make_upload(s, (size_t)size, file_name, &u);

	if (err)
		return err;
	memcpy(u->image[0]->id, slot->item.id, sizeof slot->item.id);
	if (!admission_take_place(&s->admission, u->epoch->conf.limits.images_in_flight)) {
		upload_drop(u);
		return -EAGAIN;
	}
	ssize_t n = directory_read_at(fd, u->body, (size_t)size, 0);

	if (n >= 0 && (uint64_t)n == size) {
		*result = u;
		return 0;
	}
	feeder_upload_drop(u);
	return n < 0 ? (int)n : -EBADMSG;
}

int feeder_upload_start(struct feeder_slot *slot, struct upload *u)
{
	int err = 0;

	if (!slot->item.asked) {
		set_attempts(slot, slot->item.attempts + 1, &err);
		slot->is_counted = !err;
	}
	err = err == -ENOENT ? err : -EALREADY;
	u->slot = slot;
	image_hold(u->image[0], slot_ended);
	if (err != -ENOENT && upload_restart(u))
		return 0;
	feeder_upload_drop(u);
	return err;
}

void feeder_upload_drop(struct upload *u)
{
	admission_give_place(&u->service->admission);
	upload_drop(u);
}

/* ---- passes ---- */

/* The images of the list have ended. */
static void end_pass(struct feeder *f)
{
	unsigned max = f->service->storage.class->is_shared ? OBJECTS_RETRY_MS_MAX : RETRY_MS_MAX;

	f->pass_ns = 0;
	f->end_ns = clock_ns();
	if (f->is_delayed) {
		f->pass_ns = f->end_ns + f->retry_ms * NS_PER_MS;
		f->retry_ms *= f->retry_ms < max ? 2 : 1;
		f->has_more = true;
	} else {
		f->retry_ms = RETRY_MS_MIN;
	}
	f->is_in_pass = f->is_delayed = false;
	f->at = f->count = 0;
}

/* Those with attempts come last. */
static int compare(const void *a, const void *b)
{
	const struct feeder_item *x = a, *y = b;
	int later = (x->attempts > 0) - (y->attempts > 0);

	return later ? later : memcmp(x->id, y->id, sizeof x->id);
}

/* Lists the directory. Returns 0 or -errno. */
static int list(struct feeder *f)
{
	unsigned listed = 0;
	uint64_t all = 0;
	const char *id;

	pthread_mutex_lock(&f->counting);
	DIR *dir = directory_list(f->service->store.root_fd, f->class->directory);
	int err = dir ? 0 : -errno;

	for (; dir && (id = directory_next_id(dir)); all++)
		if (listed < FEEDER_LIST_MAX)
			memcpy(f->item[listed++].id, id, sizeof f->item->id);
	if (dir) {
		closedir(dir);
		atomic_store_explicit(&f->waiting, all, memory_order_relaxed);
	}
	pthread_mutex_unlock(&f->counting);
	for (unsigned i = 0; i < listed; i++) {
		int attempts = f->class->attempts(f, f->item[i].id);

		if (attempts < 0) {
			atomic_fetch_sub_explicit(&f->waiting, 1, memory_order_relaxed);
			continue;
		}
		f->item[f->count] = f->item[i];
		f->item[f->count++].attempts = (unsigned)attempts;
	}
	f->has_more = listed >= f->class->more;
	return err;
}

/* There is nothing to do. More images may come soon, and one line is enough for all. Returns as
 * next(). */
static int tell_end(struct feeder *f, uint64_t now)
{
	uint64_t due = f->end_ns + f->class->quiet_ms * NS_PER_MS;

	if (!f->is_told)
		return -1;
	if (now < due)
		return (int)((due - now) / NS_PER_MS) + 1;
	uint64_t made = counter_read(&f->made), failed = counter_read(&f->failed);

	log_notice("%s: done: %" PRIu64 " %s%s %s, %" PRIu64 " %s, %" PRIu64 " %s", f->class->name,
	           made - f->told_made, f->class->noun, plural(made - f->told_made), f->class->made,
	           f->gone, f->class->gone, failed - f->told_failed, f->class->failed);
	f->is_told = false;
	f->told_made = made;
	f->told_failed = failed;
	f->gone = 0;
	return -1;
}

/* Makes the list of the next pass. Returns as next(). */
static int begin_pass(struct feeder *f)
{
	uint64_t now = clock_ns();

	if (now < f->pass_ns)
		return (int)((f->pass_ns - now) / NS_PER_MS) + 1;
	pthread_mutex_lock(&f->lock);
	bool is_called = f->is_called;

	f->is_called = false;
	pthread_mutex_unlock(&f->lock);
	if (!is_called && !f->has_more)
		return tell_end(f, now);
	f->is_in_pass = true;
	int err = list(f);

	qsort(f->item, f->count, sizeof *f->item, compare);
	if (err) {
		log_error("%s: cannot list %s: %s; retrying later", f->class->name,
		          f->class->directory, strerror(-err));
		f->is_delayed = true;
	}
	return 0;
}

/* Starts an image. Returns its result. */
static enum feeder_result start(struct feeder *f, const struct feeder_item *item)
{
	struct feeder_slot *slot = f->slot;

	pthread_mutex_lock(&f->lock);
	while (slot->is_taken)
		slot++;
	assert(slot < f->slot + FEEDER_SLOTS); /* there are fewer in flight */
	slot->is_taken = true;
	slot->is_counted = false;
	slot->item = *item;
	slot->result = FEEDER_IN_FLIGHT;
	slot->why[0] = '\0';
	pthread_mutex_unlock(&f->lock);
	enum feeder_result result = result_of(slot, f->class->start(f, slot));

	if (result == FEEDER_IN_FLIGHT) /* it may have ended by now */
		return result;
	if (result == FEEDER_AGAIN && !item->asked && !slot->is_counted) {
		slot->is_taken = false; /* only this thread takes slots */
		return result;
	}
	slot->result = result;
	settle_slot(f, slot);
	return result;
}

/* Starts an image of the list if one may start. As next(). */
static int feed_list(struct feeder *f)
{
	unsigned busy = settle(f);
	bool has_next = f->at < f->count && !f->is_delayed;

	if (!has_next && busy > 0)
		return -1;
	if (!has_next) {
		if (f->is_in_pass)
			end_pass(f);
		return begin_pass(f);
	}
	if (busy >= (f->item[f->at].attempts ? 1 : f->class->at_once))
		return -1;
	int ms = f->class->pace ? f->class->pace(f, busy) : 0;

	if (ms == 0 && !f->is_told)
		log_notice("%s: %" PRIu64 " %s%s %s", f->class->name, counter_read(&f->waiting),
		           f->class->noun, plural(counter_read(&f->waiting)), f->class->task);
	f->is_told |= ms == 0;
	if (ms == 0 && start(f, &f->item[f->at]) == FEEDER_AGAIN)
		return ROOM_POLL_MS;
	f->at += ms == 0;
	return ms;
}

int feeder_feed(struct feeder *f)
{
	struct feeder_item item = { .attempts = 0 };
	int ms = f->class->front ? f->class->front(f, &item) : -1;

	if (ms == 0) {
		start(f, &item);
		return 0;
	}
	int later = feed_list(f);

	return ms < 0 || (later >= 0 && later < ms) ? later : ms;
}

/* ---- the thread ---- */

static void *feeder_run(void *arg)
{
	struct feeder *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->is_stopping) {
		f->has_news = false;
		pthread_mutex_unlock(&f->lock);
		int ms = f->class->next(f);

		pthread_mutex_lock(&f->lock);
		bool is_idle = ms && !f->has_news && !f->is_stopping;
		const struct timespec until = clock_deadline(ms > 0 ? (uint64_t)ms : 0);

		if (is_idle && ms < 0)
			pthread_cond_wait(&f->changed, &f->lock);
		else if (is_idle)
			pthread_cond_clockwait(&f->changed, &f->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&f->lock);
	pool_thread_fini();
	return NULL;
}

bool feeder_pause(struct feeder *f, uint64_t ms)
{
	const struct timespec until = clock_deadline(ms);

	pthread_mutex_lock(&f->lock);
	while (!f->is_stopping &&
	       pthread_cond_clockwait(&f->changed, &f->lock, CLOCK_MONOTONIC, &until) == 0)
		continue;
	bool is_stopping = f->is_stopping;

	pthread_mutex_unlock(&f->lock);
	return is_stopping;
}

void feeder_wake(struct feeder *f)
{
	f->has_news = true;
	pthread_cond_signal(&f->changed);
}

void feeder_call(struct feeder *f)
{
	pthread_mutex_lock(&f->lock);
	f->is_called = true;
	feeder_wake(f);
	pthread_mutex_unlock(&f->lock);
}

/* ---- start and stop ---- */

int feeder_init(struct feeder *f, const struct feeder_class *class, struct image_service *s)
{
	*f = (struct feeder){ .service = s, .retry_ms = RETRY_MS_MIN, .is_called = true };
	f->item = calloc(FEEDER_LIST_MAX, sizeof *f->item);
	if (!f->item)
		return -ENOMEM;
	pthread_cond_init(&f->changed, NULL);
	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_init(&f->counting, NULL);
	for (unsigned i = 0; i < FEEDER_SLOTS; i++)
		f->slot[i].feeder = f;
	f->class = class;
	return 0;
}

void feeder_fini(struct feeder *f)
{
	if (!f->class)
		return;
	feeder_stop(f);
	settle(f);
	free(f->item);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->counting);
}

int feeder_start(struct feeder *f)
{
	int err = -pthread_create(&f->thread, NULL, feeder_run, f);

	if (err)
		log_error("%s: cannot start its thread: %s", f->class->name, strerror(-err));
	f->is_started = !err;
	return err;
}

void feeder_stop(struct feeder *f)
{
	pthread_mutex_lock(&f->lock);
	f->is_stopping = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (f->is_started)
		pthread_join(f->thread, NULL);
	f->is_started = false;
}
