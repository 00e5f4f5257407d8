/*
 * recovery.h - makes again what was spooled when the daemon ended, and what could not be stored
 * after it was acknowledged.
 *
 * One thread of its own, which feeds a few images at a time into the graph while it serves. Images
 * that did not survive an attempt come last and alone: if one of them is what ends the daemon, the
 * others do not go with it into quarantine.
 */
#ifndef DARKROOM_IMAGE_RECOVERY_H
#define DARKROOM_IMAGE_RECOVERY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define RECOVERY_AT_ONCE 4

struct image;
struct server;

enum recovery_result {
	RECOVERY_STORED = 1,
	RECOVERY_LATER,  /* the fault is not the image's: no space, no memory */
	RECOVERY_FAULT,  /* ours: it may be tried again, but not for ever */
	RECOVERY_REFUSED /* by what is configured now, or it is damaged */
};

struct recovery_slot {
	char id[ULID_LENGTH + 1];
	unsigned attempts; /* before this one */
	bool is_taken;
	enum recovery_result result; /* 0: on its way */
};

struct recovery {
	struct server *server;
	pthread_t thread;
	bool is_started; /* main thread */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool is_stopping;
	bool is_called; /* an image has failed after it was spooled */
	struct recovery_slot slot[RECOVERY_AT_ONCE];
	/* atomic, any thread */
	_Atomic uint64_t waiting, recovered, quarantined;
};

/* 0 or -errno. Main thread, as all but the last; recovery_fini() after every successful init. */
int recovery_init(struct recovery *r, struct server *s);
void recovery_fini(struct recovery *r);

/* Once the graph serves. 0 or -errno, logged. */
int recovery_start(struct recovery *r);

/* Begins nothing more; what has begun is the graph's to finish, what has not stays spooled. */
void recovery_stop(struct recovery *r);

/* From image_end(): a spooled image is through, and no longer in the inflight. Any thread. */
void recovery_image_ended(struct recovery *r, struct image *image);

#endif
