/*
 * image.h - an upload, its images and their steps: the objects that events of the image stages
 * stand for.
 *
 *   upload   one POST: the body's memory, 1..n images, the response that waits for them
 *   image    one JPEG of it; its own event goes jpeg_decode -> ... -> stats, with its store job
 * before that step     one node of the plan for one image; its event goes to scale, blur or
 * jpeg_encode
 *
 * After decoding, the image's event rests while its steps run, on any cores at once. The last step
 * to end sends it on: to disk_write, or to stats if something failed. Every image ends in stats.
 */
#ifndef DARKROOM_IMAGE_IMAGE_H
#define DARKROOM_IMAGE_IMAGE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "disk_job.h"
#include "problem.h"
#include "inflight.h"
#include "plan.h"
#include "sched/budget.h"
#include "sched/event.h"
#include "store/store.h"

struct decoder;
struct encoder;
struct json;
struct picture;
struct picture_job;
struct recovery_slot;
struct server;
struct conf_epoch;
struct visit;

#define IMAGE_MAGIC UINT32_C(0x494d4147)
#define UPLOAD_MAGIC UINT32_C(0x55504c44)
#define LOOK_WIDTH 2048
#define REQUEST_ID_MAX 65    /* with the zero */
#define UPLOAD_FIELD_MAX 128 /* bytes kept of a part's name and file name, with the zero */

struct step {
	struct event event;
	struct image *image;
	unsigned index;        /* in the plan */
	struct picture *input; /* a reference, while the step is on its way or handled */
	/* while its picture or its file is made, also while it waits to go on; else NULL */
	struct picture_job *job;
	struct encoder *encoder;
};

struct image_variant {
	uint8_t *data; /* pool memory; NULL until encoded, and after it is stored */
	size_t size;
	uint32_t width, height;
};

struct image {
	struct event event; /* first: image_of() */
	uint32_t magic;
	struct server *server;
	struct upload *upload; /* holds a reference to it until stats is through */
	char id[ULID_LENGTH + 1];
	char part_name[UPLOAD_FIELD_MAX],
		file_name[UPLOAD_FIELD_MAX]; /* of the form's part; "" for a raw body */

	/* set by jpeg_decode */
	const uint8_t *source; /* slice of the upload's body; NULL once nobody needs it:
	                          image_source_done() */
	size_t source_size;
	_Atomic uint32_t width,
		height; /* after orientation; atomic for whoever asks while it is in the making */
	unsigned orientation; /* EXIF, 1..8 */
	bool is_damaged;
	bool is_spooled;    /* acknowledged, or about to be: what is spooled of it stays until it is
	                       stored */
	bool stays_spooled; /* it is stored, but could not be taken out of the spool */
	bool answers_at_end; /* it could not be spooled: the response waits for its end */
	uint8_t *icc;        /* the profile, in pool memory, or NULL */
	size_t icc_size;
	bool icc_is_of_grey; /* else of colours */
	struct budget_waiter budget_waiter;
	uint64_t reserved_bytes; /* of BUDGET_IMAGE; pays for the decoder as well */
	struct decoder *decoder; /* while it is decoded, also while it waits to go on; else NULL */
	struct disk_job store_job;

	struct problem problem; /* the first that happened; its writer is who claimed it first */
	atomic_flag problem_claimed;
	_Atomic bool has_failed; /* problem is valid */
	_Atomic unsigned steps_left;
	struct image_variant variant[CONF_VARIANT_MAX];

	struct image *inflight_next; /* under the inflight's lock */
	struct waiter *waiters;      /* under the inflight's lock */
	struct step step[];          /* plan.step_count */
};

/* With its arrays and images one piece of pool memory. */
struct upload {
	uint32_t magic;
	_Atomic unsigned refs; /* one of the response, one per image */
	struct server *server;
	struct conf_epoch
		*epoch; /* a reference: what was in force when it began holds for all of it */
	struct client_key client;
	char request_id[REQUEST_ID_MAX]; /* "": it is made again after a crash */
	struct timing timing;            /* of all images together */
	/* the body */
	uint8_t *body;              /* pool memory */
	uint64_t body_reserved;     /* of BUDGET_BODY */
	_Atomic unsigned body_refs; /* images that still need it */
	bool is_client_counted;     /* limits.images_per_client was in force when it was admitted */
	/* the response */
	bool respond_after_decode;
	struct event
		*waiter; /* the connection's event; sent to accept_read when undone reaches 0 */
	unsigned waiter_instance;
	_Atomic unsigned undone; /* images that the response still waits for */
	bool is_form;
	unsigned image_count, images_max;
	uint8_t *images; /* their memory */
	struct image **image;
	bool *decode_failed; /* per image, set before undone is decremented: what a 202 may report
	                      * while the images go on; it was not decoded, or not spooled */
	struct recovery_slot
		*recovery_slot; /* of an upload that is made again after a crash; else NULL */
	/* parts of the form that are no JPEG; set before the images start */
	unsigned bad_part_count;
	struct upload_bad_part {
		char part_name[UPLOAD_FIELD_MAX], file_name[UPLOAD_FIELD_MAX];
		struct problem problem;
		unsigned images_before; /* it stood behind so many images: errors are reported in
		                           the form's order */
	} * bad_part;
};

/* ---- upload: from form_decode and accept_read ---- */

/* Makes an upload that owns the body (pool memory, with body_reserved bytes of BUDGET_BODY);
 * refs 1. NULL: no memory, and the body is still the caller's. It has room for images_max images
 * and bad_parts_max other parts. */
struct upload *upload_new(struct server *s, uint8_t *body, uint64_t body_reserved,
                          unsigned images_max, unsigned bad_parts_max);

/* Adds an image whose source is a slice of the body; its id is new. */
struct image *upload_add_image(struct upload *u, const uint8_t *source, size_t source_size,
                               const char *part_name, size_t part_name_length,
                               const char *file_name, size_t file_name_length);

/* Adds a part that is no image; the caller fills the problem. */
struct problem *upload_add_bad_part(struct upload *u, const char *part_name,
                                    size_t part_name_length, const char *file_name,
                                    size_t file_name_length);

/*
 * Admits all images of the upload or none, then sends them to jpeg_decode. On 0 the waiter's event
 * (set aside by the caller before) is no longer the caller's: it comes to accept_read,
 * waiter_instance, when the response can be written. Else fills *problem (429, 503) and nothing was
 * started.
 */
int upload_start(struct visit *v, struct upload *u, struct event *waiter, unsigned waiter_instance,
                 struct problem *problem);

/* From recovery, on its own thread: one image, whose id is that of its first time, and whose place
 * among images_in_flight is taken already. Nobody waits for it. The caller's reference is given
 * away. */
void upload_start_again(struct upload *u);

/* Drops a reference; the last one frees the upload and its images. Any thread. */
void upload_unref(struct upload *u);

/* ---- image: from the image stages ---- */

struct image *image_of(struct event *ev); /* checks the magic */
struct step *step_of(struct event *ev);
const struct plan_step *step_plan(const struct step *s);

/* The configuration and the plan of variants that the image began with. */
const struct conf *image_conf(const struct image *image);
const struct plan *image_plan(const struct image *image);

/* The id of the request that it came with, for the log; "-" if that was before a crash. */
static inline const char *image_request(const struct image *image)
{
	return image->upload->request_id[0] ? image->upload->request_id : "-";
}

/* How many rows (of MCUs, or tiles) of that width to do between two looks at the clock: few enough
 * that the default cutoff is kept to a tenth, and enough for a look to cost nothing beside them. */
static inline unsigned look_rows(uint32_t width)
{
	return 1 + LOOK_WIDTH / width;
}

/* From jpeg_decode. The picture is owned (one reference). Lets the source go, tells a response that
 * waits for decoding, and sends the root's steps on their way. The image's event is taken care of.
 */
void image_decoded(struct visit *v, struct image *image, struct picture *root);

/* From jpeg_decode: the image ends here with its problem. */
void image_decode_failed(struct visit *v, struct image *image, const struct problem *problem);

/* From scale and blur: s is through; its children go on with the result (owned, one reference).
 * Drops s->input. */
void step_done(struct visit *v, struct step *s, struct picture *result);

/* From jpeg_encode: the variant's file is made (data is pool memory, owned). */
void step_encoded(struct visit *v, struct step *s, uint8_t *data, size_t size, uint32_t width,
                  uint32_t height);

/* From any of the three: s and all below it cannot be done. */
void step_failed(struct visit *v, struct step *s, const struct problem *problem);

/* From disk_write: the image's original is spooled, or cannot be. Tells a response that waits for
 * that. */
void image_spooled(struct visit *v, struct image *image, const struct problem *problem);

/* From disk_write: could not be stored. The event is still the caller's. */
void image_set_problem(struct image *image, const struct problem *problem);

/* The file as it was uploaded is not needed any more: lets go of it, and the last of an upload's
 * images of their body. */
void image_source_done(struct image *image);

/* From stats, as the last act on an image: frees what only processing needed, gives back its memory
 * and its place, tells whoever waits. The image's event is taken care of; the image lives on with
 * its upload. */
void image_end(struct visit *v, struct image *image);

/* Appends the members (id, url, width, height, ..., variants) to an open JSON object; is_stored:
 * with the variants and their URLs, else with "status":"processing". */
void image_json(struct json *j, const struct image *image, bool is_stored);

#endif
