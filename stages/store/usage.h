/*
 * usage.h - how many images and bytes a store has, in all and of each token.
 *
 * The figures are exact, once all images have been counted: each publication and each removal is
 * one step with its change of the figures, under one lock. A clean stop writes them to
 * <root>/.usage, and the next start reads and removes that file. If it is missing (after a crash,
 * or when figures are wanted for the first time) all image.json are read in the background, in the
 * order of time. Until then the figures are too small. darkroomd store remove makes
 * <root>/.recount, and the daemon then counts once more.
 *
 * Bytes are those of the files as image.json gives them, without image.json. Any thread, unless
 * marked; calls may block.
 */
#ifndef DARKROOM_STORE_USAGE_H
#define DARKROOM_STORE_USAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "store_path.h"

struct store;
struct token_quota;

#define USAGE_NAME_MAX 64     /* bytes of a token's name, with the zero */
#define USAGE_TOKENS_MAX 8192 /* names with figures; further ones count only in all */
#define USAGE_DAY_S 86400
#define USAGE_PAGE_MAX (1u << 16)

struct usage_sum {
	uint64_t images, bytes;
};

struct usage_token {
	char name[USAGE_NAME_MAX];
	struct usage_sum stored, reserved; /* reserved: of uploads in progress */
	uint64_t uploads;                  /* images uploaded on the day */
};

struct usage {
	pthread_mutex_t lock;
	/* under the lock */
	bool is_on, is_complete;
	bool is_doubtful; /* usage_check_recount() counts all images once more */
	struct usage_sum all;
	struct usage_token *token; /* sorted by name */
	unsigned count, room;
	unsigned openings;              /* of the store, when the count began */
	uint64_t day;                   /* of `uploads`, since 1970 */
	char since[ULID_LENGTH + 1];    /* of earlier ids, uploads are counted, too */
	char (*page)[ULID_LENGTH + 1];  /* ids that are being counted */
	unsigned page_count, page_at;   /* page_at: the next one */
	char page_end[ULID_LENGTH + 1]; /* ids up to it are counted, but for the rest of the page */
};

void usage_init(struct usage *u);
void usage_fini(struct usage *u);

/* ---- of store_put.c ---- */

/* Under u->lock, with the image's rename: it has become visible, or invisible. */
void usage_stored(struct usage *u, const char *id, const char *token, uint64_t bytes);
void usage_removed(struct usage *u, const char *id, const char *token, uint64_t bytes);

/* After an error that leaves it open what has changed. Any thread. */
void usage_doubt(struct usage *u);

/* ---- the count, and the file of figures; the sweep's thread or, before it runs, the main one,
 * unless marked ---- */

/* Begins to keep figures, from the file of a clean stop if that is there, or ends it. */
void usage_switch(struct usage *u, struct store *s, bool is_on);

/* Counts up to n images. Returns whether all are counted, or -errno. */
int usage_count(struct usage *u, struct store *s, unsigned n);

/* Counts all images once more if darkroomd store remove has removed some, the root was deleted and
 * made again, or the figures are in doubt. */
void usage_check_recount(struct usage *u, struct store *s);

/* Notes for a running or later daemon that another process removes images. Any thread. */
void usage_demand_recount(struct store *s);

/* Writes the figures to the file, if they are complete, and what they count is on the disk. When
 * nothing changes them any more. */
void usage_save(struct usage *u, struct store *s);

/* ---- quotas ---- */

enum usage_verdict { USAGE_GRANTED, USAGE_IMAGES, USAGE_BYTES, USAGE_UPLOADS };

/* Takes what an upload of `images` files needs of the token's quotas, or returns the one that does
 * not suffice, with what is used of it in *used. */
enum usage_verdict usage_reserve(struct usage *u, const char *token,
                                 const struct token_quota *limits, uint64_t images, uint64_t bytes,
                                 uint64_t *used);

/* Gives back what was taken of images and bytes, once the image is stored or has failed; uploads
 * only if it was not begun. */
void usage_release(struct usage *u, const char *token, uint64_t images, uint64_t bytes,
                   uint64_t uploads);

/* ---- reports ---- */

struct usage_total {
	struct usage_sum all;
	bool is_on, is_complete;
};

struct usage_total usage_total(struct usage *u);

/* Calls `each` with every token, under the lock. */
void usage_each(struct usage *u, void (*each)(const struct usage_token *token, void *arg),
                void *arg);

/* Returns the seconds until the next day (UTC), when uploads begin with 0. */
unsigned usage_day_left(void);

#endif
