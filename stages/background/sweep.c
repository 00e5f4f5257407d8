/* sweep.c - a loop of count, removals and a pause. Knows the store; nothing of pixels or HTTP. */
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/pool.h"
#include "base/wall_clock.h"
#include "image_service.h"
#include "key_store.h"
#include "log/log.h"
#include "s3/s3_orphans.h"
#include "storage.h"
#include "store/store_batch.h"
#include "store/store_page.h"
#include "store/stored_info.h"

#define LIST_MAX 1024
#define COUNT_MAX 256 /* images that are counted at once */
#define COUNT_PAUSE_MS 10
#define YIELD_MS_MAX 100 /* to uploads, before each batch */
#define YIELD_POLL_MS 10
#define LOOK_MS_MAX 60000 /* until a changed interval is noticed */
#define MS_PER_S 1000
#define KEY_SHARDS 16    /* directories of keys that one run looks at */
#define JUMP_MAX_S 86400 /* of the clock, that removals by age may follow */

struct run {
	struct sweep *w;
	struct store *store;
	struct wall_clock clock;
	bool has_jumped; /* the clock, too far */
	uint64_t max_age_ms, max_bytes, interval_ms, rate;
	uint64_t start_ns, total;
	uint64_t key_age_s;
	unsigned key_shard; /* the next one */
	struct s3_orphans orphans;
	uint64_t removed[SWEEP_REASON_COUNT], bytes;
	struct store_batch batch;
	bool is_over; /* the thread stops, or the store has failed */
	bool has_failed;
	char first[ULID_LENGTH + 1], last[ULID_LENGTH + 1];
	struct expiry_due due[LIST_MAX];
	char id[LIST_MAX][ULID_LENGTH + 1];
	struct stored_info info;
	bool has_info;
};

/* ---- waiting ---- */

/* Waits. Returns true at once if the thread shall stop. */
static bool pause_for(struct sweep *w, uint64_t ms)
{
	return condition_pause(&w->changed, &w->lock, &w->is_stopping, ms);
}

/* Lets uploads go first, and keeps to the rate. */
static void pace(struct run *r)
{
	uint64_t due = r->start_ns + r->total * NS_PER_S / r->rate, now = clock_ns();

	if (now < due)
		r->is_over |= pause_for(r->w, (due - now) / NS_PER_MS + 1);
	for (unsigned ms = 0; ms < YIELD_MS_MAX && !r->is_over; ms += YIELD_POLL_MS) {
		/* Relaxed: only the number matters. */
		if (!atomic_load_explicit(&r->w->service->in_flight, memory_order_relaxed))
			break;
		r->is_over = pause_for(r->w, YIELD_POLL_MS);
	}
}

/* ---- removals ---- */

static void fail(struct run *r, const char *what, int err)
{
	log_error("expire: cannot %s: %s; trying again after store.sweep_interval", what,
	          strerror(-err));
	r->is_over = r->has_failed = true;
}

static void end_batch(struct run *r)
{
	int err = storage_batch_end(r->w->service, &r->batch);

	if (err)
		fail(r, "flush the disk", err);
	r->batch.count = 0;
	pace(r);
}

static void read_info(const char *data, size_t length, uint64_t expires, void *arg)
{
	struct run *r = arg;

	(void)expires;
	r->has_info = stored_info_read(&r->info, data, length) == 0;
}

/* Returns the bytes of the image's files; 0: unknown. */
static uint64_t bytes_of(struct run *r, const char *id)
{
	char ids[1][ULID_LENGTH + 1];

	r->has_info = false;
	memcpy(ids[0], id, sizeof ids[0]);
	if (storage_read(r->w->service, ids, 1, read_info, r) || !r->has_info)
		return 0;
	return stored_info_bytes(&r->info);
}

static void remove_one(struct run *r, const char *id, enum sweep_reason reason)
{
	uint64_t bytes = bytes_of(r, id);
	int err = storage_batch_add(r->w->service, &r->batch, id);

	if (err == -ENOENT)
		return; /* a client was faster */
	if (err) {
		fail(r, "remove an image", err);
		return;
	}
	if (!r->total++)
		memcpy(r->first, id, sizeof r->first);
	memcpy(r->last, id, sizeof r->last);
	r->removed[reason]++;
	r->bytes += bytes;
	atomic_fetch_add_explicit(&r->w->removed[reason], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->w->removed_bytes, bytes, memory_order_relaxed);
	if (r->batch.count == STORE_BATCH_MAX || r->batch.count >= r->rate)
		end_batch(r);
}

/* X-Expires-After. The notes go after the images. */
static void remove_expired(struct run *r)
{
	int n = LIST_MAX;

	while (n == LIST_MAX && !r->is_over) {
		n = storage_list_expired(r->w->service, (uint64_t)time(NULL), r->due, LIST_MAX);
		if (n < 0)
			fail(r, "list what has expired", n);
		int done = 0;

		for (; done < n && !r->is_over; done++)
			remove_one(r, r->due[done].id, SWEEP_EXPIRED);
		end_batch(r);
		for (int i = 0; i < done && !r->has_failed; i++)
			storage_forget_expired(r->w->service, r->due[i].id, r->due[i].expires);
	}
}

/* Lists the oldest images behind `page`. Returns whether there are some. */
static bool list_oldest(struct run *r, struct store_page *page)
{
	page->id = r->id;
	page->max = LIST_MAX;
	int err = storage_list(r->w->service, page);

	if (err)
		fail(r, "list the oldest images", err);
	return page->count > 0 && !r->is_over;
}

static void remove_too_old(struct run *r)
{
	uint64_t now_ms = (uint64_t)time(NULL) * MS_PER_S;
	struct store_page page = { .max = 0 };

	if (!r->max_age_ms || now_ms < r->max_age_ms)
		return;
	ulid_bound(now_ms - r->max_age_ms, '0', page.before);
	while (list_oldest(r, &page)) {
		for (unsigned i = 0; i < page.count && !r->is_over; i++)
			remove_one(r, page.id[i], SWEEP_TOO_OLD);
		end_batch(r);
		if (page.count < page.max)
			return;
		store_page_advance(&page);
	}
}

static bool has_too_much(const struct run *r)
{
	struct usage_total total = usage_total(&r->store->usage);

	return r->max_bytes && total.is_complete && total.all.bytes > r->max_bytes;
}

/* Each list begins with the oldest image that is left: others may have come meanwhile. */
static void remove_too_much(struct run *r)
{
	uint64_t total = 0;

	do {
		struct store_page page = { .max = 0 };

		total = r->total;
		if (!has_too_much(r) || !list_oldest(r, &page))
			return;
		for (unsigned i = 0; i < page.count && !r->is_over && has_too_much(r); i++)
			remove_one(r, page.id[i], SWEEP_TOO_MUCH);
		end_batch(r);
	} while (!r->is_over && r->total > total);
}

/* Records of Idempotency-Key: some directories in each run. Their age also counts when one is read,
 * so it does not matter when they go. */
static void remove_keys(struct run *r)
{
	uint64_t now = (uint64_t)time(NULL);

	if (!r->key_age_s && key_store_is_shared(r->w->service))
		return; /* there are none */
	for (unsigned i = 0; i < KEY_SHARDS && now > r->key_age_s; i++)
		key_store_sweep(r->w->service, r->key_shard++ % KEY_RECORD_SHARDS,
		                now - r->key_age_s);
}

/* Of an S3 store: some in each run. */
static void remove_orphans(struct run *r)
{
	int n = storage_remove_orphans(r->w->service, &r->orphans);

	if (n < 0)
		fail(r, "remove objects of images that were never stored", n);
	if (n > 0)
		log_notice("expire: removed %d objects of images that were never stored", n);
}

static void report(const struct run *r)
{
	if (!r->total)
		return;
	log_notice("expire: removed %" PRIu64 " images with %" PRIu64
	           " bytes, from %s to %s: %" PRIu64 " by X-Expires-After, %" PRIu64
	           " by store.max_age, %" PRIu64 " by store.max_bytes",
	           r->total, r->bytes, r->first, r->last, r->removed[SWEEP_EXPIRED],
	           r->removed[SWEEP_TOO_OLD], r->removed[SWEEP_TOO_MUCH]);
}

/* ---- the thread ---- */

/* This thread makes no visits, so it needs a reference. */
static void read_settings(struct run *r)
{
	struct conf_epochs *epochs = &r->w->service->epochs;
	struct conf_epoch *epoch = conf_epoch_ref(epochs);
	const struct conf *conf = &epoch->conf;

	r->max_age_ms = conf->store.max_age_ms;
	r->max_bytes = conf->store.max_bytes;
	r->interval_ms = conf->store.sweep_interval_ms;
	r->rate = conf->store.sweep_rate;
	r->key_age_s = conf->store.idempotency_age_ms / MS_PER_S;
	conf_epoch_unref(epochs, epoch);
}

/* Brings the figures up to date, or counts for the time of an interval. */
static void count(struct run *r)
{
	struct usage *usage = &r->store->usage;
	uint64_t end_ns = clock_ns() + r->interval_ms * NS_PER_MS;
	bool is_on = !r->w->service->s3 &&
	             (r->max_bytes || (r->w->has_quotas && atomic_load(r->w->has_quotas)));

	usage_switch(usage, r->store, is_on);
	usage_check_recount(usage, r->store);
	while (is_on && !r->is_over && clock_ns() < end_ns) {
		int result = usage_count(usage, r->store, COUNT_MAX);

		if (result < 0)
			fail(r, "count the images", result);
		if (result)
			break;
		r->is_over = pause_for(r->w, COUNT_PAUSE_MS);
	}
}

/* A clock that is set a year ahead would otherwise remove all images of that year. */
static bool may_remove_by_age(struct run *r)
{
	int64_t jump_s = wall_clock_jump_s(&r->clock);
	bool has_jumped = jump_s > JUMP_MAX_S;

	if (has_jumped && !r->has_jumped)
		log_error("expire: the clock was set forward by %" PRId64
		          " s; no image is removed by its age until the clock is set back, or the "
		          "daemon starts again",
		          jump_s);
	else if (!has_jumped && r->has_jumped)
		log_notice("expire: the clock was set back; images are removed by their age again");
	r->has_jumped = has_jumped;
	return !has_jumped;
}

static void run_once(struct run *r)
{
	r->is_over = r->has_failed = false;
	r->total = r->bytes = 0;
	memset(r->removed, 0, sizeof r->removed);
	read_settings(r);
	count(r);
	r->start_ns = clock_ns();
	bool by_age = may_remove_by_age(r);

	if (by_age && !r->is_over)
		remove_expired(r);
	if (by_age && !r->is_over)
		remove_too_old(r);
	if (!r->is_over)
		remove_too_much(r);
	if (!r->is_over)
		remove_keys(r);
	if (by_age && !r->is_over)
		remove_orphans(r);
	report(r);
}

static bool wait_for_next(struct run *r)
{
	uint64_t start_ns = clock_ns(), passed_ms = 0;
	bool is_stopping = false;

	while (!is_stopping && passed_ms < r->interval_ms) {
		uint64_t left_ms = r->interval_ms - passed_ms;

		is_stopping = pause_for(r->w, left_ms < LOOK_MS_MAX ? left_ms : LOOK_MS_MAX);
		passed_ms = (clock_ns() - start_ns) / NS_PER_MS;
		read_settings(r);
	}
	return is_stopping;
}

static void *sweep_run(void *arg)
{
	struct sweep *w = arg;
	struct run *r = calloc(1, sizeof *r);

	if (!r) {
		log_error("expire: no memory; no image is removed until the next start");
		return NULL;
	}
	r->w = w;
	r->store = &w->service->store;
	wall_clock_start(&r->clock);
	do
		run_once(r);
	while (!wait_for_next(r));
	free(r);
	pool_thread_fini();
	return NULL;
}

int sweep_init(struct sweep *w, struct image_service *s)
{
	w->service = s;
	int err = condition_init(&w->changed);

	if (!err)
		pthread_mutex_init(&w->lock, NULL);
	return err;
}

void sweep_fini(struct sweep *w)
{
	sweep_stop(w);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}

int sweep_start(struct sweep *w)
{
	int err = -pthread_create(&w->thread, NULL, sweep_run, w);

	if (err)
		log_error("expire: cannot start its thread: %s", strerror(-err));
	w->is_started = !err;
	return err;
}

void sweep_stop(struct sweep *w)
{
	pthread_mutex_lock(&w->lock);
	w->is_stopping = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (w->is_started)
		pthread_join(w->thread, NULL);
	w->is_started = false;
}
