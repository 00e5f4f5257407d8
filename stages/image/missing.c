/* missing.c - a line of images that clients wait for, and the thread that starts them. */
#include "missing.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/pool.h"
#include "image.h"
#include "image_service.h"
#include "log/log.h"
#include "remade.h"
#include "sched/graph.h"
#include "sched/push.h"
#include "stage_ids.h"
#include "store/remake_queue.h"
#include "telemetry/counter.h"

#define TURN_POLL_MS 2             /* interval between looks at what else is in flight */
#define SHARE_NS (250 * NS_PER_MS) /* one image is begun in this time, whatever waits */
#define RETRY_NS (20 * NS_PER_MS)  /* without room, or while the image is in flight */
#define FAILED_NS (60 * NS_PER_S)

/* ---- the end of a slot ---- */

/* Frees the slot. Returns its waiters, to be sent without the lock. Under the lock. */
static struct missing_waiter *free_slot(struct missing_slot *slot, enum missing_result result)
{
	struct missing_waiter *list = slot->waiters;

	for (struct missing_waiter *w = list; w; w = w->next) {
		w->slot = NULL;
		w->result = result;
	}
	*slot = (struct missing_slot){ .is_taken = false };
	return list;
}

static void send_waiters(struct missing *m, struct missing_waiter *list)
{
	struct stage *stage = graph_stage(m->service->graph, STAGE_ACCEPT_READ);

	while (list) {
		struct missing_waiter *w = list;

		list = w->next; /* w is its owner's once the event is sent */
		stage_push(stage, w->instance, w->event);
	}
}

/* Notes that the image cannot be made. Under the lock. */
static void note_failure(struct missing *m, const char *id)
{
	struct missing_failure *f = &m->failure[m->failure_at++ % MISSING_FAILED_MAX];

	memcpy(f->id, id, sizeof f->id);
	f->until_ns = clock_ns() + FAILED_NS;
}

static void end_slot(struct missing *m, struct missing_slot *slot, enum missing_result result)
{
	pthread_mutex_lock(&m->lock);
	if (result == MISSING_IMPOSSIBLE)
		note_failure(m, slot->id);
	struct missing_waiter *list = free_slot(slot, result);

	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	send_waiters(m, list);
}

/* Lets the image begin once more, unless nothing waits for it. */
static void begin_again(struct missing *m, struct missing_slot *slot)
{
	struct missing_waiter *list = NULL;

	pthread_mutex_lock(&m->lock);
	slot->is_started = false;
	slot->retry_ns = clock_ns() + RETRY_NS;
	if (m->is_stopping || !slot->waiters)
		list = free_slot(slot, MISSING_LATER);
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	send_waiters(m, list);
}

static void fail(struct missing *m, struct missing_slot *slot, const char *why)
{
	counter_add_shared(&m->failed);
	log_warning("make_missing: cannot make what image %s lacks: %s; trying again after a "
	            "minute if it is asked for",
	            slot->id, why);
	end_slot(m, slot, MISSING_IMPOSSIBLE);
}

void missing_image_ended(struct missing *m, struct image *image)
{
	struct missing_slot *slot = image->remade->missing;

	/* Acquire: pairs with image_set_problem(). */
	if (!atomic_load_explicit(&image->has_failed, memory_order_acquire)) {
		counter_add_shared(&m->made);
		end_slot(m, slot, MISSING_ENDED);
	} else if (image->remade->is_gone) {
		end_slot(m, slot, MISSING_ENDED);
	} else if (image->remade->is_stale) {
		begin_again(m, slot);
	} else if (image->problem.status < 500) {
		fail(m, slot, image->problem.detail);
	} else {
		end_slot(m, slot, MISSING_LATER);
	}
}

/* ---- clients ---- */

static bool has_failed(const struct missing *m, const char *id)
{
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < MISSING_FAILED_MAX; i++)
		if (now < m->failure[i].until_ns && strcmp(m->failure[i].id, id) == 0)
			return true;
	return false;
}

/* Finds the image's slot, or takes one. Under the lock. */
static enum missing_answer take_slot(struct missing *m, const char *id,
                                     const struct client_key *client, struct missing_slot **result)
{
	struct missing_slot *empty = NULL;
	unsigned of_client = 0;

	for (struct missing_slot *slot = m->slot; slot < m->slot + MISSING_MAX; slot++) {
		if (!slot->is_taken) {
			empty = slot;
			continue;
		}
		*result = slot;
		if (strcmp(slot->id, id) == 0)
			return MISSING_WAITS;
		of_client += client && slot->has_client &&
		             memcmp(&slot->client, client, sizeof *client) == 0;
	}
	if (has_failed(m, id))
		return MISSING_FAILED;
	if (of_client >= MISSING_PER_CLIENT)
		return MISSING_CLIENT_FULL;
	if (!empty || m->is_stopping)
		return MISSING_FULL;
	*empty = (struct missing_slot){ .is_taken = true, .turn = m->turn++ };
	memcpy(empty->id, id, sizeof empty->id);
	if (client) {
		empty->has_client = true;
		empty->client = *client;
	}
	*result = empty;
	return MISSING_WAITS;
}

enum missing_answer missing_ask(struct missing *m, const char *id, const struct client_key *client,
                                struct missing_waiter *w)
{
	struct missing_slot *slot;

	pthread_mutex_lock(&m->lock);
	enum missing_answer answer = take_slot(m, id, client, &slot);

	if (answer == MISSING_WAITS) {
		w->slot = slot;
		w->next = slot->waiters;
		slot->waiters = w;
		pthread_cond_signal(&m->changed);
	} else {
		counter_add_shared(&m->refused);
	}
	pthread_mutex_unlock(&m->lock);
	return answer;
}

bool missing_cancel(struct missing *m, struct missing_waiter *w)
{
	struct missing_waiter **at;

	pthread_mutex_lock(&m->lock);
	bool was_waiting = w->slot != NULL;

	if (was_waiting) {
		for (at = &w->slot->waiters; *at != w; at = &(*at)->next)
			assert(*at);
		*at = w->next;
		if (!w->slot->waiters && !w->slot->is_started)
			free_slot(w->slot, MISSING_LATER);
		w->slot = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return was_waiting;
}

/* ---- turns ---- */

/* Returns whether one more image may begin beside those that this thread has begun. */
static bool may_begin(const struct missing *m, unsigned mine)
{
	uint64_t all = counter_read(&m->service->in_flight);
	unsigned max = m->cores > 3 ? m->cores / 2 : 1;

	if (mine >= max)
		return false;
	return all <= mine || all < max || clock_ns() - m->begun_ns >= SHARE_NS;
}

/* Returns the slot to begin, or NULL. Sets *is_waiting if one must wait. Under the lock. */
static struct missing_slot *next_slot(struct missing *m, bool *is_waiting)
{
	struct missing_slot *next = NULL;
	uint64_t now = clock_ns();
	unsigned mine = 0;

	*is_waiting = false;
	for (struct missing_slot *slot = m->slot; slot < m->slot + MISSING_MAX; slot++) {
		mine += slot->is_taken && slot->is_started;
		if (!slot->is_taken || slot->is_started)
			continue;
		*is_waiting = true;
		if (now >= slot->retry_ns && (!next || slot->turn < next->turn))
			next = slot;
	}
	return next && may_begin(m, mine) ? next : NULL;
}

/* ---- beginning ---- */

/* The image did not start. */
static void settle_start(struct missing *m, struct missing_slot *slot, int result)
{
	switch (result) {
	case REMADE_COMPLETE:
	case -ENOENT:
		end_slot(m, slot, MISSING_ENDED);
		break;
	case -ENODATA:
		fail(m, slot, "it has no original");
		break;
	case -EBADMSG:
		fail(m, slot, "its original or its image.json is damaged");
		break;
	case -EFBIG:
		fail(m, slot, "limits.memory_budget is too small for its original");
		break;
	case -EAGAIN:
	case -EALREADY:
		begin_again(m, slot);
		break;
	default:
		fail(m, slot, strerror(-result));
		break;
	}
}

static void begin(struct missing *m, struct missing_slot *slot)
{
	const struct remake_entry lacking = { .only_missing = true };
	const struct remade_order order = { .id = slot->id, .entry = &lacking, .missing = slot };
	int err = remade_start(m->service, &order);

	if (err)
		settle_start(m, slot, err);
	else
		m->begun_ns = clock_ns();
}

static void *missing_run(void *arg)
{
	struct missing *m = arg;
	bool is_waiting;

	pthread_mutex_lock(&m->lock);
	while (!m->is_stopping) {
		struct missing_slot *slot = next_slot(m, &is_waiting);

		if (!slot) {
			condition_wait(&m->changed, &m->lock, is_waiting ? TURN_POLL_MS : -1);
			continue;
		}
		slot->is_started = true; /* from now on only its end frees it */
		pthread_mutex_unlock(&m->lock);
		begin(m, slot);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
	pool_thread_fini();
	return NULL;
}

/* ---- start and stop ---- */

int missing_init(struct missing *m, struct image_service *s)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int err = condition_init(&m->changed);

	if (err)
		return err;
	m->service = s;
	m->cores = cores > 1 ? (unsigned)cores : 1;
	pthread_mutex_init(&m->lock, NULL);
	return 0;
}

void missing_fini(struct missing *m)
{
	missing_stop(m);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
}

int missing_start(struct missing *m)
{
	int err = -pthread_create(&m->thread, NULL, missing_run, m);

	if (err)
		log_error("make_missing: cannot start its thread: %s", strerror(-err));
	m->is_started = !err;
	return err;
}

void missing_stop(struct missing *m)
{
	struct missing_waiter *list;

	pthread_mutex_lock(&m->lock);
	m->is_stopping = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	if (!m->is_started)
		return;
	pthread_join(m->thread, NULL);
	m->is_started = false;
	for (struct missing_slot *slot = m->slot; slot < m->slot + MISSING_MAX; slot++) {
		pthread_mutex_lock(&m->lock);
		list = slot->is_taken && !slot->is_started ? free_slot(slot, MISSING_LATER) : NULL;
		pthread_mutex_unlock(&m->lock);
		send_waiters(m, list);
	}
}
