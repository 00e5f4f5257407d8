/*
 * nodes.c - several nodes that share an object store, with faults: lost, late and repeated
 * requests, errors, damaged answers, a store that is away, nodes that end or stand still, clocks
 * that are set.
 *
 * The code from the store's class up to the keys of uploads, the sweep and the end of spooled
 * images is the daemon's. A disk remembers only which originals it has. At last, without faults,
 * time passes until nothing is left but images: no mark, note, former file, memory or request.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "bucket.h"
#include "content.h"
#include "s3/s3_former.h"
#include "s3/s3_stream.h"
#include "seam.h"
#include "seeds.h"
#include "server.h"
#include "storage/storage.h"

#define STEPS 6           /* of a task, up to twice as many */
#define REQUESTS 500      /* about what a run makes: faults happen before */
#define HEADS_BYTES 16000 /* a few, so that they meet */
#define DAY_NS (86400 * NS_PER_S)
#define SETTLE_DAYS 34 /* marks go after 31 */
#define ROUNDS 18      /* sweeps of all keys */

static struct server server[NODES_MAX];
static unsigned servers;
static struct conf_epoch epoch;
static bool is_settled;

/* ---- the disks ---- */

static struct photo *spooled_here(const char *id)
{
	struct photo *image = photo_find(id);

	return image && image->spool == cluster.current - cluster.node ? image : NULL;
}

static int unspool(const char *id)
{
	struct photo *image = spooled_here(id);

	if (image)
		image->spool = -1;
	return image ? 0 : -ENOENT;
}

SEAM(bool, store_is_spooled, struct store *s, const char *id)
{
	CALLED(store_is_spooled);
	(void)s;
	return spooled_here(id);
}

SEAM(int, store_unspool, struct store *s, const char *id)
{
	CALLED(store_unspool);
	(void)s;
	return unspool(id);
}

SEAM(int, store_remove, struct store *s, enum store_place place, const char *id)
{
	CALLED(store_remove);
	(void)s;
	assert(place == STORE_SPOOL);
	return unspool(id);
}

SEAM(bool, store_check, struct store *s)
{
	CALLED(store_check);
	(void)s;
	return true;
}

SEAM(bool, feeder_pause, struct feeder *f, uint64_t ms)
{
	CALLED(feeder_pause);
	(void)f;
	if (ms)
		task_sleep(ms * NS_PER_MS);
	return false;
}

/* ---- what nodes do ---- */

/* The thread of the sweep also probes a store that is away. */
static void examine(struct server *s)
{
	if (s->is_busy)
		return;
	s->is_busy = true;
	if (storage_examine(storage_of(s)) == -EOPNOTSUPP)
		FAIL("the store is said to have no conditional PUTs");
	s->is_busy = false;
}

static void do_sweep(struct server *s)
{
	if (s->is_busy)
		return;
	s->is_busy = true;
	s->sweep.end_ns = 0; /* it is due */
	(void)s->sweep.feeder.class->next(&s->sweep.feeder);
	tell("node %d has swept: it %s", s->number,
	     s->sweep.pass.is_own ? "has the passes" : "does not have the passes");
	s->is_busy = false;
}

static void do_wait(struct server *s)
{
	static const uint64_t most_ns[] = { NS_PER_S,       10 * NS_PER_S,   30 * NS_PER_S,
		                            600 * NS_PER_S, 3600 * NS_PER_S, 20 * 3600 * NS_PER_S,
		                            DAY_NS,         32 * DAY_NS };

	(void)s;
	task_sleep(draw(most_ns[draw(COUNT_OF(most_ns))]));
}

static struct server *server_of(const struct node *n)
{
	return &server[n - cluster.node];
}

static void work(struct task *t)
{
	static void (*const acts[])(struct server *) = { do_sweep, do_wait, do_wait, act_recover };
	struct server *s = server_of(t->node);
	unsigned *steps = &s->steps[t - t->node->task];

	while (*steps) {
		examine(s);
		if (!storage_of(s)->objects->is_fit) {
			task_sleep(NS_PER_S / 2);
			continue;
		}
		--*steps;
		if (draw(4))
			act_of_client(s);
		else
			acts[draw(COUNT_OF(acts))](s);
		task_sleep(draw(50 * NS_PER_MS));
	}
}

/* ---- processes ---- */

static void begin_process(struct server *s)
{
	struct storage *st = storage_of(s);

	cluster.current = s->node;
	memset(&s->service, 0, sizeof s->service);
	memset(&s->sweep, 0, sizeof s->sweep);
	*st = (struct storage){ .class = &store_of_objects,
		                .files = &s->service.store,
		                .spooling.is_on = true };
	s->service.store.root_fd = -1;
	s->service.epochs.now = &epoch;
	s->service.keys = &s->keys;
	upload_keys_init(&s->keys);
	if (s3_client_open(&st->objects, &epoch.conf) || s3_heads_new(&st->heads, HEADS_BYTES) ||
	    inflight_init(&s->service.inflight, 1) || sweep_init(&s->sweep, &s->service, NULL))
		abort();
	s->is_busy = false;
	for (unsigned i = 0; i < claims.images; i++)
		claims.image[i].is_busy &= claims.image[i].spool != s->number;
	for (unsigned i = 0; i < TASKS_MAX; i++)
		task_start(s->node, i, work);
	cluster.current = NULL;
}

static void end_process(struct server *s)
{
	s3_client_close(storage_of(s)->objects);
	free(storage_of(s)->heads);
	inflight_fini(&s->service.inflight);
	upload_keys_fini(&s->keys);
	feeder_fini(&s->sweep.feeder);
	node_end(s->node);
}

static void restart(struct timer *t)
{
	struct server *s = CONTAINER_OF(t, struct server, restart);

	tell("node %d begins again", s->number);
	begin_process(s);
}

static void set_clock(struct server *s, int64_t by_ns)
{
	s->node->ahead_ns += by_ns;
	claims.off_ns += (uint64_t)llabs(by_ns);
	tell("the clock of node %d is %" PRId64 " s ahead", s->number,
	     s->node->ahead_ns / (int64_t)NS_PER_S);
}

/* The store refuses it meanwhile. */
static void set_clock_back(struct timer *t)
{
	struct server *s = CONTAINER_OF(t, struct server, clock);

	set_clock(s, s->set_back_ns);
}

static void hurt(struct node *n, const struct seed_fault *fault)
{
	static const uint64_t most_ns[] = { 10 * NS_PER_S, 600 * NS_PER_S, DAY_NS, 35 * DAY_NS };
	static const int64_t most_s[] = { 10, 400, 3 * 86400 };
	struct random chance = { fault->seed };
	struct server *s = server_of(n);
	uint64_t number = random_next(&chance), kind = number % 64;

	number = random_next(&chance);
	if (fault->kind == BUCKET_KILL) {
		end_process(s);
		timer_set(&s->restart, NULL, number % (30 * NS_PER_S), restart);
	} else if (fault->kind == BUCKET_STILL) {
		n->still_until_ns = cluster.now_ns + number % most_ns[kind % COUNT_OF(most_ns)];
	} else if (!s->clock.is_set) {
		int64_t most = most_s[kind % COUNT_OF(most_s)],
			by_s = (int64_t)(number % (uint64_t)(2 * most)) - most;

		set_clock(s, by_s * (int64_t)NS_PER_S);
		s->set_back_ns = -by_s * (int64_t)NS_PER_S;
		if (llabs(n->ahead_ns) > 800 * (int64_t)NS_PER_S)
			timer_set(&s->clock, NULL, number % (600 * NS_PER_S), set_clock_back);
	}
}

/* ---- the end ---- */

static void check_images(bool is_there)
{
	for (unsigned n = 0; n < servers; n++) {
		task_move(server[n].node);
		for (unsigned i = 0; i < claims.images; i++)
			if (is_there || claims.image[i].removals || claims.image[i].ends_ns)
				act_read(&server[n], &claims.image[i],
				         (unsigned)draw(CONTENT_FILES));
	}
	act_list(&server[servers - 1]); /* where the task is */
}

static void check_expired(void)
{
	for (unsigned i = 0; i < claims.images; i++) {
		struct photo *photo = &claims.image[i];

		if (photo->ends_ns || (claims.max_age_ns && photo->is_made))
			photo->removed_ns = cluster.now_ns;
	}
}

/* Only images are left, and former ones that nobody has removed. */
static void check_bucket(void)
{
	for (unsigned i = 0; i < bucket.count; i++) {
		const struct object *o = bucket.object[i];
		bool is_image = strncmp(o->key, S3_IMAGES, sizeof S3_IMAGES - 1) == 0,
		     is_new = is_image && strlen(o->key) == S3_IMAGE_KEY_MAX - 1;
		const char *id = o->key + (is_new     ? sizeof S3_IMAGES + 2
		                           : is_image ? sizeof S3_IMAGES - 1
		                                      : sizeof S3_FORMER_FILES - 1);
		const struct photo *photo = strlen(o->key) > 30 ? photo_find(id) : NULL;

		if (strcmp(o->key, S3_PROBE) == 0 || strcmp(o->key, "pass") == 0 ||
		    (strncmp(o->key, "keys/", 5) == 0 && !bucket.has_conditional_removals) ||
		    (photo && !photo->removed_ns && (!is_new || o->size != MARK_SIZE)))
			continue;
		FAIL("the object %s of %zu bytes is left", o->key, o->size);
	}
}

/* As time passes, each node makes passes, although one has them. */
static void sweep_all(unsigned rounds)
{
	task_sleep(SETTLE_DAYS * DAY_NS);
	for (unsigned i = 0; i < rounds * servers; i++) {
		task_move(server[i % servers].node);
		do_sweep(&server[i % servers]);
		task_sleep(2 * 60 * NS_PER_S);
	}
}

static void settle(struct task *t)
{
	(void)t;
	bucket.was_hurt = false;
	for (unsigned n = 0; n < servers; n++) {
		task_move(server[n].node);
		for (unsigned i = 0; i < 10 && storage_is_away(storage_of(&server[n])); i++) {
			examine(&server[n]);
			task_sleep(NS_PER_S);
		}
		act_recover(&server[n]);
	}
	for (unsigned i = 0; i < claims.images; i++)
		if (claims.image[i].spool >= 0)
			FAIL("the original of %s stays on a disk", claims.image[i].id);
	check_images(true);
	sweep_all(2); /* a clock that was set is believed after a day */
	sweep_all(2); /* what has ended gets marks */
	sweep_all(ROUNDS);
	check_expired();
	check_images(false);
	check_bucket();
	is_settled = true;
}

static void check_left(void)
{
	for (unsigned n = 0; n < servers; n++) {
		for (unsigned i = 0; i < TASKS_MAX; i++)
			if (server[n].steps[i])
				FAIL("a task of node %u waits for ever", n);
		if (storage_of(&server[n])->objects->counters.in_flight)
			FAIL("node %u has operations left", n);
		if (node_uses(server[n].node))
			FAIL("node %u has lost %u buffers or files", n, node_uses(server[n].node));
	}
	if (bucket.in_flight)
		FAIL("%u requests are left", bucket.in_flight);
}

/* ---- seeds ---- */

/* An image of a former version. */
static void put_former(void)
{
	struct photo *photo = new_photo(NULL, 0);
	struct content c;

	ulid_bound((cluster.now_ns - draw(60 * DAY_NS)) / NS_PER_MS, 'Y', photo->id);
	snprintf(photo->id + ULID_LENGTH - 2, 3, "%02u", claims.images);
	photo->is_former = photo->is_there = true;
	photo->versions = 1;
	char *memory = pool_get(CONTENT_BYTES(photo->max));

	content_make(&c, memory, photo->id, 1, 1, photo->max);
	for (unsigned f = 0; f < CONTENT_FILES; f++) {
		char key[S3_KEY_MAX];

		if (f < 2)
			snprintf(key, sizeof key, S3_FORMER_FILES "%s/%s", photo->id,
			         content_names[f]);
		else
			snprintf(key, sizeof key, S3_IMAGES "%s", photo->id);
		bucket_put(key, c.data[f], c.size[f], true);
	}
	pool_put(memory);
}

static void begin(uint64_t seed)
{
	cluster_begin(seed);
	bucket.seed = seed;
	bucket.changes = claims_change;
	bucket.hurt = hurt;
	bucket.has_conditional_removals = draw(3);
	servers = 2 + (unsigned)draw(NODES_MAX - 1);
	claims.max_age_ns = draw(8) ? 0 : 20 * DAY_NS;
	epoch.conf.store.idempotency_age_ms = KEY_AGE_S * 1000;
	epoch.conf.store.max_age_ms = claims.max_age_ns / NS_PER_MS;
	epoch.conf.store.sweep_interval_ms = 60000;
	epoch.conf.experiment.sweep_rate = 1000;
	for (unsigned n = 0; n < servers; n++) {
		server[n].number = (int)n;
		server[n].node = &cluster.node[n];
		server[n].node->ahead_ns =
			((int64_t)draw(1200) - 600) * (int64_t)NS_PER_S * (draw(3) == 0);
		for (unsigned i = 0; i < TASKS_MAX; i++)
			server[n].steps[i] = STEPS + (unsigned)draw(STEPS);
	}
	claims.off_ns = claims.max_age_ns ? 600 * NS_PER_S : 0; /* ids have their times */
	for (uint64_t i = draw(2) ? draw(3) : 0; i > 0; i--)
		put_former();
}

static void run(uint64_t seed, const struct seed_fault *fault, unsigned count)
{
	begin(seed);
	memcpy(bucket.fault, fault, count * sizeof *fault);
	bucket.fault_count = count;
	for (unsigned n = 0; n < servers; n++)
		begin_process(&server[n]);
	cluster_run();
	check_left();
	bucket.fault_count = bucket.fault_next = 0;
	bucket.away_until_ns = 0;
	task_start(server[0].node, 0, settle);
	cluster_run();
	check_left();
	if (!is_settled)
		FAIL("a request waits for ever");
}

static unsigned draw_faults(uint64_t seed, struct seed_fault *fault)
{
	struct random random = random_stream(seed, 1);
	unsigned count = (unsigned)(random_next(&random) % (SEED_FAULTS_MAX + 1));
	uint64_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		at += 1 + random_next(&random) % (2 * REQUESTS / (count + 1));
		fault[i] = (struct seed_fault){
			.at = at,
			.kind = (unsigned)(random_next(&random) % BUCKET_FAULT_COUNT),
			.seed = random_next(&random),
		};
	}
	return count;
}

static uint64_t calls(void)
{
	return bucket.requests;
}

static const char *const words[] = {
#define X(kind, word) word,
	BUCKET_FAULTS(X)
#undef X
};

const struct seed_program seed_program = {
	.name = "nodes",
	.call = "request",
	.words = words,
	.draw = draw_faults,
	.run = run,
	.calls = calls,
	.now_ns = cluster_clock,
	.chance = cluster_chance,
};
