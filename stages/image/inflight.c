/* inflight.c - two hash tables under one lock: images by id, clients by address. Any thread. */
#include "inflight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "image.h"
#include "store/ulid.h"

struct inflight_client {
	struct client_key key;
	uint64_t in_flight;
	struct inflight_client *next;
};

/* FNV-1a. It need not resist attacks by collisions: ids end in random bits, and only clients with
 * images in flight have an entry. */
static size_t hash(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32);
}

int inflight_init(struct inflight *r, size_t image_count_max)
{
	r->bucket_count = 64;
	while (r->bucket_count < image_count_max && r->bucket_count < (1u << 20))
		r->bucket_count *= 2;
	r->image_bucket = calloc(r->bucket_count, sizeof(struct image *));
	r->client_bucket = calloc(r->bucket_count, sizeof(struct inflight_client *));
	if (!r->image_bucket || !r->client_bucket) {
		free(r->image_bucket);
		free(r->client_bucket);
		return -ENOMEM;
	}
	pthread_mutex_init(&r->lock, NULL);
	return 0;
}

void inflight_fini(struct inflight *r)
{
	for (size_t i = 0; i < r->bucket_count; i++) {
		assert(!r->image_bucket[i]);
		assert(!r->client_bucket[i]);
	}
	free(r->image_bucket);
	free(r->client_bucket);
	pthread_mutex_destroy(&r->lock);
}

/* ---- images ---- */

static struct image **bucket_of_id(struct inflight *r, const char *id)
{
	return &r->image_bucket[hash(id, ULID_LENGTH) & (r->bucket_count - 1)];
}

static struct image *find(struct inflight *r, const char *id)
{
	struct image *image = *bucket_of_id(r, id);

	while (image && memcmp(image->id, id, ULID_LENGTH) != 0)
		image = image->inflight_next;
	return image;
}

void inflight_add(struct inflight *r, struct image *image)
{
	pthread_mutex_lock(&r->lock);
	struct image **bucket = bucket_of_id(r, image->id);

	image->inflight_next = *bucket;
	*bucket = image;
	pthread_mutex_unlock(&r->lock);
}

struct waiter *inflight_remove(struct inflight *r, struct image *image)
{
	struct image **at;

	pthread_mutex_lock(&r->lock);
	for (at = bucket_of_id(r, image->id); *at != image; at = &(*at)->inflight_next)
		assert(*at);
	*at = image->inflight_next;
	struct waiter *list = image->waiters;

	image->waiters = NULL;
	for (struct waiter *w = list; w; w = w->next)
		w->image = NULL;
	pthread_mutex_unlock(&r->lock);
	return list;
}

bool inflight_wait(struct inflight *r, const char *id, struct waiter *w)
{
	pthread_mutex_lock(&r->lock);
	struct image *image = find(r, id);

	if (image) {
		w->image = image;
		w->next = image->waiters;
		image->waiters = w;
	}
	pthread_mutex_unlock(&r->lock);
	return image != NULL;
}

bool inflight_cancel(struct inflight *r, struct waiter *w)
{
	struct waiter **at;

	pthread_mutex_lock(&r->lock);
	bool was_waiting = w->image != NULL;

	if (was_waiting) {
		for (at = &w->image->waiters; *at != w; at = &(*at)->next)
			assert(*at);
		*at = w->next;
		w->image = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	return was_waiting;
}

bool inflight_find(struct inflight *r, const char *id, uint32_t *width, uint32_t *height)
{
	pthread_mutex_lock(&r->lock);
	struct image *image = find(r, id);

	if (image) {
		/* Relaxed: two independent numbers for display. */
		*width = atomic_load_explicit(&image->width, memory_order_relaxed);
		*height = atomic_load_explicit(&image->height, memory_order_relaxed);
	}
	pthread_mutex_unlock(&r->lock);
	return image != NULL;
}

/* ---- clients ---- */

static struct inflight_client **client_at(struct inflight *r, const struct client_key *key)
{
	struct inflight_client **at =
		&r->client_bucket[hash(key, sizeof *key) & (r->bucket_count - 1)];

	while (*at && memcmp(&(*at)->key, key, sizeof *key) != 0)
		at = &(*at)->next;
	return at;
}

int inflight_client_reserve(struct inflight *r, const struct client_key *key, unsigned n,
                            uint64_t max, uint64_t *in_flight)
{
	int err = 0;

	*in_flight = 0;
	if (max == 0)
		return 0;
	pthread_mutex_lock(&r->lock);
	struct inflight_client **at = client_at(r, key);

	if (*at)
		*in_flight = (*at)->in_flight;
	if (*in_flight + n > max) {
		err = -EAGAIN;
	} else if (!*at) {
		*at = pool_get(sizeof **at);
		if (*at)
			**at = (struct inflight_client){ .key = *key };
		else
			err = -ENOMEM;
	}
	if (!err)
		(*at)->in_flight += n;
	pthread_mutex_unlock(&r->lock);
	return err;
}

void inflight_client_release(struct inflight *r, const struct client_key *key, unsigned n)
{
	pthread_mutex_lock(&r->lock);
	struct inflight_client **at = client_at(r, key), *client = *at;

	assert(client && client->in_flight >= n);
	client->in_flight -= n;
	if (client->in_flight == 0) {
		*at = client->next;
		pool_put(client);
	}
	pthread_mutex_unlock(&r->lock);
}
