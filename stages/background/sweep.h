/*
 * sweep.h - removes images whose time is over, and the oldest ones if the store has too many bytes;
 * keeps the figures of usage.h.
 *
 * A feeder that feeds nothing, below all other work: it removes at most experiment.sweep_rate
 * images in a second, in batches of one flush each, and waits before each batch while images are in
 * flight. A run costs what it removes and one list of directories, whatever the size of the store.
 */
#ifndef DARKROOM_BACKGROUND_SWEEP_H
#define DARKROOM_BACKGROUND_SWEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "feeder.h"
#include "s3/s3_objects.h"
#include "store/expiry.h"
#include "store/stored_image.h"

struct storage;

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
	struct s3_round round;
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
	struct stored_info info;
	bool has_info;
	uint64_t ends; /* as storage_reader has it */
	/* atomic, any thread */
	_Atomic uint64_t removed[SWEEP_REASON_COUNT], removed_bytes;
};

/* Returns 0 or -errno; feeder_fini() must follow a success. A stop ends a batch. feeder_call() lets
 * it see a new configuration. Main thread. */
int sweep_init(struct sweep *r, struct image_service *s, const _Atomic bool *has_quotas);

#endif
