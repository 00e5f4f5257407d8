/*
 * inflight.h - images in flight by id, and the events that wait for them.
 *
 * Locked inside; the lock is held for a few instructions. Any thread.
 */
#ifndef DARKROOM_IMAGE_INFLIGHT_H
#define DARKROOM_IMAGE_INFLIGHT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;

/* A connection's event that waits until an image is stored or has failed. Embedded in the
 * connection. */
struct waiter {
	struct event *event; /* parked by its owner before inflight_wait() */
	unsigned instance;   /* of accept_read: where the event is sent when the image has ended */
	struct waiter *next;
	struct inflight_image *image; /* under the lock; NULL: not waiting */
	unsigned result;              /* of who sends the event */
};

/* An image in flight. Embedded in the image, from which it borrows. */
struct inflight_image {
	const char *id;
	const _Atomic uint32_t *width, *height; /* 0 before decoding; for inflight_find() */
	/* under the lock */
	struct inflight_image *next;
	struct waiter *waiters;
};

struct inflight {
	pthread_mutex_t lock;
	struct inflight_image **bucket;
	size_t bucket_count; /* a power of two */
};

int inflight_init(struct inflight *r, size_t image_count_max); /* 0 or -ENOMEM */
void inflight_fini(struct inflight *r);

/* Adds an image, whose id is set: it can be found and waited for. Returns false if an image with
 * its id is there already, and has not added it. */
bool inflight_add(struct inflight *r, struct inflight_image *image);

/* Removes an image that is stored or has failed. Returns the list of its waiters, whose events the
 * caller must send. */
struct waiter *inflight_remove(struct inflight *r, struct inflight_image *image);

/* Returns whether something waits for the image, which is there. */
bool inflight_is_awaited(struct inflight *r, const struct inflight_image *image);

/* Returns true if the image is in flight: w waits for it and w->event is no longer the caller's. */
bool inflight_wait(struct inflight *r, const char *id, struct waiter *w);

/* Returns true if w was still waiting: its event is the caller's again. Returns false if the event
 * has been sent already. */
bool inflight_cancel(struct inflight *r, struct waiter *w);

/* Returns whether the image is in flight. size: NULL, or set to its width and height then; 0 before
 * decoding. */
bool inflight_find(struct inflight *r, const char *id, uint32_t size[2]);

#endif
