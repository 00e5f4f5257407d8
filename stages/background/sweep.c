/* sweep.c - a loop of count, removals and a pause. Knows the store; nothing of pixels or HTTP. */
#include "background.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "image/image_service.h"
#include "log/log.h"
#include "storage/storage.h"
#include "store/store_page.h"
#include "telemetry/counter.h"

#define COUNT_MAX 256 /* images that are counted at once */
#define COUNT_PAUSE_MS 5
#define YIELD_MS_MAX 100 /* to uploads, before each batch */
#define YIELD_POLL_MS 10
#define MS_PER_S 1000
#define PATIENCE 3       /* intervals, of nodes that are silent */
#define KEY_SHARDS 16    /* directories of keys that one run looks at */
#define JUMP_MAX_S 86400 /* of the clock, that removals by age may follow */
#define TRUST_S 86400    /* after which such a clock is believed */

/* ---- waiting ---- */

/* Lets uploads go first, and keeps to the rate. */
static void pace(struct sweep *r)
{
	uint64_t due = r->start_ns + r->total * NS_PER_S / r->rate, now = clock_ns();

	if (now < due)
		r->is_over |= feeder_pause(&r->feeder, (due - now) / NS_PER_MS + 1);
	for (unsigned ms = 0; ms < YIELD_MS_MAX && !r->is_over; ms += YIELD_POLL_MS) {
		/* Relaxed: only the number matters. */
		if (!admission_in_flight(&r->feeder.service->admission))
			break;
		r->is_over = feeder_pause(&r->feeder, YIELD_POLL_MS);
	}
}

/* ---- removals ---- */

static void fail(struct sweep *r, const char *what, int err)
{
	log_error("expire: cannot %s: %s; trying again after store.sweep_interval", what,
	          strerror(-err));
	r->is_over = r->has_failed = true;
}

static void end_batch(struct sweep *r)
{
	int err = r->st->class->batch_end ? r->st->class->batch_end(r->st, &r->batch) : 0;

	if (err)
		fail(r, "flush the disk", err);
	r->batch.count = 0;
	pace(r);
}

static void count_removal(struct sweep *r, const char *id, uint64_t bytes, enum sweep_reason reason)
{
	if (!r->total++)
		memcpy(r->first, id, sizeof r->first);
	memcpy(r->last, id, sizeof r->last);
	r->of_run[reason]++;
	r->bytes += bytes;
	counter_add(&r->removed[reason], 1);
	counter_add(&r->removed_bytes, bytes);
}

/* due: only if the image ends by then; 0: whenever it ends. */
static void remove_one(struct sweep *r, const char *id, uint64_t due, enum sweep_reason reason)
{
	uint64_t bytes;
	int err = r->st->class->batch_add(r->st, &r->batch, id, due, &bytes);

	if (err == -ENOENT) { /* a client was faster, or it was a mark */
		r->is_over |= feeder_pause(&r->feeder, 0);
		return;
	}
	if (err) {
		fail(r, "remove an image", err);
		return;
	}
	if (bytes || !r->st->objects) /* otherwise it has not come, and cannot any more */
		count_removal(r, id, bytes, reason);
	if (r->batch.count == STORE_BATCH_MAX || r->batch.count >= r->rate)
		end_batch(r);
}

/* X-Expires-After, and with an S3 store what has taken the place of removed images. The notes go
 * after them. */
static void remove_expired(struct sweep *r)
{
	int n = SWEEP_LIST_MAX;
	uint64_t end_ns = clock_ns() + r->interval_ms * NS_PER_MS; /* the others have their turn */

	while (n == SWEEP_LIST_MAX && !r->is_over && clock_ns() < end_ns) {
		n = r->st->class->list_expired(r->st, (uint64_t)time(NULL), r->due, SWEEP_LIST_MAX);
		if (n < 0)
			fail(r, "list what has expired", n);
		int done = 0;

		for (; done < n && !r->is_over; done++)
			remove_one(r, r->due[done].id, r->due[done].expires, SWEEP_EXPIRED);
		end_batch(r);
		for (int i = 0; i < done && !r->has_failed && !feeder_pause(&r->feeder, 0); i++)
			r->st->class->forget_expired(r->st, r->due[i].id, r->due[i].expires);
	}
}

/* Lists the oldest images behind `page`. Returns whether there are some. */
static bool list_oldest(struct sweep *r, struct store_page *page)
{
	page->id = r->id;
	page->max = SWEEP_LIST_MAX;
	int err = r->st->class->list(r->st, page);

	if (err)
		fail(r, "list the oldest images", err);
	return page->count > 0 && !r->is_over;
}

static bool has_too_much(const struct sweep *r)
{
	struct usage_total total = usage_total(&r->feeder.service->store.usage);

	return r->max_bytes && total.is_complete && total.all.bytes > r->max_bytes;
}

/* Removes the oldest images within the bounds of the page, all or as long as there are too many. */
static void remove_oldest(struct sweep *r, struct store_page *page, enum sweep_reason reason)
{
	bool is_due = true;

	while (is_due && list_oldest(r, page)) {
		for (unsigned i = 0; i < page->count && is_due && !r->is_over; i++) {
			remove_one(r, page->id[i], 0, reason);
			is_due = reason != SWEEP_TOO_MUCH || has_too_much(r);
		}
		end_batch(r);
		if (page->count < page->max)
			return;
		store_page_advance(page);
	}
}

static void remove_too_old(struct sweep *r)
{
	uint64_t now_ms = (uint64_t)(time(NULL) + s3_client_skew(r->st->objects)) * MS_PER_S;
	struct store_page page = { .max = 0 };

	if (!r->max_age_ms || now_ms < r->max_age_ms)
		return;
	ulid_bound(now_ms - r->max_age_ms, '0', page.before);
	remove_oldest(r, &page, SWEEP_TOO_OLD);
}

/* Records of Idempotency-Key: some directories in each run. Their age also counts when one is read,
 * so it does not matter when they go. */
static void remove_keys(struct sweep *r)
{
	uint64_t now = (uint64_t)time(NULL);

	if (!r->key_age_s && r->st->class->is_shared)
		return; /* there are none */
	for (unsigned i = 0; i < KEY_SHARDS && now > r->key_age_s; i++)
		r->st->class->key_sweep(r->st, r->key_shard++ % KEY_RECORD_SHARDS,
		                        now - r->key_age_s);
}

/* ---- the thread ---- */

/* This thread makes no visits, so it needs a reference. */
static void read_settings(struct sweep *r)
{
	struct conf_epochs *epochs = &r->feeder.service->epochs;
	struct conf_epoch *epoch = conf_epoch_ref(epochs);
	const struct conf *conf = &epoch->conf;

	r->max_age_ms = conf->store.max_age_ms;
	r->max_bytes = conf->store.max_bytes;
	r->interval_ms = conf->store.sweep_interval_ms;
	r->rate = conf->experiment.sweep_rate;
	r->key_age_s = conf->store.idempotency_age_ms / MS_PER_S;
	conf_epoch_unref(epochs, epoch);
}

static bool wants_figures(const struct sweep *r)
{
	return !r->st->class->is_shared && (r->max_bytes || atomic_load(r->has_quotas));
}

/* Brings the figures up to date, or counts for the time of an interval. */
static void count(struct sweep *r)
{
	struct store *store = &r->feeder.service->store;
	uint64_t end_ns = clock_ns() + r->interval_ms * NS_PER_MS;
	bool is_on = wants_figures(r);

	usage_switch(&store->usage, store, is_on);
	usage_check_recount(&store->usage, store);
	while (is_on && !r->is_over && clock_ns() < end_ns) {
		int result = usage_count(&store->usage, store, COUNT_MAX);

		if (result < 0)
			fail(r, "count the images", result);
		if (result)
			break;
		r->is_over = feeder_pause(&r->feeder, COUNT_PAUSE_MS);
	}
}

static int64_t seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec;
}

/* Of the wall clock, to the time since boot, which has suspended time too. */
static int64_t wall_ahead_s(void)
{
	return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME);
}

/* A clock that is set a year ahead, before the start or after it, would otherwise remove all images
 * of that year. A machine that was off for long has such a clock, too. */
static bool may_remove_by_age(struct sweep *r)
{
	int64_t ahead_s = wall_ahead_s(), jump_s = ahead_s - r->wall_ahead_s,
		now_s = seconds_of(CLOCK_BOOTTIME);
	bool has_jumped = jump_s > JUMP_MAX_S;

	if (has_jumped && r->has_jumped && now_s - r->jumped_s >= TRUST_S) {
		r->wall_ahead_s = ahead_s;
		has_jumped = false;
	}
	if (has_jumped && !r->has_jumped) {
		r->jumped_s = now_s;
		log_error("expire: the clock went forward by %" PRId64
		          " s; no image is removed by its age until the clock is set back, or has "
		          "been so for a day",
		          jump_s);
	} else if (!has_jumped && r->has_jumped) {
		log_notice("expire: images are removed by their age again");
	}
	r->has_jumped = has_jumped;
	return !has_jumped;
}

/* Returns whether this node makes the removals: with an S3 store, one of the nodes that share it.
 */
static bool is_in_charge(struct sweep *r)
{
	uint64_t patience_ns = PATIENCE * r->interval_ms * NS_PER_MS;
	int result = 1;

	if (r->st->objects)
		result = storage_is_away(r->st)
		                 ? S3_AWAY
		                 : s3_pass_hold(r->st->objects, &r->pass, patience_ns);
	if (result < 0 && result != S3_AWAY)
		fail(r, "see which node removes images", result);
	return result > 0;
}

static void run_once(struct sweep *r)
{
	r->is_over = r->has_failed = false;
	r->total = r->bytes = 0;
	memset(r->of_run, 0, sizeof r->of_run);
	(void)store_check(&r->feeder.service->store); /* the agent-check must not block */
	count(r);
	if (!is_in_charge(r))
		return;
	r->start_ns = clock_ns();
	bool by_age = may_remove_by_age(r);
	int err = by_age && !r->st->class->is_shared ? expiry_note_sweep(&r->feeder.service->store)
	                                             : 0;

	if (err) /* the disk may be full, and removals make room */
		log_warning("expire: cannot note the time of the sweep: %s", strerror(-err));
	if (by_age && !r->is_over)
		remove_expired(r);
	if (by_age && !r->is_over)
		remove_too_old(r);
	if (!r->is_over && has_too_much(r))
		remove_oldest(r, &(struct store_page){ .max = 0 }, SWEEP_TOO_MUCH);
	if (!r->is_over)
		remove_keys(r);
	if (r->total)
		log_notice("expire: removed %" PRIu64 " image%s with %" PRIu64
		           " bytes, from %s to %s: %" PRIu64 " by X-Expires-After, %" PRIu64
		           " by store.max_age, %" PRIu64 " by store.max_bytes",
		           r->total, plural(r->total), r->bytes, r->first, r->last,
		           r->of_run[SWEEP_EXPIRED], r->of_run[SWEEP_TOO_OLD],
		           r->of_run[SWEEP_TOO_MUCH]);
}

/* Makes a run, and the next one an interval after its end, or when the limits change. */
static int sweep_next(struct feeder *f)
{
	struct sweep *r = (struct sweep *)f;
	uint64_t passed_ms = (clock_ns() - r->end_ns) / NS_PER_MS;
	uint64_t max_age_ms = r->max_age_ms, max_bytes = r->max_bytes;

	bool is_unfit = storage_examine(r->st) == -EOPNOTSUPP;

	read_settings(r);
	if (r->end_ns && passed_ms < r->interval_ms && r->max_age_ms == max_age_ms &&
	    r->max_bytes == max_bytes) {
		uint64_t left_ms = r->interval_ms - passed_ms;

		bool is_probed =
			r->st->objects && (!is_unfit || s3_is_away(&r->st->objects->counters));

		return (int)(is_probed && left_ms > S3_PROBE_MS ? S3_PROBE_MS : left_ms);
	}
	run_once(r);
	r->end_ns = clock_ns();
	return 0;
}

static const struct feeder_class sweep_class = { .name = "expire", .next = sweep_next };

int sweep_init(struct sweep *r, struct image_service *s, const _Atomic bool *has_quotas)
{
	r->has_quotas = has_quotas;
	r->st = &s->storage;
	int64_t believed_s = seconds_of(CLOCK_REALTIME);
	/* An S3 store refuses a clock that is wrong. */
	int64_t last_s = r->st->class->is_shared ? 0 : expiry_last_sweep(&s->store);

	if (last_s && last_s < believed_s)
		believed_s = last_s;
	r->wall_ahead_s = believed_s - seconds_of(CLOCK_BOOTTIME);
	int err = feeder_init(&r->feeder, &sweep_class, s);

	if (err)
		return err;
	/* Those of the last stop hold only until an image comes or goes. */
	read_settings(r);
	usage_switch(&s->store.usage, &s->store, wants_figures(r));
	return 0;
}
