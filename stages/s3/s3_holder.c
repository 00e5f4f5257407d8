/* s3_holder.c - a list of leases, changes of them, and the thread. */
#include "s3_holder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/condition.h"
#include "base/pool.h"
#include "log/log.h"
#include "s3_spool.h"

#define CHANGES_MAX 4 /* of a lease that another one changes at the same time */
#define RENEW_MAX 64  /* leases in one turn of the thread */
#define MS_PER_S 1000
#define PROBE_MS 500 /* until the store's answer */
#define NS_PER_MS_WALL 1000000

/* A lease of this node. */
struct s3_held {
	char id[ULID_LENGTH + 1];
	uint64_t expires_ms;
	struct s3_held *next;
};

uint64_t s3_holder_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * MS_PER_S + (uint64_t)t.tv_nsec / NS_PER_MS_WALL;
}

/* ---- leases of this node ---- */

/* Returns the place of the image in the list, which may be its end. Under the lock. */
static struct s3_held **find_held(struct s3_holder *h, const char *id)
{
	struct s3_held **at = &h->held;

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

/* Without memory, the lease is not renewed, and another node may make the image, too. */
void s3_holder_note(struct s3_holder *h, const char *id, uint64_t expires_ms)
{
	pthread_mutex_lock(&h->lock);
	struct s3_held **at = find_held(h, id);

	if (!*at && (*at = calloc(1, sizeof **at)))
		memcpy((*at)->id, id, ULID_LENGTH);
	if (*at)
		(*at)->expires_ms = expires_ms;
	pthread_mutex_unlock(&h->lock);
}

void s3_holder_release(struct s3_holder *h, const char *id)
{
	pthread_mutex_lock(&h->lock);
	struct s3_held **at = find_held(h, id), *found = *at;

	if (found)
		*at = found->next;
	pthread_mutex_unlock(&h->lock);
	free(found);
}

/* ---- changes of a lease ---- */

int s3_holder_check(const struct s3_holder *h, const struct s3_lease *lease, enum s3_change change)
{
	bool is_ours = strcmp(lease->node, h->node) == 0;

	if (lease->state == S3_LEASE_REMOVED)
		return -ENOENT;
	if (change == S3_REMOVE)
		return 0;
	if (lease->state == S3_LEASE_QUARANTINED)
		return -ESTALE;
	return is_ours || (change == S3_TAKE && lease->expires_ms <= s3_holder_now_ms()) ? 0
	                                                                                 : -ESTALE;
}

int s3_holder_change(struct s3_holder *h, const char *id, enum s3_change change, unsigned attempts,
                     struct s3_lease *lease)
{
	char ids[1][ULID_LENGTH + 1];
	int err = -EEXIST;

	snprintf(ids[0], sizeof ids[0], "%s", id);
	for (unsigned i = 0; i < CHANGES_MAX && err == -EEXIST; i++) {
		int read_err = 0;

		err = s3_lease_read(h->store, (const char(*)[ULID_LENGTH + 1]) ids, lease,
		                    &read_err, 1);
		if (!err)
			err = read_err;
		if (!err)
			err = s3_holder_check(h, lease, change);
		if (err)
			break;
		memcpy(lease->node, h->node, sizeof lease->node);
		lease->expires_ms = s3_holder_now_ms() + h->lease_ms;
		if (change == S3_ATTEMPTS)
			lease->note[0] = (char)('0' + (attempts < 9 ? attempts : 9));
		else if (change == S3_QUARANTINE)
			lease->state = S3_LEASE_QUARANTINED;
		else if (change == S3_REMOVE)
			lease->state = S3_LEASE_REMOVED;
		err = s3_lease_replace(h->store, id, lease);
	}
	if (!err && change == S3_TAKE)
		s3_holder_note(h, id, lease->expires_ms);
	return err == -EEXIST ? -EAGAIN : err;
}

/* Renews a lease that the thread or hold() finds too short. */
static int renew(struct s3_holder *h, const char *id)
{
	struct s3_lease lease;
	int err = s3_holder_change(h, id, S3_RENEW, 0, &lease);

	pthread_mutex_lock(&h->lock);
	struct s3_held *held = *find_held(h, id);

	if (!err && held) /* it may have been released meanwhile */
		held->expires_ms = lease.expires_ms;
	pthread_mutex_unlock(&h->lock);
	if (err == -ESTALE || err == -ENOENT)
		s3_holder_release(h, id);
	return err;
}

int s3_holder_hold(struct s3_holder *h, const char *id)
{
	pthread_mutex_lock(&h->lock);
	const struct s3_held *held = *find_held(h, id);
	bool lasts = held && held->expires_ms >= s3_holder_now_ms() + h->store_ms;

	pthread_mutex_unlock(&h->lock);
	return lasts ? 0 : renew(h, id);
}

/* ---- the thread ---- */

/* Finds out whether the store does conditional requests: the second put must be refused. Returns
 * whether it is known now. */
static bool probe(struct s3_holder *h)
{
	char key[S3_KEY_MAX], etag[S3_ETAG_MAX];

	snprintf(key, sizeof key, S3_SPOOL "probe-%s", h->node);
	int first = s3_put_if(h->store, key, "1\n", 2, "*", etag);
	int second =
		first && first != -EEXIST ? first : s3_put_if(h->store, key, "2\n", 2, "*", etag);

	if (first == 0 || first == -EEXIST)
		(void)s3_remove(h->store, key);
	if (second == -EEXIST) {
		atomic_store(&h->works, true);
		log_info("spool: node %s takes uploads into the store", h->node);
	} else if (second == 0 || second == -EOPNOTSUPP) {
		log_error("store.s3_spool = s3: the store ignores If-None-Match of a PUT; no "
		          "upload is answered 202");
	}
	return second == 0 || second == -EEXIST || second == -EOPNOTSUPP;
}

/* Copies the ids of leases whose time is half over. Returns their number. */
static unsigned list_short(struct s3_holder *h, char id[RENEW_MAX][ULID_LENGTH + 1])
{
	uint64_t now = s3_holder_now_ms();
	unsigned n = 0;

	pthread_mutex_lock(&h->lock);
	for (const struct s3_held *held = h->held; held && n < RENEW_MAX; held = held->next)
		if (held->expires_ms < now + h->lease_ms / 2)
			memcpy(id[n++], held->id, ULID_LENGTH + 1);
	pthread_mutex_unlock(&h->lock);
	return n;
}

static void *run(void *arg)
{
	struct s3_holder *h = arg;
	char id[RENEW_MAX][ULID_LENGTH + 1];
	bool is_known = false;

	do {
		if (s3_store_is_away(h->store))
			continue;
		is_known = is_known || probe(h);
		unsigned n = list_short(h, id);

		for (unsigned i = 0; i < n; i++)
			(void)renew(h, id[i]); /* otherwise again, or by another node */
	} while (!condition_pause(&h->changed, &h->lock, &h->is_stopping,
	                          is_known ? h->lease_ms / 8 : PROBE_MS));
	pool_thread_fini();
	return NULL;
}

/* ---- life ---- */

int s3_holder_init(struct s3_holder *h, struct s3_store *s, const struct conf *conf)
{
	uint64_t name;

	*h = (struct s3_holder){ .store = s,
		                 .lease_ms = conf->store.s3_lease_ms,
		                 .store_ms = S3_SPOOL_TIMEOUTS * conf->store.s3_timeout_ms };
	if (getrandom(&name, sizeof name, 0) != sizeof name)
		return -errno;
	snprintf(h->node, sizeof h->node, "%016" PRIx64, name);
	h->random = random_stream(name, 0);
	int err = condition_init(&h->changed);

	if (!err)
		pthread_mutex_init(&h->lock, NULL);
	return err;
}

int s3_holder_start(struct s3_holder *h)
{
	int err = -pthread_create(&h->thread, NULL, run, h);

	if (err)
		log_error("spool: cannot start its thread: %s", strerror(-err));
	h->is_started = !err;
	return err;
}

void s3_holder_stop(struct s3_holder *h)
{
	if (!h->is_started)
		return;
	pthread_mutex_lock(&h->lock);
	h->is_stopping = true;
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	h->is_started = false;
}

void s3_holder_fini(struct s3_holder *h)
{
	s3_holder_stop(h);
	while (h->held)
		s3_holder_release(h, h->held->id);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
}
