/*
 * image.h - an image and its steps: the objects of the image stages' events.
 *
 *   image  one file of an upload. Its event goes jpeg_decode -> ... -> stats, and the event of its
 *          store job goes to disk_write before that.
 *   step   one node of the plan for one image. Its event goes to scale, blur or jpeg_encode.
 *
 * After decoding, the image's event is parked while its steps run, on any cores at once. The last
 * step to end sends the store job to disk_write, or the image to stats if a step failed. Every
 * image ends in stats.
 */
#ifndef DARKROOM_IMAGE_IMAGE_H
#define DARKROOM_IMAGE_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admission/client_turns.h"
#include "admission/cost.h"
#include "conf/conf.h"
#include "disk_job.h"
#include "http/problem.h"
#include "inflight.h"
#include "jail/file_header.h"
#include "pixel/placeholder.h"
#include "plan/plan.h"
#include "sched/core/event.h"
#include "sched/limits/budget.h"
#include "store/ulid.h"
#include "upload.h"

struct decoder;
struct encoder;
struct image_service;
struct picture;
struct picture_job;
struct remade;
struct visit;

#define IMAGE_MAGIC UINT32_C(0x494d4147) /* "IMAG" */

struct step {
	struct event event;
	struct image *image;
	unsigned index;        /* in the plan */
	struct picture *input; /* a reference, from the parent's end to the step's end */
	/* while the step is in progress, also while it is parked; otherwise NULL */
	struct picture_job *job;
	struct encoder *encoder;
};

#define IMAGE_HOLDS_MAX 8

#define IMAGE_VERSION_MAX 9 /* the first characters of the checksum, with the zero */

/* A file that was made of the image. */
struct image_file {
	uint8_t *data; /* pool memory; NULL until encoded and after the image has ended */
	size_t size;   /* 0: it was not made */
	uint32_t width, height;
	char version[IMAGE_VERSION_MAX]; /* of the content, for its URL; set by disk_write */
};

struct image {
	struct event event; /* first: image_of() */
	uint32_t magic;
	struct upload *upload; /* a reference until image_end() */
	char id[ULID_LENGTH + 1];
	/* of the form's part; "" for a raw body */
	char part_name[UPLOAD_FIELD_MAX], file_name[UPLOAD_FIELD_MAX];

	/* set by jpeg_decode */
	const uint8_t *source; /* slice of the upload's body; NULL after image_source_done() */
	size_t source_size;
	enum file_format format;        /* of the source */
	_Atomic uint32_t width, height; /* after orientation; GET may read them meanwhile */
	unsigned orientation;           /* EXIF, 1..8 */
	bool is_damaged;
	bool is_spooled;    /* acknowledged: its spooled files stay until it is stored */
	bool stays_spooled; /* stored, but still in the spool after an error */
	/* not decoded or not spooled; a 202 reports only this while the image goes on. Set before
	 * upload_image_done() */
	bool decode_failed;
	bool responds_at_end; /* not spooled after an error: the response waits for image_end() */
	uint8_t *icc;         /* the profile, in pool memory, or NULL */
	size_t icc_size;
	bool icc_is_of_grey; /* otherwise of colours */
	struct turn turn;    /* until it is decoded */
	struct budget_waiter budget_waiter;
	uint64_t reserved_bytes;   /* of BUDGET_IMAGE, the decoder's memory included */
	struct decoder *decoder;   /* while decoding, also while parked; otherwise NULL */
	uint64_t decode_ns;        /* CPU time of decoding so far */
	_Atomic uint64_t steps_ns; /* the same of its steps that have ended */
	struct cost_facts facts;   /* of its file; set before it starts, as is its work */
	uint64_t work;             /* cost_ns() */
	struct disk_job store_job;
	/* set before it starts */
	uint32_t made;         /* one bit for each file that is made */
	uint64_t unneeded;     /* one bit for each step of the plan that is not */
	struct remade *remade; /* a stored image gets variants again; NULL: an upload */

	struct problem problem; /* the first one; written by the claimer */
	atomic_flag problem_claimed;
	_Atomic bool has_failed; /* problem is valid */
	_Atomic unsigned steps_left;
	struct placeholder placeholder; /* set by one step; complete when the image is stored */
	struct image_file file[CONF_FILE_MAX];

	/* what it holds: see image_hold() */
	void (*release[IMAGE_HOLDS_MAX])(struct visit *v, struct image *image);
	unsigned hold_count;

	struct inflight_image known; /* by its id */

	struct step step[]; /* plan.step_count */
};

/* ---- from upload.c ---- */

/* Returns the bytes of an image with the plan's steps, a multiple of the cache line. */
size_t image_bytes(const struct plan *plan);

/* Initialises an image of the upload, with a new id. source is borrowed from the upload's body. */
void image_init(struct image *image, struct upload *u, const uint8_t *source, size_t source_size);

/* The image has ended, or was never started. */
void image_fini(struct image *image);

/* Assigns the image and its steps to a replica of the graph. */
void image_set_replica(struct image *image, unsigned replica);

/* The image holds something from now on. release gives that back when the image ends, in the visit
 * of its last event: what was taken last is given back first. By then no GET finds the image in
 * flight. For the owner of the image, or of the only event of it that is not parked. */
void image_hold(struct image *image, void (*release)(struct visit *v, struct image *image));

/* A step of the image was worked on by this thread since then: clock_thread_near_ns(). */
void image_spend(struct image *image, uint64_t since_ns);

/* Returns the CPU time of the image so far. */
uint64_t image_spent_ns(const struct image *image);

/* Returns the size of the image's event while these bytes of its file are left to decode: its part
 * of the work. An image that is made again counts REMADE_WEIGHT times. */
uint64_t image_event_size(const struct image *image, uint64_t bytes);

/* Lets all its events precede others. All must be parked. */
void image_set_urgent(struct image *image);

/* ---- from the image stages ---- */

struct image *image_of(struct event *ev); /* asserts the magic */
struct step *step_of(struct event *ev);   /* asserts the magic of its image */
const struct plan_step *step_plan(const struct step *s);

/* Return the configuration and the plan that the image began with. */
const struct conf *image_conf(const struct image *image);
const struct plan *image_plan(const struct image *image);

/* Returns the id of the image's request for the log, or "-" if that was before a crash. */
static inline const char *image_request(const struct image *image)
{
	return image->upload->request_id[0] ? image->upload->request_id : "-";
}

/* Returns whether the file was made of this image. After the last step. */
static inline bool image_has(const struct image *image, unsigned file)
{
	return image->file[file].size > 0;
}

/* Returns the bytes of all files that were made of this image. After the last step. */
static inline uint64_t image_files_bytes(const struct image *image)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < CONF_FILE_MAX; i++)
		bytes += image->file[i].size;
	return bytes;
}

/* Returns how many rows (of MCUs, or of tiles) of that width to process between two checks of the
 * clock: few enough to keep the default cutoff to a tenth, and enough for the check to cost next to
 * nothing. */
static inline unsigned rows_per_check(uint32_t width)
{
	return 1 + 2048 / width;
}

/* ---- whether work is still of use: its client is there, and the response comes in time ---- */

/* Before decoding. Returns false with the problem set if the image need not be decoded. */
bool image_is_wanted(struct visit *v, const struct image *image, struct problem *problem);

/* Before a step. If the step need not be made, ends it as failed and returns false. */
bool step_is_wanted(struct visit *v, struct step *s);

/* Before the image's files are written. Returns false with the problem set if they need not be. An
 * image that was acknowledged is wanted. */
bool files_are_wanted(struct visit *v, const struct image *image, struct problem *problem);

/* ---- from the image stages ---- */

/* Its client may decode another image. Harmless if called again. */
void image_end_turn(struct image *image);

/* Pushes the images' events, which are parked, to jpeg_decode. list: of client_turns.h. */
void images_resume(struct image_service *s, struct turn *list);

/* Sends the events of inflight_remove() to accept_read, with the result for their owners. Any
 * thread. */
void images_send_waiters(struct image_service *s, struct waiter *list, unsigned result);

/* From jpeg_decode: the image is decoded. Owns the picture (one reference) and the image's event.
 * Releases the source, sends a response that waits for decoding, and starts the root's steps. */
void image_decoded(struct visit *v, struct image *image, struct picture *root);

/* From jpeg_decode: the image ends with a problem. Owns the image's event. */
void image_decode_failed(struct visit *v, struct image *image, const struct problem *problem);

/* From scale and blur: s has made its picture (owned, one reference), with which its children
 * start. Drops s->input; owns the step's event. */
void step_done(struct visit *v, struct step *s, struct picture *result);

/* From jpeg_encode: the file is complete (data is pool memory, owned). Owns the step's event. */
void step_encoded(struct visit *v, struct step *s, uint8_t *data, size_t size, uint32_t width,
                  uint32_t height);

/* From jpeg_encode: the file cannot be made for the reason `why`, and the image does without it.
 * NULL: that was logged before. Owns the step's event. */
void step_left_out(struct visit *v, struct step *s, const char *why);

/* From scale, blur and jpeg_encode: s and all steps below it fail. Owns the step's event. */
void step_failed(struct visit *v, struct step *s, const struct problem *problem);

/* From disk_write: the original is spooled, or cannot be (problem). Sends a response that waits for
 * it. */
void image_spooled(struct visit *v, struct image *image, const struct problem *problem);

/* Fails the image; the first problem stays. The event is still the caller's. */
void image_set_problem(struct image *image, const struct problem *problem);

/* Releases the uploaded file, which is no longer needed. Harmless if called again. */
void image_source_done(struct image *image);

/* From stats, as the last call for an image. Frees what only processing needed, sends the events
 * that wait for the image, and gives back what the image holds. Owns the image's event; the image
 * itself lives as long as its upload. */
void image_end(struct visit *v, struct image *image);

#endif
