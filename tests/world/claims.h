/*
 * claims.h - the images and keys of a run, and what was promised of them:
 *
 *   what was acknowledged or seen, and whose removal nobody has begun, is there
 *   what a removal was answered for is not, and does not come back
 *   an image has one version, and is not made twice
 *   while a key is remembered, its uploads make one image each
 *   an image that ends has a note as long as it is there
 *
 * The bucket tells of each change. An answer is compared with what was known when its request
 * began.
 */
#ifndef DARKROOM_TESTS_WORLD_CLAIMS_H
#define DARKROOM_TESTS_WORLD_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bucket.h"
#include "store/key_record.h"
#include "store/ulid.h"

#define IMAGES_MAX 96
#define KEYS_MAX 6
#define PARTS_MAX 2
#define KEY_AGE_S 7200
#define MARK_SIZE (sizeof S3_TOMBSTONE - 1)

struct key {
	uint8_t name[KEY_RECORD_HASH_SIZE];
	unsigned parts; /* images of its upload */
};

/* An image, as the world knows it. */
struct photo {
	char id[ULID_LENGTH + 1];
	size_t max;        /* bytes of a file; content.h */
	unsigned versions; /* that somebody has tried to put */
	unsigned version;  /* that was seen; 0: none */
	uint64_t expires;  /* by the clock of its first node; 0: never */
	uint64_t ends_ns;  /* the same by the true clock */
	int spool;         /* the number of the node whose disk has the original, or -1 */
	bool is_busy;      /* it is being made from that */
	bool is_former;
	bool is_there;         /* it was acknowledged, or seen */
	unsigned removals;     /* that have begun */
	uint64_t removed_ns;   /* when one was answered; 0: none */
	bool cannot_come;      /* it was said to have failed */
	const struct key *key; /* NULL: none */
	unsigned part;
	bool is_other;                          /* the content of the upload */
	uint64_t recorded_ns, recorded_last_ns; /* when a record named it; 0: never */
	bool is_made;
};

extern struct claims {
	struct photo image[IMAGES_MAX];
	struct key key[KEYS_MAX];
	unsigned images, keys;
	uint64_t max_age_ns; /* of images; 0: any */
	uint64_t off_ns;     /* by which clocks may have been wrong */
} claims;

/* What must be there, or gone, when what begins now ends. node: the number of the one that looks at
 * its disk, too, or -1. */
struct claim {
	bool is_there, is_gone;
};
struct claim claim_begin(const struct photo *image, int node);

/* Compares what was found with it. is_spooled: the node says that it waits on its disk. */
void claim_check(struct photo *image, struct claim claim, bool is_found, bool is_spooled);

/* The image, or a part of it, was read in this version. */
void claim_version(struct photo *image, unsigned version);

/* Returns whether its time may be over. */
bool photo_may_have_ended(const struct photo *image);

/* NULL: there is none. */
struct photo *photo_find(const char *id);

/* For struct bucket. */
void claims_change(const struct object *o, bool is_removed);

#endif
