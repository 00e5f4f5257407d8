/*
 * test_recovery.c - spooled images are fed back: their results, their failures, and waits for room.
 *
 * recovery.c, feeder.c and upload.c on one thread, with a store of their own. The test ends the
 * images that recovery starts. Time passes when recovery waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fake_gettime(clockid_t id, struct timespec *t);

#define clock_gettime fake_gettime
#include "base/clock.h"
#undef clock_gettime
#include "base/pool.h"
#include "image/image_service.h"
#include "log/log.h"
#include "sched/core/runtime.h"
#include "store/directory.h"
#include "store/spool.h"

static unsigned error_count, warning_count, notice_count;
static int count_error; /* of counting an attempt */

static uint64_t fake_clock(void);
static int fake_clockwait(pthread_cond_t *c, pthread_mutex_t *lock, clockid_t id,
                          const struct timespec *t);
static void fake_push(struct stage *s, unsigned instance, struct event *ev);
static void *fake_pool_get(size_t size);
static ssize_t fake_read(int fd, void *data, size_t size, uint64_t at);

static int fake_set_attempts(struct store *s, const char *id, unsigned attempts)
{
	return count_error ? count_error : spool_set_attempts(s, id, attempts);
}

#define clock_ns fake_clock
#define stage_push fake_push
#undef log_error
#undef log_warning
#undef log_notice
#define log_error(...) (error_count++)
#define log_warning(...) (warning_count++)
#define log_notice(...) (notice_count++)
#define pool_get fake_pool_get
#define directory_read_at fake_read
#define pthread_cond_clockwait fake_clockwait
#include "background/feeder.c"
#undef pthread_cond_clockwait
#undef directory_read_at
#undef pool_get
#define spool_set_attempts fake_set_attempts
#include "background/recovery.c"
#undef spool_set_attempts
#include "image/upload.c"

#define START_NS (5 * NS_PER_S + 900 * NS_PER_MS)
#define BUDGET (1 << 20)
#define IMAGES_MAX 8

static char root[64];
static struct image_service service;
static struct graph fake_graph;
static struct feeder recovery, *const r = &recovery;

/* The waits of recovery. */
static uint64_t now_ns;
static unsigned wait_count;

/* Images that were started. */
static struct image *started[16];
static unsigned started_count, started_most, started_total;
static void (*when_started)(struct image *image);
static enum feeder_result result_next;
static int pool_gets_left;
static unsigned first_descriptors; /* open, and of the pool, before the test */
static uint64_t first_pool_bytes;
static int read_error;

/* ---- what recovery calls ---- */

static uint64_t fake_clock(void)
{
	return now_ns;
}

static int fake_gettime(clockid_t id, struct timespec *t)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	*t = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_S),
		                .tv_nsec = (long)(now_ns % NS_PER_S) };
	return 0;
}

static void problem_of(enum feeder_result result, struct problem *p)
{
	if (result == FEEDER_REFUSED)
		problem_set(p, 415, "unsupported-media-type", "%s", "");
	else if (result == FEEDER_LATER)
		problem_set(p, 507, "storage-full", "%s", "");
	else
		problem_set(p, 500, "internal", "%s", "");
}

static void store_image(const char *id)
{
	const struct store_file file = { "image.json", "{}", 2, NULL };
	struct store_item item = {
		.place = STORE_IMAGES, .id = id, .file = &file, .file_count = 1
	};

	store_put(&service.store, &item, 1);
	assert_int_equal(item.err, 0);
}

/* Ends the oldest image that is in flight, as image_end() does. */
static void end_image(enum feeder_result result)
{
	struct image *image = started[0];
	struct problem p;

	assert_true(started_count > 0);
	memmove(started, started + 1, --started_count * sizeof(struct image *));
	if (result == FEEDER_MADE) {
		store_image(image->id);
		assert_int_equal(store_unspool(&service.store, image->id), 0);
	} else {
		problem_of(result, &p);
		image_set_problem(image, &p);
	}
	image_source_done(image);
	assert_null(inflight_remove(&service.inflight, &image->known));
	atomic_fetch_sub(&service.admission.in_flight, 1);
	slot_ended(NULL, image);
	upload_unref(image->upload);
}

static int fake_clockwait(pthread_cond_t *c, pthread_mutex_t *lock, clockid_t id,
                          const struct timespec *t)
{
	uint64_t until = (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;

	(void)c;
	assert_int_equal(id, CLOCK_MONOTONIC);
	assert_in_range(t->tv_nsec, 0, NS_PER_S - 1);
	assert_true(until > now_ns);
	wait_count++;
	now_ns = until;
	(void)lock;
	return ETIMEDOUT;
}

static void fake_push(struct stage *s, unsigned instance, struct event *ev)
{
	struct image *image = image_of(ev);

	assert_ptr_equal(s, &fake_graph.stage[STAGE_JPEG_DECODE]);
	assert_int_equal(instance, 0);
	assert_true(started_count < COUNT_OF(started));
	started[started_count++] = image;
	started_total++;
	if (started_count > started_most)
		started_most = started_count;
	if (when_started)
		when_started(image);
}

static void *fake_pool_get(size_t size)
{
	void *buffer = pool_gets_left-- > 0 ? pool_get(size) : NULL;

	if (buffer) /* nothing of an earlier image */
		memset(buffer, 0, size);
	return buffer;
}

static ssize_t fake_read(int fd, void *data, size_t size, uint64_t at)
{
	int err = -read_error;

	read_error = 0;
	return err ? err : directory_read_at(fd, data, size, at);
}

/* ---- the store ---- */

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static uint64_t used_bytes(void)
{
	uint64_t used, kept;

	pool_usage(&used, &kept);
	return used;
}

static int setup(void **state)
{
	static struct conf conf = { .limits = { .images_in_flight = IMAGES_MAX },
		                    .overload = { .degrade = "quality 65" } };
	static const struct plan plan;
	unsigned cleared;

	(void)state;
	memset(&service, 0, sizeof service);
	memset(r, 0, sizeof *r);
	memset(&fake_graph, 0, sizeof fake_graph);
	fake_graph.replica_count = 1;
	service.graph = &fake_graph;
	service.storage = (struct storage){ .class = &store_of_files,
		                            .files = &service.store,
		                            .spooling.is_on = true };
	now_ns = START_NS;
	wait_count = started_count = started_most = started_total = 0;
	when_started = NULL;
	result_next = FEEDER_MADE;
	pool_gets_left = 1000;
	error_count = warning_count = notice_count = 0;
	count_error = read_error = 0;
	snprintf(root, sizeof root, "/tmp/darkroom-recovery-XXXXXX");
	if (!mkdtemp(root) || conf_epochs_init(&service.epochs, &conf, &plan) ||
	    store_open(&service.store, root, false, &cleared) ||
	    inflight_init(&service.inflight, IMAGES_MAX) || recovery_init(r, &service))
		return -1;
	budget_init(&service.budget, BUDGET);
	service.admission.overload.shares.window_ns = NS_PER_S;
	client_turns_init(&service.turns, IMAGES_MAX); /* its images never leave the queue */
	first_descriptors = open_descriptors();
	first_pool_bytes = used_bytes();
	return 0;
}

/* Nothing may be kept after any test. */
static int teardown(void **state)
{
	struct budget_usage usage;
	char command[128];

	(void)state;
	feeder_fini(r);
	assert_int_equal(open_descriptors(), first_descriptors);
	assert_int_equal(used_bytes(), first_pool_bytes);
	budget_usage(&service.budget, &usage);
	assert_int_equal(usage.used[BUDGET_SMALL_BODY] + usage.used[BUDGET_BODY], 0);
	assert_int_equal(service.admission.in_flight, 0);
	budget_fini(&service.budget);
	inflight_fini(&service.inflight);
	store_close(&service.store);
	conf_epochs_fini(&service.epochs);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static const struct spool_names lake = { .file = "lake.jpg",
	                                 .token = "site",
	                                 .expires = 4102444800,
	                                 .metadata = { .data = "a\0b", .length = 4 },
	                                 .focus = "0.25,0.5" };

/* Spools an image whose id ends with the character. */
static const char *spool_one(char last, unsigned attempts)
{
	static char ids[64][ULID_LENGTH + 1];
	static unsigned turn;
	char note[SPOOL_NOTE_MAX], *id = ids[turn++ % COUNT_OF(ids)];
	const struct store_file files[] = { { STORE_ORIGINAL, "jpeg", 4, NULL },
		                            { SPOOL_NOTE, note, spool_note(note, &lake), NULL } };
	struct store_item item = { .place = STORE_SPOOL, .id = id, .file = files, .file_count = 2 };

	snprintf(id, ULID_LENGTH + 1, "01K0000000000000000000000%c", last);
	store_put(&service.store, &item, 1);
	assert_int_equal(item.err, 0);
	assert_int_equal(spool_set_attempts(&service.store, id, attempts), 0);
	return id;
}

/* Returns the attempts of an image, or -1 if it is not in the spool. */
static int attempts_of(const char *id)
{
	return spool_attempts(&service.store, id);
}

static bool is_quarantined(const char *id)
{
	return faccessat(service.store.quarantine_fd, id, F_OK, 0) == 0;
}

/* Makes one pass. Returns whether an image must be retried. */
static bool pass_once(void)
{
	struct feeder *f = r;

	f->pass_ns = 0; /* the time of a retry has come */
	feeder_call(f);
	do
		if (feeder_feed(f) < 0 && started_count)
			end_image(result_next);
	while (f->is_in_pass);
	bool is_delayed = f->pass_ns > now_ns;

	if (!is_delayed) /* otherwise the rest waits for the next pass */
		assert_int_equal(f->waiting, 0);
	f->has_more = false;
	assert_int_equal(started_count, 0);
	return is_delayed;
}

static struct budget_body held[BUDGET_IMAGE];

/* Takes a slot for an image, as the feeder does. */
static struct feeder_slot *slot_for(const char *id)
{
	struct feeder_slot *slot = &r->slot[0];

	*slot = (struct feeder_slot){ .feeder = r, .is_taken = true };
	memcpy(slot->item.id, id, sizeof slot->item.id);
	return slot;
}

static int feed_one(const char *id, uint64_t more_bytes)
{
	struct spool_names names;
	uint64_t size;
	int fd = spool_open(&service.store, id, &size, &names);

	assert_true(fd >= 0);
	struct feeder_slot *slot = slot_for(id);
	int err = feed(slot, fd, size + more_bytes, &names);

	slot->is_taken = false;

	assert_int_equal(fcntl(fd, F_GETFD), -1);
	return err;
}

/* Takes all memory for bodies. */
static void hold_memory(void)
{
	for (unsigned class = 0; class < BUDGET_IMAGE; class ++) {
		budget_body_init(&service.budget, &held[class], (enum budget_class) class,
		                 BUDGET_NO_CLIENT);
		for (uint64_t bytes = UINT64_C(1) << 40; bytes; bytes /= 2)
			while (held[class].bytes + bytes <= budget_max(&service.budget) &&
			       budget_body_try(&service.budget, &held[class], bytes))
				continue;
	}
}

static void release_memory(void)
{
	for (unsigned class = 0; class < BUDGET_IMAGE; class ++)
		budget_body_release(&service.budget, &held[class]);
}

static uint64_t body_bytes(void)
{
	return service.budget.used[BUDGET_SMALL_BODY] + service.budget.used[BUDGET_BODY];
}

/* ---- results ---- */

static void check_started(struct image *image)
{
	assert_int_equal(image->source_size, 4);
	assert_memory_equal(image->source, "jpeg", 4);
	assert_string_equal(image->file_name, "lake.jpg");
	assert_string_equal(image->part_name, "");
	assert_true(image->is_spooled);
	assert_null(image->upload->waiter);
	assert_int_equal(image->upload->body_refs, 1);
	assert_int_equal(image->upload->undone, 1);
	assert_string_equal(image->upload->token_name, "site");
	assert_int_equal(image->upload->expires, lake.expires);
	assert_string_equal(image->upload->focus, "0.25,0.5");
	assert_int_equal(image->upload->metadata.length, 4);
	assert_memory_equal(image->upload->metadata.data, "a\0b", 4);
	assert_int_equal(image->upload->level, 0); /* whatever the load is */
	assert_int_equal(image->upload->images_max, 1);
	assert_ptr_equal(image->upload->bad_part + 0, image->upload->image);
	assert_int_equal(body_bytes(), 4 * started_count);
	assert_int_equal(service.admission.in_flight, started_count);
	assert_int_equal(attempts_of(image->id), 1); /* counted before it starts */
	assert_true(inflight_find(&service.inflight, image->id, NULL));
}

static void a_stored_image_is_recovered(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	when_started = check_started;
	assert_false(pass_once());
	assert_int_equal(started_total, 1);
	assert_int_equal(r->made, 1);
	assert_int_equal(r->failed, 0);
	assert_int_equal(error_count + warning_count, 0);
	assert_int_equal(notice_count, 2); /* the begin and the end */
	assert_false(pass_once());         /* nothing is left */
	assert_int_equal(notice_count, 2);
	assert_true(store_has_file(&service.store, id, "image.json"));
	assert_int_equal(attempts_of(id), -1);
	assert_false(r->is_called);
}

static void without_room_on_the_disk_no_attempt_counts(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	result_next = FEEDER_LATER;
	assert_true(pass_once());
	assert_int_equal(attempts_of(id), 0);
	assert_int_equal(r->made + r->failed, 0);
	assert_false(is_quarantined(id));
	result_next = FEEDER_MADE;
	assert_false(pass_once());
	assert_int_equal(r->made, 1);
}

static void an_image_that_fails_three_times_is_quarantined(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	result_next = FEEDER_FAULT;
	for (int i = 1; i <= FEEDER_ATTEMPTS_MAX; i++) {
		assert_true(pass_once());
		assert_int_equal(attempts_of(id), i);
		assert_false(is_quarantined(id));
	}
	assert_false(pass_once());
	assert_int_equal(started_total, FEEDER_ATTEMPTS_MAX);
	assert_true(is_quarantined(id));
	assert_int_equal(r->failed, 1);
	assert_int_equal(r->made, 0);
}

static void a_refused_image_is_quarantined(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	result_next = FEEDER_REFUSED;
	assert_false(pass_once());
	assert_true(is_quarantined(id));
	assert_int_equal(r->failed, 1);
	assert_int_equal(attempts_of(id), -1);
}

static void an_image_that_cannot_be_quarantined_does_not_count(void **state)
{
	const char *id = spool_one('A', 3);
	int fd = service.store.quarantine_fd;

	(void)state;
	service.store.quarantine_fd = -1;
	assert_false(pass_once());
	assert_int_equal(r->failed, 0);
	assert_int_equal(attempts_of(id), 3);
	service.store.quarantine_fd = fd;
	quarantine(r, "01K0000000000000000000000Z", "it is not there");
	assert_int_equal(r->failed, 0);
}

static void a_damaged_entry_is_quarantined(void **state)
{
	const char *id = spool_one('A', 0), *other = spool_one('B', 0);

	(void)state;
	char path[128];

	snprintf(path, sizeof path, "%s/.spool/%s/note", root, id);
	assert_int_equal(unlink(path), 0);
	assert_false(pass_once());
	assert_true(is_quarantined(id));
	assert_true(store_has_file(&service.store, other, "image.json"));
	assert_int_equal(r->made, 1);
}

static void an_image_larger_than_the_budget_is_quarantined(void **state)
{
	(void)state;
	for (uint64_t total = 8; total >= 6; total -= 2) {
		const char *id = spool_one('A', 0);

		budget_fini(&service.budget);
		budget_init(&service.budget, total);
		assert_int_equal(budget_max(&service.budget), total / 2);
		assert_false(pass_once());
		assert_int_equal(r->made, 1); /* the first one fits */
		assert_int_equal(is_quarantined(id), total == 6);
		if (total == 8)
			assert_int_equal(store_remove(&service.store, STORE_IMAGES, id), 0);
	}
}

static void a_stored_image_only_leaves_the_spool(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	store_image(id);
	assert_false(pass_once());
	assert_int_equal(started_total, 0);
	assert_int_equal(attempts_of(id), -1);
	assert_int_equal(r->made, 0);
	id = spool_one('B', 0);
	store_image(id);
	int fd = service.store.trash_fd;

	service.store.trash_fd = -1; /* it cannot be unspooled */
	assert_true(pass_once());
	assert_int_equal(attempts_of(id), 0);
	service.store.trash_fd = fd;
	assert_false(pass_once());
	assert_int_equal(attempts_of(id), -1);
}

/* ---- failures of feeding ---- */

static void an_attempt_that_cannot_be_counted_is_made(void **state)
{
	(void)state;
	spool_one('A', 0);
	count_error = -EIO;
	assert_false(pass_once());
	assert_int_equal(warning_count, 1);
	assert_int_equal(r->made, 1);
}

/* The upload of a client has the same id. */
static void an_image_in_flight_is_not_started_again(void **state)
{
	const char *id = spool_one('A', 0);
	struct budget_body none = { 0 };

	(void)state;
	struct upload *u = upload_new(&service, 0, NULL, &none, 1, 0);
	struct image *image = upload_add_image(u, NULL, 0, "", 0, "", 0);

	memcpy(image->id, id, sizeof image->id);
	inflight_add(&service.inflight, &image->known);
	assert_int_equal(feed_one(id, 0), -EALREADY);
	assert_int_equal(body_bytes() + service.admission.in_flight, 0);
	assert_int_equal(attempts_of(id), 1);
	spool_one('B', 0);
	assert_false(pass_once());
	assert_int_equal(started_total, 1); /* B */
	assert_null(inflight_remove(&service.inflight, &image->known));
	upload_drop(u);
}

static void small_bodies_are_those_up_to_the_limit(void **state)
{
	size_t small = (size_t)budget_small_max(&service.budget);
	struct upload *u;

	(void)state;
	assert_int_equal(make_upload(&service, small, "", &u), 0);
	assert_int_equal(service.budget.used[BUDGET_SMALL_BODY], small);
	upload_drop(u);
	assert_int_equal(make_upload(&service, small + 1, "", &u), 0);
	assert_int_equal(service.budget.used[BUDGET_BODY], small + 1);
	upload_drop(u);
}

static void a_failed_start_keeps_nothing(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	for (int i = 0; i < 4; i++) {
		static const int expected[] = { -ENOMEM, -EINVAL, -EIO, -ENOENT };

		pool_gets_left = i == 0 ? 0 : 1000;
		read_error = i == 2 ? EIO : 0;
		count_error = i == 3 ? -ENOENT : 0; /* its client removes it */
		assert_int_equal(feed_one(id, i == 1), expected[i]);
		assert_int_equal(body_bytes(), 0);
		assert_int_equal(service.admission.in_flight, 0);
		assert_int_equal(started_total, 0);
		assert_int_equal(attempts_of(id), 0);
	}
}

static void a_start_that_fails_is_delayed(void **state)
{
	const char *id = spool_one('A', 0);

	(void)state;
	pool_gets_left = 0;
	assert_true(pass_once());
	assert_int_equal(attempts_of(id), 0);
	pool_gets_left = 1000;
	when_started = check_started;
	assert_false(pass_once());
	assert_int_equal(r->made, 1);
}

static void a_spool_that_cannot_be_listed_is_delayed(void **state)
{
	int fd = service.store.root_fd;

	(void)state;
	spool_one('A', 0);
	service.store.root_fd = -1;
	assert_true(pass_once());
	service.store.root_fd = fd;
	assert_false(pass_once());
	assert_int_equal(r->made, 1);
}

/* ---- order and room ---- */

static void four_images_are_in_flight_at_once(void **state)
{
	(void)state;
	for (char c = 'A'; c <= 'G'; c++)
		spool_one(c, 0);
	assert_false(pass_once());
	assert_int_equal(started_total, 7);
	assert_int_equal(started_most, AT_ONCE);
	assert_int_equal(r->made, 7);
}

static void check_alone(struct image *image)
{
	int attempts = attempts_of(image->id);

	/* The others have been started before, and have ended. */
	if (attempts > 1)
		assert_int_equal(started_count, 1);
	assert_int_equal(r->waiting, started_total < 4 ? 6 - (started_total - started_count)
	                                               : 7 - started_total);
}

static void images_with_attempts_come_last_and_alone(void **state)
{
	(void)state;
	spool_one('A', 2);
	spool_one('B', 0);
	spool_one('C', 1);
	spool_one('D', 0);
	spool_one('E', 0);
	spool_one('F', 1);
	when_started = check_alone;
	assert_false(pass_once());
	assert_int_equal(started_total, 6);
	assert_int_equal(started_most, 3);
	assert_int_equal(r->made, 6);
}

static void a_pass_ends_after_a_delayed_image(void **state)
{
	(void)state;
	for (char c = 'A'; c <= 'H'; c++)
		spool_one(c, 0);
	result_next = FEEDER_LATER;
	assert_true(pass_once());
	assert_int_equal(started_total, AT_ONCE);
	assert_int_equal(r->waiting, 8 - AT_ONCE);
	assert_int_equal(r->made, 0);
}

/* Feeds without room. Nothing of the image is kept, and no attempt is counted. */
static void feed_without_room(const char *id)
{
	feeder_call(r);
	for (unsigned i = 0; i < 3; i++) {
		int ms;

		while ((ms = feeder_feed(r)) == 0)
			continue;
		assert_int_equal(ms, ROOM_POLL_MS);
		assert_int_equal(started_total, 0);
		assert_int_equal(attempts_of(id), 0);
		assert_int_equal(r->waiting, 1);
	}
}

static void recovery_waits_for_memory(void **state)
{
	(void)state;
	const char *id = spool_one('A', 0);

	hold_memory();
	feed_without_room(id);
	release_memory();
	assert_false(pass_once());
	assert_int_equal(r->made, 1);
}

static void recovery_waits_for_a_place(void **state)
{
	(void)state;
	const char *id = spool_one('A', 0);

	atomic_fetch_add(&service.admission.in_flight, IMAGES_MAX);
	feed_without_room(id);
	atomic_fetch_sub(&service.admission.in_flight, IMAGES_MAX);
	assert_false(pass_once());
	assert_int_equal(r->made, 1);
}

static void one_place_is_enough(void **state)
{
	(void)state;
	spool_one('A', 0);
	atomic_fetch_add(&service.admission.in_flight, IMAGES_MAX - 1);
	assert_false(pass_once());
	assert_int_equal(wait_count, 0);
	assert_int_equal(r->made, 1);
	atomic_fetch_sub(&service.admission.in_flight, IMAGES_MAX - 1);
}

/* ---- calls ---- */

static void an_image_that_stays_spooled_calls_recovery(void **state)
{
	static struct upload u = { .service = &service };
	static struct image image = { .upload = &u };
	bool *is_called = &r->is_called;

	(void)state;
	image.hold_count = 0;
	recovery_watch(&image);
	assert_true(image.is_spooled);
	*is_called = false;
	image.release[0](NULL, &image); /* it is stored */
	assert_false(*is_called);
	for (unsigned i = 0; i < 2; i++) {
		u.slot = i ? &r->slot[0] : NULL;
		atomic_store(&image.has_failed, false);
		image.stays_spooled = true;
		image.release[0](NULL, &image);
		assert_true(*is_called);
		*is_called = image.stays_spooled = false;
		atomic_store(&image.has_failed, true);
		image.problem.status = 507;
		image.problem.slug = "storage-full";
		image.release[0](NULL, &image);
		assert_int_equal(*is_called, i == 0); /* its pass knows that it has failed */
		*is_called = false;
	}
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_STORE(a_stored_image_is_recovered),
		WITH_STORE(without_room_on_the_disk_no_attempt_counts),
		WITH_STORE(an_image_that_fails_three_times_is_quarantined),
		WITH_STORE(a_refused_image_is_quarantined),
		WITH_STORE(an_image_that_cannot_be_quarantined_does_not_count),
		WITH_STORE(a_damaged_entry_is_quarantined),
		WITH_STORE(an_image_larger_than_the_budget_is_quarantined),
		WITH_STORE(a_stored_image_only_leaves_the_spool),
		WITH_STORE(an_attempt_that_cannot_be_counted_is_made),
		WITH_STORE(an_image_in_flight_is_not_started_again),
		WITH_STORE(small_bodies_are_those_up_to_the_limit),
		WITH_STORE(a_failed_start_keeps_nothing),
		WITH_STORE(a_start_that_fails_is_delayed),
		WITH_STORE(a_spool_that_cannot_be_listed_is_delayed),
		WITH_STORE(four_images_are_in_flight_at_once),
		WITH_STORE(images_with_attempts_come_last_and_alone),
		WITH_STORE(a_pass_ends_after_a_delayed_image),
		WITH_STORE(recovery_waits_for_memory),
		WITH_STORE(recovery_waits_for_a_place),
		WITH_STORE(one_place_is_enough),
		WITH_STORE(an_image_that_stays_spooled_calls_recovery),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
