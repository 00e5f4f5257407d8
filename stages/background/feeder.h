/*
 * feeder.h - a thread that starts images which no client uploads now: spooled ones, stored ones
 * that lack variants. Also the thread of the sweep, which starts nothing.
 *
 * A feeder works through lists of images, one list in each pass: the names of a directory of the
 * store. A few images are in flight at once. Images with failed attempts come last and alone: if
 * one of them crashes the daemon, no attempt of the others is counted. After an image that must be
 * retried the pass ends, and the next pass comes later, each time twice as late. What the images
 * are, and when one may start, is of the class.
 */
#ifndef DARKROOM_BACKGROUND_FEEDER_H
#define DARKROOM_BACKGROUND_FEEDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/problem.h"
#include "store/ulid.h"

#define FEEDER_AT_ONCE_MAX 16 /* images of lists */
#define FEEDER_SLOTS 48       /* the others are of class->front() */
#define FEEDER_LIST_MAX 4096  /* images of one pass; more images take another pass */
#define FEEDER_ATTEMPTS_MAX 3 /* at an image, before it is refused */

struct asked_image;
struct feeder;
struct image;
struct image_service;
struct upload;

enum feeder_result {
	FEEDER_IN_FLIGHT, /* there is none yet */
	FEEDER_MADE,
	FEEDER_GONE,   /* the image was removed meanwhile, or there is nothing to do */
	FEEDER_AGAIN,  /* there is no room, or the image is in flight: retried after some ms */
	FEEDER_LATER,  /* for want of disk space or memory: retried */
	FEEDER_FAULT,  /* an internal error: retried a limited number of times */
	FEEDER_REFUSED /* by the present configuration, or the file is damaged */
};

struct feeder_item {
	char id[ULID_LENGTH + 1];
	unsigned attempts;         /* that failed so far */
	struct asked_image *asked; /* it is of class->front(); NULL: of a list */
};

/* An image in flight. */
struct feeder_slot {
	struct feeder *feeder;     /* fixed: what an ended image holds is given back later */
	bool is_taken, is_counted; /* as an attempt */
	struct feeder_item item;
	enum feeder_result result;
	char why[PROBLEM_DETAIL_MAX + 64]; /* it is refused, or could not start; "": none */
};

/* The functions are called by the feeder's thread, unless marked, and without the lock. */
struct feeder_class {
	const char *name; /* the subject of its lines in the log */

	/* Does what is due, a little of it. Returns 0 if more is due; or after how many ms it is to
	 * be called again, -1: not before feeder_call(), feeder_wake() or the end of an image. */
	int (*next)(struct feeder *f);

	/* ---- for feeder_feed() ---- */

	const char *directory; /* below the root of the store: each name is that of an image */
	const char *noun;      /* what an image is, for the log */
	const char *task;      /* "to be ...", the same */
	const char *made, *gone, *failed; /* the same of images with these results */
	const char *damaged;              /* what start() means by -EINVAL */
	unsigned at_once;                 /* images of lists in flight */
	unsigned more;                    /* with as many in a pass, another one follows at once */
	unsigned quiet_ms; /* after the last pass, until the log has the end of the work */

	/* Returns how many attempts at an image have failed, or -1: it is left out of this pass. */
	int (*attempts)(struct feeder *f, const char *id);

	/* Takes an image that goes before the list. Returns 0 if there was one; as next() if there
	 * was none. NULL: there is never one. */
	int (*front)(struct feeder *f, struct feeder_item *item);

	/* Returns 0 if one more image of the list may start, or after how many ms it may be asked
	 * again. NULL: 0. */
	int (*pace)(struct feeder *f, unsigned busy);

	/* Starts the slot's image by feeder_upload_start(). Returns 0 or -errno, as result_of() in
	 * feeder.c reads it. */
	int (*start)(struct feeder *f, struct feeder_slot *slot);

	/* Keeps the number of attempts. Returns 0, -ENOENT if the image was removed, or -errno. */
	int (*set_attempts)(struct feeder *f, const char *id, unsigned attempts);

	/* Settles an image that has a result. One of front(): by the thread that has ended it. */
	void (*ended)(struct feeder *f, const struct feeder_slot *slot);
};

struct feeder {
	const struct feeder_class *class;
	struct image_service *service; /* borrowed */
	pthread_t thread;
	bool is_started; /* main thread */
	/* the thread's own */
	struct feeder_item *item; /* item[at..count) are left of this pass */
	unsigned at, count;
	bool is_in_pass, is_delayed, has_more;
	bool is_told; /* the log has the beginning of this work, and not its end */
	uint64_t told_made, told_failed, gone; /* gone: FEEDER_GONE, since then */
	uint64_t end_ns;                       /* of the last pass */
	unsigned retry_ms;                     /* until a pass that comes after a delay */
	uint64_t pass_ns;                      /* not before */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool is_stopping, is_called, has_news;
	struct feeder_slot slot[FEEDER_SLOTS];
	pthread_mutex_t counting; /* while the directory grows, or its images are counted */
	/* atomic, any thread */
	_Atomic uint64_t waiting;      /* images of the directory that have not ended */
	_Atomic uint64_t made, failed; /* images of the directory; the class counts the failed */
};

/* ---- main thread ---- */

/* Returns 0 or -errno; feeder_fini() must follow a success. */
int feeder_init(struct feeder *f, const struct feeder_class *class, struct image_service *s);

/* Stops the thread, and settles the last images. Ignores a feeder that is all zero. */
void feeder_fini(struct feeder *f);

/* Starts the thread, once the graph serves; it begins with a pass. Returns 0, or -errno with the
 * reason logged. */
int feeder_start(struct feeder *f);

/* Stops the thread. Images that are in flight end normally. */
void feeder_stop(struct feeder *f);

/* ---- any thread ---- */

/* There are new images: another pass is made. */
void feeder_call(struct feeder *f);

/* Lets next() be called. Under the lock. */
void feeder_wake(struct feeder *f);

/* Returns what became of an image that has ended. */
enum feeder_result feeder_result_of(const struct image *image);

/* ---- the feeder's thread ---- */

/* Settles what has ended, and starts an image if one may start. As next(). */
int feeder_feed(struct feeder *f);

/* Waits for ms. Returns true at once if the thread is to stop. */
bool feeder_pause(struct feeder *f, uint64_t ms);

/*
 * Makes an upload of an original that the daemon has: of one image, with the slot's id, memory for
 * the original, and a place among the images in flight. Reads the original. Returns 0; -ERANGE
 * after too many attempts; -EFBIG if memory never suffices; -EAGAIN without room; -ENOMEM; -EBADMSG
 * if the file is shorter; or -errno. Blocks.
 */
int feeder_upload_new(struct feeder_slot *slot, uint64_t size, const char *file_name, int fd,
                      struct upload **result);

/* Counts the attempt and starts the upload, whose end becomes the slot's result. Returns 0,
 * -EALREADY if an image with this id is in flight, or -ENOENT if it was removed. Owns u. */
int feeder_upload_start(struct feeder_slot *slot, struct upload *u);

/* For one that is not started. */
void feeder_upload_drop(struct upload *u);

#endif
