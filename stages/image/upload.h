/*
 * upload.h - one POST: the memory of its body, its images, and the response that waits for them.
 *
 * An upload is freed with its last reference: who has made it has one, which a connection keeps for
 * the response, and each image has one until its image_end().
 */
#ifndef DARKROOM_IMAGE_UPLOAD_H
#define DARKROOM_IMAGE_UPLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admission/admission.h"
#include "http/problem.h"
#include "plan/geometry.h"
#include "sched/core/event.h"
#include "sched/limits/budget.h"
#include "store/spool.h"

struct conf_epoch;
struct feeder_slot;
struct image;
struct image_service;
struct plan;
struct visit;

#define REQUEST_ID_MAX 65    /* with the zero */
#define UPLOAD_FIELD_MAX 128 /* bytes kept of a part's name and file name, with the zero */
#define UPLOAD_TOKEN_MAX 64  /* bytes of a token's name, with the zero */

/* A part of the form whose format is not accepted. */
struct upload_bad_part {
	char part_name[UPLOAD_FIELD_MAX], file_name[UPLOAD_FIELD_MAX];
	struct problem problem;
	unsigned images_before; /* images that precede it in the form */
};

/* With its arrays and images one piece of pool memory. */
struct upload {
	uint32_t magic;
	_Atomic unsigned refs;
	struct image_service *service;
	/* the configuration with which it began: a reference; and the plan of its images */
	struct conf_epoch *epoch;
	const struct plan *plan;
	struct admitted admitted;
	char request_id[REQUEST_ID_MAX];   /* "": the upload is recovered after a crash */
	char token_name[UPLOAD_TOKEN_MAX]; /* "": no token was needed */
	uint64_t expires;                  /* seconds since 1970; 0: never */
	char focus[FOCUS_TEXT_MAX];        /* of all images, as focus_parse() reads it; "": none */
	struct timing timing;              /* of all images together */
	struct image_texts metadata;       /* of all images */
	/* the body */
	uint8_t *body;              /* pool memory */
	struct budget_body memory;  /* the body's */
	_Atomic unsigned body_refs; /* images that still need it */
	bool has_begun;             /* the body is the images' */
	bool has_quota;             /* each image gives back its part of the token's quotas */
	/* whether it is still wanted */
	uint64_t deadline_ns;            /* X-Request-Deadline; 0: none */
	const _Atomic bool *client_gone; /* the connection's; NULL: not known */
	unsigned level;                  /* of overload.degrade, for all its images */
	/* the response */
	bool respond_after_decode;
	struct event *waiter; /* the connection's; sent to accept_read when undone reaches 0 */
	unsigned waiter_instance;
	_Atomic unsigned undone; /* images that the response still waits for */
	bool is_form;
	unsigned image_count, images_max;
	uint8_t *images; /* their memory */
	struct image **image;
	struct feeder_slot *slot; /* NULL: a client's upload */
	/* set before the images start */
	unsigned bad_part_count;
	struct upload_bad_part *bad_part;
};

/* Makes an upload with one reference, which owns the body (pool memory) and what is reserved for
 * it; *body_memory is zeroed. level: of overload.degrade; 0: all variants as configured. It has
 * room for images_max images and bad_parts_max other parts. Returns NULL if there is no memory; the
 * body is then still the caller's. */
struct upload *upload_new(struct image_service *s, unsigned level, uint8_t *body,
                          struct budget_body *body_memory, unsigned images_max,
                          unsigned bad_parts_max);

/* Adds an image with a new id; its source is a slice of the body. */
struct image *upload_add_image(struct upload *u, const uint8_t *source, size_t source_size,
                               const char *part_name, size_t part_name_length,
                               const char *file_name, size_t file_name_length);

/* Adds a part that is not an image. The caller fills the returned problem. */
struct problem *upload_add_bad_part(struct upload *u, const char *part_name,
                                    size_t part_name_length, const char *file_name,
                                    size_t file_name_length);

/*
 * Admits all images of the upload or none, then sends them to jpeg_decode. The caller has parked
 * the waiter's event. Returns 0: the event is no longer the caller's, and is sent to its instance
 * of accept_read when the response can be written. Otherwise fills *problem (429, 503) and starts
 * nothing.
 */
int upload_start(struct visit *v, struct upload *u, struct admission_waiter *waiter,
                 struct problem *problem);

/* Starts an upload of one image of the daemon's own, which keeps its id; no response waits for it.
 * The caller has taken a place for it (admission.h). Returns true: the caller's reference is gone.
 * Returns false if an image with this id is in flight. A feeder's thread. */
bool upload_restart(struct upload *u);

/* Returns whether an image has failed, when the response is due. With a 202 the images go on; only
 * the result of decoding is settled. Any thread. */
bool upload_has_failed(const struct upload *u, unsigned i);

/* Drops the reference of who has made the upload, with the body if no image has begun. The last
 * reference frees the upload and its images. */
void upload_drop(struct upload *u);

/* ---- from image.c ---- */

/* Counts one image less that the response waits for; the last one sends the waiter. */
void upload_image_done(struct visit *v, struct upload *u);

/* Drops the reference of an image. Any thread. */
void upload_unref(struct upload *u);

/* Counts one image less that needs the body; the last one frees it. Any thread. */
void upload_body_unref(struct upload *u);

#endif
