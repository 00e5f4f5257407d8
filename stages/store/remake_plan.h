/*
 * remake_plan.h - which images of a store are to be remade under a configuration, for the commands
 * plan and remake. Main thread.
 */
#ifndef DARKROOM_STORE_REMAKE_PLAN_H
#define DARKROOM_STORE_REMAKE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "remake_queue.h"
#include "stored_image.h"
#include "stored_lack.h"

struct store_query;

struct remake_plan {
	struct conf conf; /* of the running daemon, or of the command's file */
	bool has_daemon;  /* a daemon serves the store */
	uint64_t
		ns_per_kilopixel; /* of an original, measured by the daemon or on another machine */
	struct remake_entry entry; /* the variants that are asked for */
	uint32_t wanted;           /* the same, one bit for each variant of conf */
	/* sums over the images */
	uint64_t missing[CONF_VARIANT_MAX], differs[CONF_VARIANT_MAX], lost[CONF_VARIANT_MAX];
	uint64_t images, remade, without_original, damaged, bytes, pixels;
	uint64_t absent; /* of --ids */
	char data[STORED_IMAGE_MAX + 1];
};

enum remake_state {
	REMAKE_COMPLETE = 1, /* it lacks nothing */
	REMAKE_POSSIBLE,
	REMAKE_IMPOSSIBLE, /* it has no original */
	REMAKE_DAMAGED,    /* its image.json is not what the daemon wrote */
	REMAKE_ABSENT      /* there is no such image */
};

/* Reads the variants from the words, and asks the daemon for its configuration. Returns 0 or the
 * exit status. */
int remake_plan_open(struct remake_plan *p, struct store_query *q);

/* Looks at an image. Sets *lack for all but the last two states. */
enum remake_state remake_plan_look(struct remake_plan *p, struct store_query *q, const char *id,
                                   struct stored_lack *lack);

/* Looks at all selected images and adds up. Returns 0 or the exit status. */
int remake_plan_sum(struct remake_plan *p, struct store_query *q);

/* Returns the estimated CPU time of the remake, in seconds. */
double remake_plan_seconds(const struct remake_plan *p);

#endif
