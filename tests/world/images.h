/*
 * images.h - what clients may rely on: the states of each image, original and record of a key that
 * are allowed, and checks that they are kept. One thread.
 *
 * A check sees no fault, and takes no time.
 */
#ifndef DARKROOM_TESTS_WORLD_IMAGES_H
#define DARKROOM_TESTS_WORLD_IMAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/random.h"
#include "content.h"
#include "seeds.h"
#include "storage/storage.h"
#include "store/spool.h"

#define IMAGES_MAX 48
#define KEYS_MAX 16
#define VERSIONS_MAX 7
#define DATA_MAX 1800
#define LIST_MAX 4 /* images of a page */
#define EXPIRES_S (3 * 3600)
#define ATTEMPTS_UNKNOWN (-1)
#define GONE 1U /* of the states of an image: a bit each; bit v: version v is there */

struct image {
	char id[ULID_LENGTH + 1];
	unsigned states, spooled; /* that are allowed */
	unsigned version;         /* the newest one that was tried */
	bool is_unspooled;        /* but not flushed */
	bool is_acknowledged;     /* and not removed: it is stored or spooled */
	bool has_tags;            /* no fault has kept them from its files */
	bool is_plain;            /* its files get none */
	int attempts;             /* of its note */
	const char *token;        /* "": none */
	uint64_t expires;
};

struct key {
	struct key_record record; /* as it was written last */
	struct image *image;
	unsigned states; /* GONE, OPEN, SETTLED */
};
enum { KEY_OPEN = 2, KEY_SETTLED = 4 };

extern struct world {
	struct random random;
	unsigned steps; /* that are left */
	struct store store;
	struct storage storage; /* the same */
	struct image image[IMAGES_MAX];
	struct key key[KEYS_MAX];
	unsigned images, keys;
} world;

uint64_t draw(uint64_t below);

/* ---- contents ---- */

#define TOKENS 3

extern const char *const tokens[TOKENS];

struct version {
	struct content content;
	char memory[CONTENT_BYTES(DATA_MAX)];
};

/* The first file is the same in all versions: a remade image keeps some of its files. */
void make_content(struct version *v, const struct image *image, unsigned version);
uint64_t bytes_of(const struct image *image, unsigned version);

/* What a client sends beside the file. */
struct spool_names names_of(const struct image *image);

/* ---- checks ---- */

/* Returns the state that is the only one, or 0: there are several, or it is gone. */
unsigned certain(unsigned states);

/* Returns the version that is there as a whole, or 0: none is. */
unsigned look_at(const struct image *image);

/* Compares all. is_start: what is there has been flushed. */
void check_all(bool is_start);

/* Counts some of the images, as the sweep does. An error would leave one out of the figures. */
void count_some(void);

/* Compares the figures and the list with what is there. What could not be counted is counted again.
 */
void check_usage(void);

#endif
