/*
 * recovery.h - processes spooled images again: those left by a crash, and those that could not be
 * stored after they were acknowledged.
 *
 * A thread of its own feeds a few images at a time into the graph while it serves. Images with
 * failed attempts come last and alone: if one of them crashes the daemon, the others are not
 * quarantined with it.
 */
#ifndef DARKROOM_IMAGE_RECOVERY_H
#define DARKROOM_IMAGE_RECOVERY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "problem.h"
#include "store/ulid.h"

#define RECOVERY_AT_ONCE 4

struct image;
struct image_service;

enum recovery_result {
	RECOVERY_STORED = 1,
	RECOVERY_LATER,  /* for want of disk space or memory */
	RECOVERY_FAULT,  /* an internal error: retried a limited number of times */
	RECOVERY_REFUSED /* by the present configuration, or the file is damaged */
};

struct recovery_slot {
	char id[ULID_LENGTH + 1];
	unsigned attempts; /* before this one */
	bool is_taken;
	enum recovery_result result;       /* 0: in flight */
	char why[PROBLEM_DETAIL_MAX + 64]; /* of RECOVERY_REFUSED */
};

struct recovery {
	struct image_service *service;
	pthread_t thread;
	bool is_started; /* main thread */
	/* recovery's thread */
	uint64_t known; /* spooled images that had been stored already */
	struct {
		uint64_t recovered, known, quarantined;
	} reported;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool is_stopping;
	bool is_called; /* an image failed after it was spooled */
	struct recovery_slot slot[RECOVERY_AT_ONCE];
	/* atomic, any thread */
	_Atomic uint64_t waiting, recovered, quarantined;
};

/* ---- main thread ---- */

/* Returns 0 or -errno; recovery_fini() must follow a success. */
int recovery_init(struct recovery *r, struct image_service *s);
void recovery_fini(struct recovery *r);

/* Starts the thread, once the graph serves. Returns 0, or -errno with the reason logged. */
int recovery_start(struct recovery *r);

/* Stops the thread. Images that are in flight end normally; the others stay in the spool. */
void recovery_stop(struct recovery *r);

/* ---- any thread ---- */

/* The spool has images that no client has uploaded: they are processed. */
void recovery_call(struct recovery *r);

/* From image_end(): a spooled image has ended and is no longer in flight. */
void recovery_image_ended(struct recovery *r, struct image *image);

#endif
