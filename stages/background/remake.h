/*
 * remake.h - gives stored images the variants that they lack, as work below everything else.
 *
 * A feeder takes images from one queue, reads their originals, and starts them (image/remade.h).
 *
 * First come images of which clients ask for a variant (store.make_missing). The first client that
 * asks puts the image into the queue, and others wait with it. All variants that the image lacks
 * are made at once: so an image is made once, whatever is asked for. One begins while few others
 * are in flight, and otherwise four images a second. At most MISSING_MAX images wait, and
 * MISSING_PER_CLIENT of one client. An image that cannot be made is not tried again for a minute.
 * Nothing of this is kept on disk: after a crash, the next GET asks again.
 *
 * Then come those of the queue in the store (remake_queue.h), which survives a restart. One begins
 * only while few images are in flight: none with three cores or less, and fewer than half of the
 * cores otherwise. After a second without other images, all cores are used. While images are made
 * in the cheaper ways of overload.degrade, and for a while after, none begins. To have an image
 * remade: remake_queue_put(), then feeder_call().
 */
#ifndef DARKROOM_BACKGROUND_REMAKE_H
#define DARKROOM_BACKGROUND_REMAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "admission/clients.h"
#include "feeder.h"
#include "image/inflight.h"

struct conf;
struct text;

#define MISSING_MAX 32
#define MISSING_PER_CLIENT 4
#define MISSING_FAILED_MAX 256

/* What becomes of a client that asks. */
enum missing {
	MISSING_WAITS = 1,
	MISSING_FULL,        /* too many images wait */
	MISSING_CLIENT_FULL, /* too many images of this client wait */
	MISSING_ENDED,       /* the image may have the variant now, or be gone */
	MISSING_IMPOSSIBLE,  /* it cannot be made, or could not lately */
	MISSING_LATER        /* there was no room, or the daemon stops */
};

/* An image of which a variant is asked for. */
struct asked_image {
	struct inflight_image known; /* in `asked` of struct remake */
	char id[ULID_LENGTH + 1];
	bool is_taken, is_begun;
	bool has_client; /* that asked first */
	struct client_key client;
	uint64_t turn, retry_ns; /* the lowest turn is next; not before retry_ns */
};

struct remake {
	struct feeder feeder; /* first; its `waiting` counts the store's queue */
	unsigned cores;       /* fixed */
	/* the feeder's thread's own */
	uint64_t busy_ns;  /* when another image was in flight */
	uint64_t begun_ns; /* the last image that was asked for */
	/* under the feeder's lock */
	struct inflight asked; /* images that are asked for, and their clients */
	struct asked_image image[MISSING_MAX];
	uint64_t turn;
	struct {
		char id[ULID_LENGTH + 1];
		uint64_t until_ns;
	} failure[MISSING_FAILED_MAX]; /* the oldest is replaced */
	unsigned failure_at;
	/* atomic, any thread */
	_Atomic uint64_t backfilled;       /* images that were put there by remake_skipped() */
	_Atomic uint64_t ns_per_kilopixel; /* of an original, all stages; 0: not known yet */
	_Atomic uint64_t missing_made, missing_failed; /* images that were asked for */
	_Atomic uint64_t missing_refused;              /* requests */
	_Atomic uint64_t damaged, lost; /* damaged files that GETs found: made again, or not */
};

/* ---- main thread ---- */

/* Returns 0 or -errno; remake_fini() must follow a success. */
int remake_init(struct remake *r, struct image_service *s);

/* Ignores one that is all zero. */
void remake_fini(struct remake *r);

/* Stops the feeder. Images that are in flight end normally; the others stay in the store's queue,
 * and the clients that wait for others are answered. */
void remake_stop(struct remake *r);

/* ---- any thread ---- */

/* Appends the counters as a line of JSON. */
void remake_report(struct remake *r, struct text *to);

/* Asks for what the image lacks. client: NULL: it has no limit of its own. With MISSING_WAITS the
 * event of w, which is parked, is sent to accept_read with a result of enum missing;
 * inflight_cancel(&r->asked, w) ends the wait. An image that nothing waits for is not begun. */
enum missing remake_ask(struct remake *r, const char *id, const struct client_key *client,
                        struct waiter *w);

/* A GET has found that a file of the image is damaged; fd: the file. Moves it to the quarantine,
 * but for image.json, without which nothing would know the image. Has it made again if it is a
 * variant of conf and the image has its original. Counts and logs. Returns 1 if it will be made, 0
 * if it cannot be, or -ESTALE if the image has another file by now. Blocks. */
int remake_damaged(struct remake *r, const struct conf *conf, const char *id, const char *name,
                   int fd);

/*
 * Variants that were skipped under load are made when it has gone (overload.backfill), and files
 * with when = idle when little else is to do.
 *
 * The image is about to be stored. Returns whether it lacks files that are to be made later; it
 * is then in the store's queue, and remake_skipped_end() must follow. The flush of the image's
 * commit makes both durable. After a crash there may be an entry without an image, which does no
 * harm. Blocks.
 */
bool remake_skipped(struct remake *r, const struct image *image);

/* The image is stored, or with err it is not. Blocks. */
void remake_skipped_end(struct remake *r, const struct image *image, int err);

#endif
