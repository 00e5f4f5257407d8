/*
 * inflight.h - the images that are in the making, by id, and who waits for them; and how many each
 * client has in flight.
 *
 * Locked inside; held for a few instructions. Any thread.
 */
#ifndef DARKROOM_IMAGE_INFLIGHT_H
#define DARKROOM_IMAGE_INFLIGHT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct image;
struct visit;

/* A connection's event that waits for an image to be stored or to fail. Embedded in the connection.
 */
struct waiter {
	struct event *event; /* set aside by its owner before inflight_wait() is called */
	unsigned instance;   /* of accept_read: where the event is sent when the image has ended */
	struct waiter *next;
	struct image *image; /* under the lock; NULL: waits for nothing */
};

/* Who uploads: the address without the port, IPv4 mapped into IPv6. */
struct client_key {
	uint8_t address[16];
};

struct inflight_client;

struct inflight {
	pthread_mutex_t lock;
	struct image **image_bucket;
	struct inflight_client **client_bucket;
	size_t bucket_count; /* a power of two */
};

int inflight_init(struct inflight *r, size_t image_count_max); /* 0 or -ENOMEM */
void inflight_fini(struct inflight *r);

/* From form_decode: the image can be found and waited for from now on. Its id is set. */
void inflight_add(struct inflight *r, struct image *image);

/* From stats: the image is stored or has failed; those who wait for it are returned as a list, each
 * to be sent on. */
struct waiter *inflight_remove(struct inflight *r, struct image *image);

enum inflight_wait_result { INFLIGHT_UNKNOWN = 0, INFLIGHT_WAITS };

/* If the image is in the making, w stands in its line and w->event is no longer the caller's. */
enum inflight_wait_result inflight_wait(struct inflight *r, const char *id, struct waiter *w);

/* True if it was still waiting: its event is the caller's again. False: it is on its way through
 * the queue. */
bool inflight_cancel(struct inflight *r, struct waiter *w);

/* True and *width, *height (0 if not decoded yet) if the image is in the making. */
bool inflight_find(struct inflight *r, const char *id, uint32_t *width, uint32_t *height);

/* Takes n slots for the client unless it would then have more than max in flight; *in_flight is
 * what it has now. max 0: no limit, and nothing is counted. Returns 0, -EAGAIN (over the limit) or
 * -ENOMEM. */
int inflight_client_take(struct inflight *r, const struct client_key *key, unsigned n, uint64_t max,
                         uint64_t *in_flight);
void inflight_client_give(struct inflight *r, const struct client_key *key, unsigned n);

#endif
