/*
 * s3_spool.h - acknowledged uploads as objects of the S3 store, which any node makes: the
 * counterpart of store/spool.h.
 *
 * Keys below store.s3_prefix:
 *   spool/<id>        the uploaded file
 *   spool/<id>.lease  which node makes the image (s3_lease.h), and the note of the upload
 * The node that puts them has the first lease. It renews its leases while it works. Another node
 * takes a lease that has ended. An image is stored only under a lease that lasts longer than the
 * requests for it, so that two nodes do not store it one after the other.
 *
 * A node has a name of its own in each process. Any thread; calls block, unless marked.
 */
#ifndef DARKROOM_S3_SPOOL_H
#define DARKROOM_S3_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "s3_store.h"
#include "store/spool.h"

/* Storing an image takes that many store.s3_timeout at most; a lease lasts ten at least. */
#define S3_SPOOL_TIMEOUTS 8

struct s3_spool;

/* Returns 0 or -errno. Main thread. */
int s3_spool_open(struct s3_spool **out, struct s3_store *s, const struct conf *conf);
void s3_spool_close(struct s3_spool *sp); /* NULL is ignored */

/* Start and stop the thread that renews leases. Main thread. */
int s3_spool_start(struct s3_spool *sp);
void s3_spool_stop(struct s3_spool *sp); /* NULL is ignored */

/* Returns whether the store has been seen to do conditional requests, without which nothing may be
 * spooled. Does not block. */
bool s3_spool_works(const struct s3_spool *sp);

/* Spools up to S3_STORE_ITEMS_MAX items, each of the original and the note, in this order. Sets the
 * error of each. */
void s3_spool_put(struct s3_spool *sp, struct store_item *items, unsigned count);

/* Lists up to max images behind *after ("": from the first one) that this node may make: it has
 * their lease, or their lease has ended. Leaves out those of which is_known() returns true. Sets
 * *after, "" at the end. Returns their number or -errno. */
int s3_spool_list(struct s3_spool *sp, struct spooled *list, unsigned max,
                  char after[ULID_LENGTH + 1], bool (*is_known)(void *arg, const char *id),
                  void *arg);

/* Takes the lease, and opens the original. Returns a descriptor, -ESTALE if another node has the
 * lease, -ENOENT if the image is not spooled or removed, -EINVAL, or -errno. */
int s3_spool_take(struct s3_spool *sp, const char *id, uint64_t *size, struct spool_names *names);

/* Writes the number of attempts. Returns 0, -ESTALE, -ENOENT or -errno. */
int s3_spool_set_attempts(struct s3_spool *sp, const char *id, unsigned attempts);

/* No node makes the image any more; its objects stay. Returns as above. */
int s3_spool_quarantine(struct s3_spool *sp, const char *id);

/* Makes sure that the lease lasts while the image is stored. Returns as above. */
int s3_spool_hold(struct s3_spool *sp, const char *id);

/* Removes the objects of a stored image. Returns 0, -ESTALE if another node does so, -ENOENT if a
 * client has removed the image meanwhile, or -errno. */
int s3_spool_end(struct s3_spool *sp, const char *id);

/* Removes the objects of an image that a client has removed, and that is not stored. Returns 0 or
 * -errno. */
int s3_spool_forget(struct s3_spool *sp, const char *id);

/* Takes the lease of an image that was stored before, and removes the objects. Returns 0, -ESTALE,
 * -ENOENT or -errno. */
int s3_spool_clear(struct s3_spool *sp, const char *id);

/* For a client: nobody makes the image any more. Returns 0, -ENOENT or -errno. */
int s3_spool_remove(struct s3_spool *sp, const char *id);

/* The node no longer works on the image: its lease is not renewed. Does not block. */
void s3_spool_release(struct s3_spool *sp, const char *id);

/* Finds out whether the image is spooled, and calls done() on the client's thread. found->fd is
 * -ENOENT, or -errno if that is not known. Does not block. */
void s3_spool_find(struct s3_spool *sp, const char *id, struct store_found *found,
                   void (*done)(void *arg), void *arg);

/* Returns whether the image is spooled, and some node will make it: 1, 0 or -errno. */
int s3_spool_has(struct s3_spool *sp, const char *id);

/* Returns the time between two lists, which is random. */
uint64_t s3_spool_interval_ms(struct s3_spool *sp);

#endif
