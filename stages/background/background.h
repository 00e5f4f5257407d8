/*
 * background.h - what works beside the graph, each part on a feeder's thread. Main thread, unless
 * marked.
 */
#ifndef DARKROOM_BACKGROUND_BACKGROUND_H
#define DARKROOM_BACKGROUND_BACKGROUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "feeder.h"
#include "remake.h"
#include "s3/s3_objects.h"
#include "store/expiry.h"

struct storage;

/* ---- recovery.c: processes spooled images again ---- */

/* Those left by a crash, and those that could not be stored after they were acknowledged. A feeder
 * works through the spool while the graph serves. Its `failed` are those that were set aside. */

/* Returns 0 or -errno; feeder_fini() must follow a success. */
int recovery_init(struct feeder *f, struct image_service *s);

/* The image is spooled now, so recovery looks after it: if it ends without being stored, it is
 * processed again. Any thread. */
void recovery_watch(struct image *image);

/* ---- sweep.c: removes images whose time is over, and keeps the figures of usage.h ---- */

/* Removes the oldest images if the store has too many bytes. A feeder that feeds nothing, below all
 * other work: it removes at most experiment.sweep_rate images in a second, in batches of one flush
 * each, and waits before each batch while images are in flight. A run costs what it removes and one
 * list of directories, whatever the size of the store. */

#define SWEEP_LIST_MAX 1024

enum sweep_reason { SWEEP_EXPIRED, SWEEP_TOO_OLD, SWEEP_TOO_MUCH, SWEEP_REASON_COUNT };

struct sweep {
	struct feeder feeder;           /* first */
	const _Atomic bool *has_quotas; /* whether quotas need figures; fixed */
	struct storage *st;             /* borrowed */
	/* the feeder's thread's own */
	int64_t wall_ahead_s; /* of the time since boot, by a wall clock that is believed */
	bool has_jumped;      /* the wall clock, too far */
	int64_t jumped_s;     /* when that was seen, since boot */
	uint64_t max_age_ms, max_bytes, interval_ms, rate;
	uint64_t key_age_s;
	unsigned key_shard; /* the next one */
	struct s3_pass pass;
	uint64_t end_ns; /* of the last run; 0: there was none */
	/* of the run */
	uint64_t start_ns, total, of_run[SWEEP_REASON_COUNT], bytes;
	struct store_batch batch;
	bool is_over; /* the thread stops, or the store has failed */
	bool has_failed;
	char first[ULID_LENGTH + 1], last[ULID_LENGTH + 1];
	struct expiry_due due[SWEEP_LIST_MAX];
	char id[SWEEP_LIST_MAX][ULID_LENGTH + 1];
	/* atomic, any thread */
	_Atomic uint64_t removed[SWEEP_REASON_COUNT], removed_bytes;
};

/* Begins to keep the figures of the store, if they are wanted: before an image comes or goes.
 * Returns 0 or -errno; feeder_fini() must follow a success. A stop ends a batch. feeder_call() lets
 * it see a new configuration. */
int sweep_init(struct sweep *r, struct image_service *s, const _Atomic bool *has_quotas);

/* ---- all of them ---- */

struct background {
	struct feeder recovery;
	struct remake remake;
	struct sweep sweep;
};

/* Makes the parts in zeroed memory. has_quotas: whether quotas need figures; borrowed. Returns 0,
 * or -errno with the reason logged. */
int background_init(struct background *b, struct image_service *s, const _Atomic bool *has_quotas);

/* The graph must be stopped. */
void background_fini(struct background *b);

/* Starts the threads, once the graph serves. Returns 0, or -errno with the reason logged. */
int background_start(struct background *b);

/* Stops them. Images that are in flight end normally. */
void background_stop(struct background *b);

#endif
