/*
 * spooling.h - uploads that were acknowledged before they were stored: whether the daemon takes
 * them, where they wait (store/spool.h, s3/s3_spool.h), and how much of them.
 *
 * With store.kind = s3 they may wait in files while the store is away, so their bytes are counted
 * and limited. Otherwise the disk is the limit. Calls may block, unless marked. Any thread.
 */
#ifndef DARKROOM_IMAGE_SPOOLING_H
#define DARKROOM_IMAGE_SPOOLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/spool.h"

struct conf;
struct image_service;
struct problem;
struct s3_spool;

#define SPOOLING_FULL (-EXFULL) /* store.s3_spool_bytes are used */

struct spooling {
	bool has_files, has_limit; /* fixed, as the next two */
	uint64_t max_bytes;
	struct s3_spool *s3;    /* NULL: they wait in files, or not at all */
	_Atomic uint64_t bytes; /* in use, if there is a limit */
};

/* Counts what an earlier process has left. Returns 0, or -errno with the reason logged. Main
 * thread, once the store's directories are open. */
int spooling_init(struct image_service *s, const struct conf *conf);
void spooling_fini(struct image_service *s);

/* Start and stop its thread, if it has one. Main thread. */
int spooling_start(struct image_service *s);
void spooling_stop(struct image_service *s);

/* Returns whether there may be spooled images, so that recovery has to run. Does not block. */
bool spooling_exists(const struct image_service *s);

/* Returns whether uploads may be answered 202 now. Does not block. */
bool spooling_is_on(const struct image_service *s);

/* Returns whether they may be so while the store is away. Does not block. */
bool spooling_bridges(const struct image_service *s);

/* Returns whether an acknowledged image must be spooled. Does not block. */
bool spooling_is_needed(const struct image_service *s, const struct conf *conf);

/* Returns whether there is room now; otherwise sets the problem. Does not block. */
bool spooling_takes(struct image_service *s, struct problem *p);

/* Puts items with STORE_SPOOL, as store_put(); their errors may also be SPOOLING_FULL. */
void spooling_put(struct image_service *s, struct store_item *items, unsigned count);

/* ---- of one image ---- */

/* Makes sure that this node may store the image. Returns 0, -ESTALE if another node makes it,
 * -ENOENT if a client has removed it, or -errno. */
int spooling_hold(struct image_service *s, const char *id);

/* Takes a stored image out of the spool. If a client has removed it meanwhile, removes it from the
 * store. Returns 0 or -errno: it stays in the spool. */
int spooling_end(struct image_service *s, const char *id);

/* The image is no longer in flight. Does not block. */
void spooling_release(struct image_service *s, const char *id);

/* For a client: takes it out of the spool. Returns 0, -ENOENT or -errno. */
int spooling_remove(struct image_service *s, const char *id);

/* Finds out whether it is spooled, before the store is asked for it. */
bool spooling_has_file(struct image_service *s, const char *id);

/* Returns whether it is spooled, also by another node: 1, 0 or -errno. */
int spooling_has(struct image_service *s, const char *id);

/* ---- for recovery ---- */

struct spooling_list {
	char after[ULID_LENGTH + 1]; /* "": from the beginning, and at the end */
	struct spooled *image;
	unsigned max;
};

/* Lists images that this node may make, as spool_list(). Returns their number or -errno; *has_more:
 * the next call continues. */
int spooling_list(struct image_service *s, struct spooling_list *list, bool *has_more);

/* As spool_open(), spool_set_attempts() and spool_quarantine(). -ENOENT also means that another
 * node makes the image. */
int spooling_open(struct image_service *s, const char *id, uint64_t *size,
                  struct spool_names *names);
int spooling_set_attempts(struct image_service *s, const char *id, unsigned attempts);
int spooling_quarantine(struct image_service *s, const char *id, const char *why);

/* Takes an image out of the spool that was stored before. Returns 0, -ENOENT or -errno. */
int spooling_clear(struct image_service *s, const char *id);

/* Returns the ms until the next list; -1: recovery is called when there is something to list. */
int spooling_interval_ms(struct image_service *s);

#endif
