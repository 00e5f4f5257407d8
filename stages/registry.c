/* registry.c - images in the making by id, and images in flight by client. Any thread; locked inside. */
#include "registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../src/check.h"
#include "../src/mem/pool.h"
#include "image.h"

struct registry_client {
	struct client_key key;
	uint64_t in_flight;
	struct registry_client *next;
};

/* FNV-1a: ids are random at their end, addresses are few; nobody gains by collisions within the limits. */
static size_t hash(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32);
}

int registry_init(struct registry *r, size_t image_count_max)
{
	r->bucket_count = 64;
	while (r->bucket_count < image_count_max && r->bucket_count < (1u << 20))
		r->bucket_count *= 2;
	r->image_bucket = calloc(r->bucket_count, sizeof(struct image *));
	r->client_bucket = calloc(r->bucket_count, sizeof(struct registry_client *));
	if (!r->image_bucket || !r->client_bucket) {
		free(r->image_bucket);
		free(r->client_bucket);
		return -ENOMEM;
	}
	pthread_mutex_init(&r->lock, NULL);
	return 0;
}

void registry_fini(struct registry *r)
{
	for (size_t i = 0; i < r->bucket_count; i++) {
		assert(!r->image_bucket[i]);
		assert(!r->client_bucket[i]);
	}
	free(r->image_bucket);
	free(r->client_bucket);
	pthread_mutex_destroy(&r->lock);
}

/* ---- images --------------------------------------------------------------------------------------- */

static struct image **bucket_of_id(struct registry *r, const char *id)
{
	return &r->image_bucket[hash(id, ULID_LENGTH) & (r->bucket_count - 1)];
}

static struct image *find(struct registry *r, const char *id)
{
	struct image *image = *bucket_of_id(r, id);

	while (image && memcmp(image->id, id, ULID_LENGTH) != 0)
		image = image->registry_next;
	return image;
}

void registry_add(struct registry *r, struct image *image)
{
	pthread_mutex_lock(&r->lock);
	struct image **bucket = bucket_of_id(r, image->id);

	image->registry_next = *bucket;
	*bucket = image;
	pthread_mutex_unlock(&r->lock);
}

struct waiter *registry_remove(struct registry *r, struct image *image)
{
	struct image **at;

	pthread_mutex_lock(&r->lock);
	for (at = bucket_of_id(r, image->id); *at != image; at = &(*at)->registry_next)
		assert(*at);
	*at = image->registry_next;
	struct waiter *list = image->waiters;

	image->waiters = NULL;
	for (struct waiter *w = list; w; w = w->next)
		w->image = NULL;
	pthread_mutex_unlock(&r->lock);
	return list;
}

enum registry_wait_result registry_wait(struct registry *r, const char *id, struct waiter *w)
{
	pthread_mutex_lock(&r->lock);
	struct image *image = find(r, id);

	if (image) {
		w->image = image;
		w->next = image->waiters;
		image->waiters = w;
	}
	pthread_mutex_unlock(&r->lock);
	return image ? REGISTRY_WAITS : REGISTRY_UNKNOWN;
}

bool registry_cancel(struct registry *r, struct waiter *w)
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

bool registry_find(struct registry *r, const char *id, uint32_t *width, uint32_t *height)
{
	pthread_mutex_lock(&r->lock);
	struct image *image = find(r, id);

	if (image) {
		/* Relaxed: two numbers to show, each whole. */
		*width = atomic_load_explicit(&image->width, memory_order_relaxed);
		*height = atomic_load_explicit(&image->height, memory_order_relaxed);
	}
	pthread_mutex_unlock(&r->lock);
	return image != NULL;
}

/* ---- clients -------------------------------------------------------------------------------------- */

static struct registry_client **client_at(struct registry *r, const struct client_key *key)
{
	struct registry_client **at = &r->client_bucket[hash(key, sizeof *key) & (r->bucket_count - 1)];

	while (*at && memcmp(&(*at)->key, key, sizeof *key) != 0)
		at = &(*at)->next;
	return at;
}

int registry_client_take(struct registry *r, const struct client_key *key, unsigned n, uint64_t max, uint64_t *in_flight)
{
	int err = 0;

	*in_flight = 0;
	if (max == 0)
		return 0;
	pthread_mutex_lock(&r->lock);
	struct registry_client **at = client_at(r, key);

	if (*at)
		*in_flight = (*at)->in_flight;
	if (*in_flight + n > max) {
		err = -EAGAIN;
	} else if (!*at) {
		*at = pool_get(sizeof **at);
		if (*at)
			**at = (struct registry_client){ .key = *key };
		else
			err = -ENOMEM;
	}
	if (!err)
		(*at)->in_flight += n;
	pthread_mutex_unlock(&r->lock);
	return err;
}

void registry_client_give(struct registry *r, const struct client_key *key, unsigned n)
{
	pthread_mutex_lock(&r->lock);
	struct registry_client **at = client_at(r, key), *client = *at;

	assert(client && client->in_flight >= n);
	client->in_flight -= n;
	if (client->in_flight == 0) {
		*at = client->next;
		pool_put(client);
	}
	pthread_mutex_unlock(&r->lock);
}
