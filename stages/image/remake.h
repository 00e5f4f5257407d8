/*
 * remake.h - gives stored images the variants that they lack, as work below everything else.
 *
 * A thread of its own takes images from the queue in the store (remake_queue.h) and starts them
 * (remade.h). It starts one only while few images are in flight: none with three cores or less,
 * and fewer than half of the cores otherwise. After a second without other images, all cores are
 * used. While images are made in the cheaper ways of overload.degrade, and for a while after, it
 * starts none. The queue survives a restart. To have an image remade: remake_queue_put(), then
 * remake_call(). backfill.h does that for variants that were skipped under load.
 */
#ifndef DARKROOM_IMAGE_REMAKE_H
#define DARKROOM_IMAGE_REMAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/ulid.h"

#define REMAKE_AT_ONCE 16

struct image;
struct image_service;
struct text;

enum remake_result {
	REMAKE_MADE = 1,
	REMAKE_GONE,   /* the image was removed meanwhile */
	REMAKE_LATER,  /* for want of disk space or memory */
	REMAKE_FAULT,  /* an internal error: retried a limited number of times */
	REMAKE_REFUSED /* by the present configuration, or the file is damaged */
};

struct remake_slot {
	char id[ULID_LENGTH + 1];
	bool is_taken;
	enum remake_result result; /* 0: in flight */
};

struct remake {
	struct image_service *service;
	pthread_t thread;
	bool is_started; /* main thread */
	unsigned cores;  /* fixed */
	/* the thread's own */
	uint64_t busy_ns; /* when another image was in flight */
	bool is_told;     /* the log has the beginning of this work */
	uint64_t told_made, told_failed;
	pthread_mutex_t counting; /* while the queue grows, or its images are counted */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool is_stopping, is_called;
	struct remake_slot slot[REMAKE_AT_ONCE];
	/* atomic, any thread */
	_Atomic uint64_t waiting, made, failed; /* images */
	_Atomic uint64_t backfilled;            /* added by backfill.h */
	_Atomic uint64_t ns_per_kilopixel;      /* of an original, all stages; 0: not known yet */
};

/* ---- main thread ---- */

/* Returns 0 or -errno; remake_fini() must follow a success. */
int remake_init(struct remake *r, struct image_service *s);
void remake_fini(struct remake *r);

/* Starts the thread, once the graph serves. Returns 0, or -errno with the reason logged. */
int remake_start(struct remake *r);

/* Stops the thread. Images that are in flight end normally; the others stay in the queue. */
void remake_stop(struct remake *r);

/* ---- any thread ---- */

/* The queue has new images. */
void remake_call(struct remake *r);

/* From image_end(): a remade image has ended and is no longer in flight. */
void remake_image_ended(struct remake *r, struct image *image);

#endif
