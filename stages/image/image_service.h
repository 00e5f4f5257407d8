/*
 * image_service.h - what all uploads and images of one daemon share: configurations, memory, images
 * in flight, the store and recovery.
 *
 * Members are locked inside or atomic, unless marked. Knows nothing of HTTP.
 */
#ifndef DARKROOM_IMAGE_IMAGE_SERVICE_H
#define DARKROOM_IMAGE_IMAGE_SERVICE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "admission.h"
#include "base/check.h"
#include "client_count.h"
#include "client_rate.h"
#include "client_turns.h"
#include "conf_epoch.h"
#include "disk_reads.h"
#include "inflight.h"
#include "missing.h"
#include "recovery.h"
#include "remake.h"
#include "sched/budget.h"
#include "spooling.h"
#include "store/store.h"
#include "sweep.h"
#include "upload_key.h"

struct graph;
struct s3_store;

struct image_service {
	struct conf_epochs epochs;
	struct store store;
	struct s3_store *s3; /* see storage.h; NULL: images are files; fixed */
	struct spooling spooling;
	struct budget budget;
	struct inflight inflight;
	struct client_counts clients; /* their images in flight */
	struct client_rates rates;
	struct client_turns turns; /* at jpeg_decode */
	struct admission admission;
	struct disk_reads reads; /* of files, by connections */
	struct upload_keys keys; /* Idempotency-Key */
	struct recovery recovery;
	struct remake remake;
	struct missing missing;
	struct sweep sweep;
	_Atomic uint64_t client_gone, too_late; /* images and steps that were dropped */
	struct graph *graph;        /* borrowed; set once, before the graph is started */
	unsigned leftovers_cleared; /* unfinished and removed images found at startup; fixed */
	alignas(CACHE_LINE) _Atomic uint64_t in_flight; /* images, for limits.images_in_flight */
};

/* Opens the store and makes the rest from the configuration. Returns 0, or -errno with the reason
 * logged. Main thread. */
int image_service_init(struct image_service *s, const struct conf *conf, const struct plan *plan);

/* No image may be in flight, and the graph must be stopped. Main thread. */
void image_service_fini(struct image_service *s);

/* Returns the current configuration, which is valid until the end of the caller's visit. */
static inline const struct conf *image_service_conf(const struct image_service *s)
{
	return conf_epochs_conf(&s->epochs);
}

#endif
