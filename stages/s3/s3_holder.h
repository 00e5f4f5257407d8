/*
 * s3_holder.h - the leases of this node, and the thread that renews them. Private to s3_spool.c and
 * s3_holder.c.
 *
 * Any thread; calls block, unless marked.
 */
#ifndef DARKROOM_S3_HOLDER_H
#define DARKROOM_S3_HOLDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "s3_lease.h"

struct s3_held;

struct s3_holder {
	struct s3_store *store;
	char node[S3_NODE_MAX];
	uint64_t lease_ms, store_ms; /* store_ms: what storing an image takes at most */
	_Atomic bool works;          /* the store does conditional requests */
	bool is_started;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool is_stopping;
	struct s3_held *held;
	struct random random;
};

/* Main thread. They return 0 or -errno. */
int s3_holder_init(struct s3_holder *h, struct s3_store *s, const struct conf *conf);
void s3_holder_fini(struct s3_holder *h);
int s3_holder_start(struct s3_holder *h);
void s3_holder_stop(struct s3_holder *h);

/* Returns the ms since 1970. Does not block. */
uint64_t s3_holder_now_ms(void);

/* Notes that this node has a lease, which is then renewed; and that it no longer works on the
 * image. Do not block. */
void s3_holder_note(struct s3_holder *h, const char *id, uint64_t expires_ms);
void s3_holder_release(struct s3_holder *h, const char *id);

enum s3_change {
	S3_RENEW = 1,
	S3_TAKE,     /* also a lease of another node that has ended */
	S3_ATTEMPTS, /* of the note */
	S3_QUARANTINE,
	S3_REMOVE /* whoever has the lease */
};

/* Returns 0, -ESTALE if another node has the lease, or -ENOENT if a client has removed the image.
 * Does not block. */
int s3_holder_check(const struct s3_holder *h, const struct s3_lease *lease, enum s3_change change);

/* Changes the lease, which is then in *lease. Returns the same, or -errno. */
int s3_holder_change(struct s3_holder *h, const char *id, enum s3_change change, unsigned attempts,
                     struct s3_lease *lease);

/* Makes sure that the lease lasts for store_ms. Returns the same. */
int s3_holder_hold(struct s3_holder *h, const char *id);

#endif
