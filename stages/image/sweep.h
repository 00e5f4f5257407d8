/*
 * sweep.h - removes images whose time is over, and the oldest ones if the store has too many bytes;
 * keeps the figures of usage.h.
 *
 * A thread of its own, below all other work: it removes at most store.sweep_rate images in a
 * second, in batches of one flush each, and waits before each batch while images are in flight. A
 * run costs what it removes and one list of directories, whatever the size of the store.
 */
#ifndef DARKROOM_IMAGE_SWEEP_H
#define DARKROOM_IMAGE_SWEEP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct image_service;

enum sweep_reason { SWEEP_EXPIRED, SWEEP_TOO_OLD, SWEEP_TOO_MUCH, SWEEP_REASON_COUNT };

struct sweep {
	struct image_service *service;
	const _Atomic bool *has_quotas; /* whether quotas need figures; set before the start */
	pthread_t thread;
	bool is_started; /* main thread */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_stopping; /* under the lock */
	/* atomic, any thread */
	_Atomic uint64_t removed[SWEEP_REASON_COUNT], removed_bytes;
};

/* ---- main thread ---- */

/* Returns 0 or -errno; sweep_fini() must follow a success. */
int sweep_init(struct sweep *w, struct image_service *s);
void sweep_fini(struct sweep *w);

/* Starts the thread. Returns 0, or -errno with the reason logged. */
int sweep_start(struct sweep *w);

/* Stops the thread; a batch is ended. */
void sweep_stop(struct sweep *w);

#endif
