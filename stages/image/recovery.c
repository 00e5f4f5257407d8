/*
 * recovery.c - feeds spooled images back into the graph.
 *
 * The thread walks the spool at startup, and whenever an acknowledged image failed. If disk space
 * or memory ran out, it waits before the next pass, twice as long each time.
 */
#include "recovery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/pool.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "recovery_report.h"
#include "sched/graph.h"
#include "stage_ids.h"
#include "storage.h"
#include "store/spool.h"

#define LIST_MAX 4096   /* images of one pass; more images take another pass */
#define ROOM_POLL_MS 20 /* interval between checks for room */
#define RETRY_MS_MIN 500
#define RETRY_MS_MAX 16000
#define OBJECTS_RETRY_MS_MAX 1000 /* with store.kind = s3 */
#define AWAY_POLL_MS 200          /* interval between checks whether the store is back */

/* ---- waiting ---- */

/* Waits for ms. Returns true at once if recovery is stopping. */
static bool pause_for(struct recovery *r, uint64_t ms)
{
	return condition_pause(&r->changed, &r->lock, &r->is_stopping, ms);
}

/* ---- results ---- */

static void quarantine(struct recovery *r, const char *id, const char *why)
{
	int err = spooling_quarantine(r->service, id, why);

	if (err == -ENOENT)
		return; /* the client removed it */
	if (!err)
		atomic_fetch_add_explicit(&r->quarantined, 1, memory_order_relaxed);
	/* Not rate-limited: an operator needs every id. */
	log_write(LOG_LEVEL_ERROR, "recovery: cannot process acknowledged image %s: %s; %s%s", id,
	          why, err ? "it stays in the spool: " : "its original is in .quarantine",
	          err ? strerror(-err) : "");
}

/* Settles an attempt that has ended. Returns true if the image may be retried. */
static bool settle(struct recovery *r, const struct recovery_slot *slot)
{
	switch (slot->result) {
	case RECOVERY_STORED:
		atomic_fetch_add_explicit(&r->recovered, 1, memory_order_relaxed);
		log_info("recovery: image %s is stored", slot->id);
		return false;
	case RECOVERY_REFUSED:
		quarantine(r, slot->id, slot->why);
		return false;
	case RECOVERY_LATER:
		spooling_set_attempts(r->service, slot->id, slot->attempts);
		return true;
	default: /* the attempt counts */
		return true;
	}
}

/* Settles ended attempts, and waits until at most max images are in flight. Sets *is_delayed if one
 * of them must be retried. Returns false if recovery is stopping. */
static bool await(struct recovery *r, unsigned max, bool *is_delayed)
{
	unsigned busy;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		busy = 0;
		for (unsigned i = 0; i < RECOVERY_AT_ONCE;) {
			struct recovery_slot *slot = &r->slot[i++], ended = *slot;

			busy += slot->is_taken;
			if (!slot->is_taken || !slot->result)
				continue;
			slot->is_taken = false;
			pthread_mutex_unlock(&r->lock);
			*is_delayed |= settle(r, &ended);
			atomic_fetch_sub_explicit(&r->waiting, 1, memory_order_relaxed);
			pthread_mutex_lock(&r->lock);
			busy = i = 0; /* another one may have ended, and its signal is lost */
		}
		if (busy <= max || r->is_stopping)
			break;
		condition_wait(&r->changed, &r->lock, -1);
	}
	bool is_stopping = r->is_stopping;

	pthread_mutex_unlock(&r->lock);
	return !is_stopping;
}

static enum recovery_result result_of(const struct image *image)
{
	/* Acquire: pairs with image_set_problem(). */
	if (!atomic_load_explicit(&image->has_failed, memory_order_acquire))
		return RECOVERY_STORED;
	if (image->problem.status < 500)
		return RECOVERY_REFUSED;
	return strcmp(image->problem.slug, "internal") == 0 ? RECOVERY_FAULT : RECOVERY_LATER;
}

void recovery_image_ended(struct recovery *r, struct image *image)
{
	struct recovery_slot *slot = image->upload->recovery_slot;
	enum recovery_result result = result_of(image);

	pthread_mutex_lock(&r->lock);
	if (slot && result == RECOVERY_REFUSED)
		snprintf(slot->why, sizeof slot->why, "%.60s: %s", image->problem.title,
		         image->problem.detail);
	if (slot)
		slot->result = result;
	if (image->stays_spooled || (!slot && result != RECOVERY_STORED))
		r->is_called = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

void recovery_call(struct recovery *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_called = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* ---- feeding ---- */

/* Returns limits.images_in_flight. This thread makes no visits, so it needs a reference. */
static uint64_t images_max(struct image_service *s)
{
	struct conf_epoch *epoch = conf_epoch_ref(&s->epochs);
	uint64_t max = epoch->conf.limits.images_in_flight;

	conf_epoch_unref(&s->epochs, epoch);
	return max;
}

/* Takes room for one more image and its body, once there is some. False: recovery is stopping. */
static bool reserve_room(struct recovery *r, struct budget_body *memory, uint64_t bytes)
{
	struct image_service *s = r->service;
	bool is_small = bytes <= budget_small_max(&s->budget);

	budget_body_init(&s->budget, memory, is_small ? BUDGET_SMALL_BODY : BUDGET_BODY, NULL);
	while (!budget_body_try(&s->budget, memory, bytes))
		if (pause_for(r, ROOM_POLL_MS))
			return false;
	while (atomic_fetch_add_explicit(&s->in_flight, 1, memory_order_relaxed) >= images_max(s)) {
		atomic_fetch_sub_explicit(&s->in_flight, 1, memory_order_relaxed);
		if (pause_for(r, ROOM_POLL_MS)) {
			budget_body_release(&s->budget, memory);
			return false;
		}
	}
	return true;
}

static void release_room(struct recovery *r, struct budget_body *memory)
{
	atomic_fetch_sub_explicit(&r->service->in_flight, 1, memory_order_relaxed);
	budget_body_release(&r->service->budget, memory);
}

static int read_all(int fd, uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Makes an upload of one image, for which no response waits. Returns NULL if there is no memory;
 * the body is then still the caller's. */
static struct upload *make_upload(struct recovery *r, const char *id, uint8_t *body, uint64_t size,
                                  struct budget_body *memory, const struct spool_names *names)
{
	struct upload *u = upload_new(r->service, 0, body, memory, 1, 0);

	if (!u)
		return NULL;
	struct image *image =
		upload_add_image(u, body, (size_t)size, "", 0, names->file, strlen(names->file));

	memcpy(u->token_name, names->token, sizeof u->token_name);
	u->expires = names->expires;
	u->metadata = names->metadata;
	memcpy(u->focus, names->focus, sizeof u->focus);
	memcpy(image->id, id, sizeof image->id);
	image->is_spooled = true;
	return u;
}

static struct recovery_slot *take_slot(struct recovery *r, const struct spooled *spooled)
{
	struct recovery_slot *slot = r->slot;

	pthread_mutex_lock(&r->lock);
	while (slot->is_taken)
		slot++;
	assert(slot < r->slot + RECOVERY_AT_ONCE); /* await() made room */
	*slot = (struct recovery_slot){ .attempts = spooled->attempts, .is_taken = true };
	memcpy(slot->id, spooled->id, sizeof slot->id);
	pthread_mutex_unlock(&r->lock);
	return slot;
}

/* Reads the original and starts it. Owns fd and the room taken. Returns 0 or -errno. */
static int feed(struct recovery *r, const struct spooled *spooled, int fd, uint64_t size,
                struct budget_body *memory, const struct spool_names *names)
{
	struct image_service *s = r->service;
	uint8_t *body = pool_get((size_t)size);
	int err = body ? read_all(fd, body, (size_t)size) : -ENOMEM;
	struct upload *u = err ? NULL : make_upload(r, spooled->id, body, size, memory, names);

	close(fd);
	if (!err && !u)
		err = -ENOMEM;
	if (err) {
		pool_put(body);
		release_room(r, memory);
		return err;
	}
	int uncounted = spooling_set_attempts(s, spooled->id, spooled->attempts + 1);

	if (uncounted == -ENOENT) { /* the client removed it meanwhile */
		upload_unref(u);
		release_room(r, memory);
		return uncounted;
	}
	if (uncounted)
		log_warning("recovery: cannot count the attempt for image %s: %s; trying anyway",
		            spooled->id, strerror(-uncounted));
	u->recovery_slot = take_slot(r, spooled);
	if (upload_restart(u))
		return 0;
	pthread_mutex_lock(&r->lock);
	u->recovery_slot->is_taken = false;
	pthread_mutex_unlock(&r->lock);
	upload_unref(u);
	release_room(r, memory);
	return -EALREADY;
}

/* Starts an image, unless it is stored or cannot be processed. Returns whether it is started; sets
 * *is_delayed if it must be retried. */
static bool begin(struct recovery *r, const struct spooled *spooled, bool *is_delayed)
{
	struct image_service *s = r->service;
	struct spool_names names;
	struct budget_body memory;
	uint64_t size = 0;

	int is_stored = storage_has(s, spooled->id);

	if (is_stored) {
		/* The daemon ended between storing and unspooling, or unspooling failed. */
		int err = is_stored < 0 ? is_stored : spooling_clear(s, spooled->id);

		r->known += !err;
		*is_delayed |= err && err != -ENOENT;
		return false;
	}
	if (spooled->attempts >= SPOOL_ATTEMPTS_MAX) {
		quarantine(r, spooled->id, "3 attempts failed");
		return false;
	}
	int fd = spooling_open(s, spooled->id, &size, &names);

	if (fd >= 0 && size > budget_max(&s->budget)) {
		close(fd);
		quarantine(r, spooled->id, "limits.memory_budget is too small for it");
		return false;
	}
	if (fd >= 0 && !reserve_room(r, &memory, size)) {
		close(fd);
		return false;
	}
	int err = fd < 0 ? fd : feed(r, spooled, fd, size, &memory, &names);

	if (err == -EINVAL)
		quarantine(r, spooled->id, "its spooled files are damaged");
	else if (err && err != -ENOENT) {
		log_warning("recovery: cannot start image %s: %s; retrying later", spooled->id,
		            strerror(-err));
		*is_delayed = true;
	}
	return !err;
}

/* Removes images in flight from the list. Returns the number of the others. */
static int drop_known(struct recovery *r, struct spooled *list, int n)
{
	uint32_t width, height;
	int left = 0;

	for (int i = 0; i < n; i++)
		if (!inflight_find(&r->service->inflight, list[i].id, &width, &height))
			list[left++] = list[i];
	return left;
}

/* Makes one pass over the spool. Sets *is_delayed if an image must be retried. Returns true if the
 * list was full, so that there may be more images. */
static bool pass(struct recovery *r, struct spooling_list *spool, bool *is_delayed)
{
	struct spooled *list = spool->image;
	bool has_more;
	int listed = spooling_list(r->service, spool, &has_more), n = drop_known(r, list, listed);

	if (listed < 0) {
		log_error("recovery: cannot list the spool: %s; retrying later", strerror(-listed));
		*is_delayed = true;
		return false;
	}
	if (n)
		log_notice("recovery: %d acknowledged images are to be recovered", n);
	atomic_store_explicit(&r->waiting, (uint64_t)n, memory_order_relaxed);
	for (int i = 0; i < n && !*is_delayed; i++) {
		/* An image with failed attempts goes alone. */
		if (!await(r, list[i].attempts ? 0 : RECOVERY_AT_ONCE - 1, is_delayed))
			break;
		if (!*is_delayed && !begin(r, &list[i], is_delayed))
			atomic_fetch_sub_explicit(&r->waiting, 1, memory_order_relaxed);
	}
	await(r, 0, is_delayed);
	return has_more;
}

/* Waits for a call if `waits`, or until another node may need help. Returns false if recovery is
 * stopping. */
static bool is_called(struct recovery *r, bool waits)
{
	int ms = spooling_interval_ms(r->service);

	pthread_mutex_lock(&r->lock);
	while (waits && !r->is_called && !r->is_stopping) {
		condition_wait(&r->changed, &r->lock, ms);
		waits = ms < 0;
	}
	bool is_stopping = r->is_stopping;

	r->is_called = false;
	pthread_mutex_unlock(&r->lock);
	return !is_stopping;
}

/* Waits until the store answers. Returns false if recovery is stopping. */
static bool await_store(struct recovery *r)
{
	while (storage_is_away(r->service))
		if (pause_for(r, AWAY_POLL_MS))
			return false;
	return true;
}

static void *recovery_run(void *arg)
{
	struct recovery *r = arg;
	unsigned retry_ms_max = r->service->s3 ? OBJECTS_RETRY_MS_MAX : RETRY_MS_MAX;
	struct spooled *list = calloc(LIST_MAX, sizeof *list);
	struct spooling_list spool = { .image = list, .max = LIST_MAX };
	unsigned retry_ms = RETRY_MS_MIN;
	bool has_more = true;

	if (!list)
		log_error(
			"recovery: no memory for the list; spooled images wait for the next start");
	while (list && is_called(r, !has_more) && await_store(r)) {
		bool is_delayed = false;

		has_more = pass(r, &spool, &is_delayed) || is_delayed;
		if (!has_more)
			recovery_report(r);
		if (!is_delayed)
			retry_ms = RETRY_MS_MIN;
		else if (pause_for(r, retry_ms))
			break;
		else if (retry_ms < retry_ms_max)
			retry_ms *= 2;
	}
	free(list);
	pool_thread_fini();
	return NULL;
}

/* ---- start and stop ---- */

int recovery_init(struct recovery *r, struct image_service *s)
{
	r->service = s;
	pthread_mutex_init(&r->lock, NULL);
	return condition_init(&r->changed);
}

void recovery_fini(struct recovery *r)
{
	bool ignored = false;

	recovery_stop(r);
	await(r, RECOVERY_AT_ONCE, &ignored); /* settle the last results */
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
}

int recovery_start(struct recovery *r)
{
	int err = -pthread_create(&r->thread, NULL, recovery_run, r);

	if (err)
		log_error("recovery: cannot start its thread: %s", strerror(-err));
	r->is_started = !err;
	return err;
}

void recovery_stop(struct recovery *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_stopping = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (r->is_started)
		pthread_join(r->thread, NULL);
	r->is_started = false;
}
