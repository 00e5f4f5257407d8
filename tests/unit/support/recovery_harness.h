/*
 * recovery_harness.h - image/recovery.c and upload.c on one thread, with a store of their own.
 *
 * The test ends the images that recovery starts. Time passes when recovery waits. For tests that
 * call static functions of recovery.c, so everything is in this header.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_RECOVERY_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_RECOVERY_HARNESS_H

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

#include "base/clock.h"
#include "base/pool.h"
#include "log/log.h"
#include "sched/runtime.h"
#include "store/spool.h"

static inline uint64_t fake_clock(void);
static inline int fake_gettime(clockid_t id, struct timespec *t);
static inline int fake_wait(pthread_cond_t *c, pthread_mutex_t *lock);
static inline int fake_timedwait(pthread_cond_t *c, pthread_mutex_t *lock,
                                 const struct timespec *t);
static inline int fake_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *),
                              void *arg);
static inline void fake_push(struct stage *s, unsigned instance, struct event *ev);
static inline void *fake_pool_get(size_t size);
static inline ssize_t fake_read(int fd, void *data, size_t size);

#include "recovery_calls.h"

#define clock_ns fake_clock
#define clock_gettime fake_gettime
#define pthread_cond_wait fake_wait
#define pthread_cond_timedwait fake_timedwait
#define pthread_create fake_create
#define stage_push fake_push
#define pool_get fake_pool_get
#define read fake_read
#include "base/condition.c"
#include "image/recovery_report.h"
#undef log_error
#undef log_warning
#undef log_notice
#define log_error(...) (error_count++)
#define log_warning(...) (warning_count++)
#define log_notice(...) (notice_count++)
#define spooling_set_attempts fake_set_attempts
#define pthread_mutex_lock checked_lock
#define pthread_mutex_unlock checked_unlock
#define pthread_cond_signal counted_signal
#define pthread_join counted_join
#define calloc counted_calloc
#define free counted_free
#define pool_thread_fini() (rest_count++, pool_thread_fini())
#define recovery_report(r) (report_count++, recovery_report(r))
#include "image/recovery.c"
#undef spooling_set_attempts
#undef pthread_mutex_lock
#undef pthread_mutex_unlock
#undef pthread_cond_signal
#undef pthread_join
#undef calloc
#undef free
#undef pool_thread_fini
#undef recovery_report
#include "image/upload.c"
#undef clock_gettime
#undef pthread_cond_wait
#undef pthread_cond_timedwait
#undef pthread_create
#undef read
#undef pool_get

#define START_NS (5 * NS_PER_S + 900 * NS_PER_MS)
#define BUDGET (1 << 20)
#define IMAGES_MAX 8
#define WAITS_MAX 64

static char root[64];
static struct image_service service;
static struct graph fake_graph;
static struct recovery *const r = &service.recovery;

/* The waits of recovery, and what happens meanwhile. */
static uint64_t now_ns;
static uint64_t waited_ms[WAITS_MAX];
static unsigned wait_count, sleep_count;
static void (*during_wait)(void);  /* time passes */
static void (*during_sleep)(void); /* nothing is in flight, and recovery waits for a call */

/* Images that were started. */
static struct image *started[16];
static unsigned started_count, started_most, started_total;
static void (*when_started)(struct image *image);
static enum recovery_result result_next;
static int pool_gets_left, create_error;
static unsigned first_descriptors; /* open, and of the pool, before the test */
static uint64_t first_pool_bytes;
static size_t read_most;
static int read_error;

/* ---- what recovery calls ---- */

static inline uint64_t fake_clock(void)
{
	return now_ns;
}

static inline int fake_gettime(clockid_t id, struct timespec *t)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	*t = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_S),
		                .tv_nsec = (long)(now_ns % NS_PER_S) };
	return 0;
}

static inline void problem_of(enum recovery_result result, struct problem *p)
{
	if (result == RECOVERY_REFUSED)
		problem_set(p, 415, "unsupported-media-type", "%s", "");
	else if (result == RECOVERY_LATER)
		problem_set(p, 507, "storage-full", "%s", "");
	else
		problem_set(p, 500, "internal", "%s", "");
}

static inline void store_image(const char *id)
{
	const struct store_file file = { "image.json", "{}", 2, NULL };
	struct store_item item = {
		.place = STORE_IMAGES, .id = id, .file = &file, .file_count = 1
	};

	store_put(&service.store, &item, 1);
	assert_int_equal(item.err, 0);
}

/* Ends the oldest image that is in flight, as image_end() does. */
static inline void end_image(enum recovery_result result)
{
	struct image *image = started[0];
	struct problem p;

	assert_true(started_count > 0);
	memmove(started, started + 1, --started_count * sizeof(struct image *));
	if (result == RECOVERY_STORED) {
		store_image(image->id);
		assert_int_equal(store_unspool(&service.store, image->id), 0);
	} else {
		problem_of(result, &p);
		image_set_problem(image, &p);
	}
	image_source_done(image);
	assert_null(inflight_remove(&service.inflight, image));
	atomic_fetch_sub(&service.in_flight, 1);
	recovery_image_ended(r, image);
	upload_unref(image->upload);
}

static inline int fake_wait(pthread_cond_t *c, pthread_mutex_t *lock)
{
	unsigned depth = lock_depth;

	(void)c;
	lock_depth = 0;
	pthread_mutex_unlock(lock);
	if (started_count) {
		end_image(result_next);
	} else {
		sleep_count++;
		assert_true(sleep_count < WAITS_MAX);
		assert_non_null(during_sleep); /* otherwise it waits forever */
		during_sleep();
	}
	int result = pthread_mutex_lock(lock);

	lock_depth = depth;
	return result;
}

static inline int fake_timedwait(pthread_cond_t *c, pthread_mutex_t *lock, const struct timespec *t)
{
	uint64_t until = (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;

	(void)c;
	assert_in_range(t->tv_nsec, 0, NS_PER_S - 1);
	assert_true(until > now_ns && wait_count < WAITS_MAX);
	waited_ms[wait_count++] = (until - now_ns) / NS_PER_MS;
	now_ns = until;
	pthread_mutex_unlock(lock);
	if (during_wait)
		during_wait();
	pthread_mutex_lock(lock);
	return ETIMEDOUT;
}

static inline int fake_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *),
                              void *arg)
{
	return create_error ? create_error : pthread_create(t, a, run, arg);
}

static inline void fake_push(struct stage *s, unsigned instance, struct event *ev)
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

static inline void *fake_pool_get(size_t size)
{
	void *buffer = pool_gets_left-- > 0 ? pool_get(size) : NULL;

	if (buffer) /* nothing of an earlier image */
		memset(buffer, 0, size);
	return buffer;
}

static inline ssize_t fake_read(int fd, void *data, size_t size)
{
	if (read_error) {
		errno = read_error;
		read_error = 0;
		return -1;
	}
	return read(fd, data, size < read_most ? size : read_most);
}

/* ---- the store ---- */

static inline unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static inline uint64_t used_bytes(void)
{
	uint64_t used, kept;

	pool_usage(&used, &kept);
	return used;
}

static inline int setup(void **state)
{
	static struct conf conf = { .limits = { .images_in_flight = IMAGES_MAX },
		                    .overload = { .degrade = "quality 65" } };
	static const struct plan plan;
	unsigned cleared;

	(void)state;
	memset(&service, 0, sizeof service);
	memset(&fake_graph, 0, sizeof fake_graph);
	fake_graph.replica_count = 1;
	service.graph = &fake_graph;
	now_ns = START_NS;
	wait_count = sleep_count = started_count = started_most = started_total = 0;
	during_wait = during_sleep = NULL;
	when_started = NULL;
	result_next = RECOVERY_STORED;
	pool_gets_left = 1000;
	error_count = warning_count = notice_count = report_count = 0;
	signal_count = join_count = lock_depth = list_count = rest_count = 0;
	count_error = 0;
	create_error = read_error = 0;
	read_most = SIZE_MAX;
	snprintf(root, sizeof root, "/tmp/darkroom-recovery-XXXXXX");
	if (!mkdtemp(root) || conf_epochs_init(&service.epochs, &conf, &plan) ||
	    store_open(&service.store, root, false, &cleared) ||
	    inflight_init(&service.inflight, IMAGES_MAX) || recovery_init(r, &service))
		return -1;
	service.spooling = (struct spooling){ .has_files = true };
	budget_init(&service.budget, BUDGET);
	client_turns_init(&service.turns, IMAGES_MAX); /* its images never leave the queue */
	first_descriptors = open_descriptors();
	first_pool_bytes = used_bytes();
	return 0;
}

/* Nothing may be kept after any test. */
static inline int teardown(void **state)
{
	struct budget_usage usage;
	char command[128];

	(void)state;
	recovery_fini(r);
	assert_int_equal(open_descriptors(), first_descriptors);
	assert_int_equal(used_bytes(), first_pool_bytes);
	assert_int_equal(list_count, 0);
	assert_int_equal(lock_depth, 0);
	budget_usage(&service.budget, &usage);
	assert_int_equal(usage.used[BUDGET_SMALL_BODY] + usage.used[BUDGET_BODY], 0);
	assert_int_equal(service.in_flight, 0);
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
static inline const char *spool_one(char last, unsigned attempts)
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
static inline int attempts_of(const char *id)
{
	struct spooled list[16];
	int n = spool_list(&service.store, list, COUNT_OF(list));

	for (int i = 0; i < n; i++)
		if (strcmp(list[i].id, id) == 0)
			return (int)list[i].attempts;
	return -1;
}

static inline bool is_quarantined(const char *id)
{
	return faccessat(service.store.quarantine_fd, id, F_OK, 0) == 0;
}

/* Makes one pass. Returns whether an image must be retried. */
static inline bool pass_once(void)
{
	struct spooled list[LIST_MAX > 64 ? 64 : LIST_MAX];
	struct spooling_list spool = { .image = list, .max = LIST_MAX };
	bool is_delayed = false;

	/* The list of the spool is shorter than the array. */
	assert_false(pass(r, &spool, &is_delayed));
	if (!is_delayed) /* otherwise the rest waits for the next pass */
		assert_int_equal(r->waiting, 0);
	assert_int_equal(started_count, 0);
	return is_delayed;
}

static struct budget_body room, held[BUDGET_IMAGE];

/* Opens a spooled image and takes its room, as begin() does. */
static inline int open_one(const struct spooled *spooled, uint64_t *size)
{
	struct spool_names names;
	int fd = spool_open(&service.store, spooled->id, size, &names);

	assert_true(fd >= 0);
	assert_true(reserve_room(r, &room, *size));
	return fd;
}

/* Takes all memory for bodies. */
static inline void hold_memory(void)
{
	for (unsigned class = 0; class < BUDGET_IMAGE; class ++) {
		budget_body_init(&service.budget, &held[class], (enum budget_class) class, NULL);
		for (uint64_t bytes = UINT64_C(1) << 40; bytes; bytes /= 2)
			while (held[class].bytes + bytes <= budget_max(&service.budget) &&
			       budget_body_try(&service.budget, &held[class], bytes))
				continue;
	}
}

static inline void release_memory(void)
{
	for (unsigned class = 0; class < BUDGET_IMAGE; class ++)
		budget_body_release(&service.budget, &held[class]);
}

static inline uint64_t body_bytes(void)
{
	return service.budget.used[BUDGET_SMALL_BODY] + service.budget.used[BUDGET_BODY];
}

#endif
