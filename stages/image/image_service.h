/*
 * image_service.h - what all uploads and images of one daemon share: configurations, memory, images
 * in flight, and the store.
 *
 * Members are locked inside or atomic, unless marked. Knows nothing of HTTP.
 */
#ifndef DARKROOM_IMAGE_IMAGE_SERVICE_H
#define DARKROOM_IMAGE_IMAGE_SERVICE_H

#include <stdatomic.h>
#include <stdint.h>

#include "admission/admission.h"
#include "admission/client_turns.h"
#include "conf_epoch.h"
#include "disk_job.h"
#include "inflight.h"
#include "sched/limits/budget.h"
#include "storage/storage.h"
#include "store/store.h"

struct feeder;
struct graph;
struct problem;
struct upload_keys;

struct image_service {
	struct conf_epochs epochs;
	struct store store;
	struct storage storage; /* of finished images: in `store`, or elsewhere */
	struct budget budget;
	struct inflight inflight;
	struct client_turns turns; /* at jpeg_decode */
	struct admission admission;
	struct disk_reads reads;  /* of files, by connections */
	struct upload_keys *keys; /* Idempotency-Key; borrowed, set once */
	struct feeder *recovery;  /* borrowed: it processes spooled images again; set once */
	_Atomic uint64_t client_gone, too_late; /* images and steps that were dropped */
	struct graph *graph;        /* borrowed; set once, before the graph is started */
	unsigned leftovers_cleared; /* unfinished and removed images found at startup; fixed */
};

/* Opens the store and makes the rest from the configuration. Returns 0, or -errno with the reason
 * logged. Main thread. */
int image_service_init(struct image_service *s, const struct conf *conf, const struct plan *plan);

/* No image may be in flight, and the graph must be stopped. Main thread. */
void image_service_fini(struct image_service *s);

/* Returns the jobs that may read files at once: one for each thread of disk_read, or for each
 * connection to an S3 store. */
unsigned image_service_reads_max(const struct conf *conf);

/* Sets the problem of an error that an S3 store or its spool has. Returns false if it is another
 * one. Any thread. */
bool image_service_set_problem(int err, struct problem *p);

/* Returns the current configuration, which is valid until the end of the caller's visit. */
static inline const struct conf *image_service_conf(const struct image_service *s)
{
	return &conf_epochs_now(&s->epochs)->conf;
}

#endif
