/*
 * missing.h - makes what a stored image lacks when a client asks for it (store.make_missing).
 *
 * The first client that asks for a variant has the image taken up here, and others wait with it.
 * All variants that the image lacks are made from its original at once, as by remade.h: so an image
 * is made once, whatever is asked for. Uploads come first: a thread of its own starts an image
 * while few others are in flight, and otherwise four images a second. At most MISSING_MAX images
 * wait, and MISSING_PER_CLIENT of one client. An image that cannot be made is not tried again for a
 * minute. Nothing is kept on disk: after a crash, the next GET asks again. Locked inside.
 */
#ifndef DARKROOM_IMAGE_MISSING_H
#define DARKROOM_IMAGE_MISSING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client_key.h"
#include "store/ulid.h"

struct event;
struct image;
struct image_service;

#define MISSING_MAX 32
#define MISSING_PER_CLIENT 4
#define MISSING_FAILED_MAX 256

enum missing_result {
	MISSING_ENDED = 1, /* the image may have the variant now, or be gone */
	MISSING_IMPOSSIBLE,
	MISSING_LATER /* there was no room, or the daemon stops */
};

struct missing_slot;

/* A connection's event. Embedded in the connection. */
struct missing_waiter {
	struct event *event; /* parked by its owner before missing_ask() */
	unsigned instance;   /* of accept_read, where the event is sent */
	struct missing_waiter *next;
	struct missing_slot *slot;  /* under the lock; NULL: not waiting */
	enum missing_result result; /* set before the event is sent */
};

/* An image that is waited for. */
struct missing_slot {
	char id[ULID_LENGTH + 1];
	bool is_taken, is_started;
	bool has_client; /* that asked first */
	struct client_key client;
	uint64_t turn, retry_ns; /* the lowest turn is next; not before retry_ns */
	struct missing_waiter *waiters;
};

struct missing_failure {
	char id[ULID_LENGTH + 1];
	uint64_t until_ns;
};

struct missing {
	struct image_service *service;
	pthread_t thread;
	bool is_started;   /* main thread */
	unsigned cores;    /* fixed */
	uint64_t begun_ns; /* the last image; the thread's own */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool is_stopping;
	uint64_t turn;
	struct missing_slot slot[MISSING_MAX];
	struct missing_failure failure[MISSING_FAILED_MAX]; /* the oldest is replaced */
	unsigned failure_at;
	/* atomic, any thread */
	_Atomic uint64_t made, failed, refused; /* images made, and not; requests */
};

/* ---- main thread ---- */

/* Returns 0 or -errno; missing_fini() must follow a success. */
int missing_init(struct missing *m, struct image_service *s);
void missing_fini(struct missing *m);

/* Starts the thread. Returns 0, or -errno with the reason logged. */
int missing_start(struct missing *m);

/* Stops the thread and sends all waiters whose image has not begun. The others are sent when it
 * ends. */
void missing_stop(struct missing *m);

/* ---- any thread ---- */

enum missing_answer {
	MISSING_WAITS = 1,   /* the waiter's event is no longer the caller's */
	MISSING_FULL,        /* too many images wait */
	MISSING_CLIENT_FULL, /* too many images of this client wait */
	MISSING_FAILED       /* it could not be made lately */
};

/* Asks for what the image lacks. client: NULL: it has no limit of its own. */
enum missing_answer missing_ask(struct missing *m, const char *id, const struct client_key *client,
                                struct missing_waiter *w);

/* Returns true if w was still waiting: its event is the caller's again. Returns false if the event
 * has been sent already. An image that nothing waits for is not begun. */
bool missing_cancel(struct missing *m, struct missing_waiter *w);

/* From image_end(): an image of a slot has ended, and is no longer in flight. */
void missing_image_ended(struct missing *m, struct image *image);

#endif
