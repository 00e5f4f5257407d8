/*
 * upload.h - one POST: the memory of its body, its images, and the response that waits for them.
 *
 * An upload is freed with its last reference: the response has one, and each image has one until
 * its image_end().
 */
#ifndef DARKROOM_IMAGE_UPLOAD_H
#define DARKROOM_IMAGE_UPLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client_count.h"
#include "focus.h"
#include "image_texts.h"
#include "overload.h"
#include "problem.h"
#include "sched/budget.h"
#include "sched/event.h"

struct conf_epoch;
struct image;
struct image_service;
struct plan;
struct recovery_slot;
struct visit;

#define REQUEST_ID_MAX 65    /* with the zero */
#define UPLOAD_FIELD_MAX 128 /* bytes kept of a part's name and file name, with the zero */
#define UPLOAD_TOKEN_MAX 64  /* bytes of a token's name, with the zero */

/* A part of the form that is not a JPEG. */
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
	struct conf_epoch
		*epoch; /* a reference: the upload keeps the configuration it began with */
	struct client_key client;
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
	bool has_quota;             /* each image gives back its part of the token's quotas */
	bool is_client_counted;     /* limits.images_per_client applied at admission */
	/* whether it is still wanted */
	uint64_t deadline_ns;            /* X-Request-Deadline; 0: none */
	const _Atomic bool *client_gone; /* the connection's; NULL: not known */
	/* of its admission */
	struct overload_ticket ticket; /* until its images begin */
	unsigned class;                /* of its client */
	unsigned level;                /* of overload.degrade, for all its images */
	uint64_t begun_ns, waited_ns;  /* when its images began; for memory before that */
	_Atomic bool is_measured;      /* its response time is known to the controller */
	/* the response */
	bool respond_after_decode;
	struct event *waiter; /* the connection's; sent to accept_read when undone reaches 0 */
	unsigned waiter_instance;
	_Atomic unsigned undone; /* images that the response still waits for */
	bool is_form;
	unsigned image_count, images_max;
	uint8_t *images; /* their memory */
	struct image **image;
	bool *decode_failed; /* per image: not decoded or not spooled; set before undone is
	                        decremented. A 202 reports only this while the images go on. */
	struct recovery_slot *recovery_slot; /* of a recovered upload; otherwise NULL */
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

/* Returns the plan of its images. */
const struct plan *upload_plan(const struct upload *u);

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
 * the waiter's event. Returns 0: the event is no longer the caller's, and is sent to accept_read,
 * waiter_instance, when the response can be written. Otherwise fills *problem (429, 503) and starts
 * nothing.
 */
int upload_start(struct visit *v, struct upload *u, struct event *waiter, unsigned waiter_instance,
                 struct problem *problem);

/* Starts an upload of one image again, which keeps its id; no response waits for it. The caller has
 * counted the image in image_service.in_flight. Returns true: the caller's reference is gone.
 * Returns false if an image with this id is in flight. Recovery's and
 * remake's threads. */
bool upload_restart(struct upload *u);

/* Returns whether an image has failed, when the response is due. With a 202 the images go on; only
 * the result of decoding is settled. Any thread. */
bool upload_has_failed(const struct upload *u, unsigned i);

/* Drops a reference; the last one frees the upload and its images. Any thread. */
void upload_unref(struct upload *u);

/* ---- from image.c ---- */

/* Counts one image less that the response waits for; the last one sends the waiter. */
void upload_image_done(struct visit *v, struct upload *u);

/* For a 202: notes whether the image failed, then the same. */
void upload_image_decoded(struct visit *v, struct upload *u, const struct image *image,
                          bool has_failed);

/* Counts one image less that needs the body; the last one frees it. Any thread. */
void upload_body_unref(struct upload *u);

#endif
