/*
 * spooling.h - uploads that were acknowledged before they were stored: whether the daemon takes
 * them, where they wait (store/spool.h), and how much of them.
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

#define SPOOLING_FULL (-EXFULL) /* store.s3_spool_bytes are used */

struct spooling {
	bool is_on;             /* fixed, as max_bytes */
	uint64_t max_bytes;     /* UINT64_MAX: no limit */
	_Atomic uint64_t bytes; /* in use, if there is a limit */
};

/* Counts what an earlier process has left. Returns 0, or -errno with the reason logged. Main
 * thread, once the store's directories are open. */
int spooling_init(struct image_service *s, const struct conf *conf);

/* Returns whether uploads may be answered 202. Does not block. */
bool spooling_is_on(const struct image_service *s);

/* Returns whether an acknowledged image must be spooled. Does not block. */
bool spooling_is_needed(const struct image_service *s, const struct conf *conf);

/* Returns whether there is room now; otherwise sets the problem. Does not block. */
bool spooling_takes(struct image_service *s, struct problem *p);

/* Puts items with STORE_SPOOL, as store_put(); their errors may also be SPOOLING_FULL. */
void spooling_put(struct image_service *s, struct store_item *items, unsigned count);

/* Takes an image out of the spool. Returns 0, -ENOENT or -errno. */
int spooling_remove(struct image_service *s, const char *id);

/* Takes a stored image out of the spool. If a client has removed it meanwhile, removes it from the
 * store. Returns 0 or -errno: it stays in the spool. */
int spooling_end(struct image_service *s, const char *id);

/* As spool_quarantine(). */
int spooling_quarantine(struct image_service *s, const char *id, const char *why);

#endif
