/* inflight.c - a hash table of images by id. Any thread. */
#include "inflight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/check.h"
#include "store/ulid.h"

/* It need not resist attacks by collisions: ids end in random bits. */
static struct inflight_image **bucket_of(struct inflight *r, const char *id)
{
	return &r->bucket[XXH3_64bits(id, ULID_LENGTH) & (r->bucket_count - 1)];
}

int inflight_init(struct inflight *r, size_t image_count_max)
{
	r->bucket_count = 64;
	while (r->bucket_count < image_count_max && r->bucket_count < (1u << 20))
		r->bucket_count *= 2;
	r->bucket = calloc(r->bucket_count, sizeof(struct inflight_image *));
	if (!r->bucket)
		return -ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	return 0;
}

void inflight_fini(struct inflight *r)
{
	for (size_t i = 0; i < r->bucket_count; i++)
		assert(!r->bucket[i]);
	free(r->bucket);
	pthread_mutex_destroy(&r->lock);
}

static struct inflight_image *find(struct inflight *r, const char *id)
{
	struct inflight_image *image = *bucket_of(r, id);

	while (image && memcmp(image->id, id, ULID_LENGTH) != 0)
		image = image->next;
	return image;
}

bool inflight_add(struct inflight *r, struct inflight_image *image)
{
	struct inflight_image **bucket = bucket_of(r, image->id);

	pthread_mutex_lock(&r->lock);
	bool is_only = !find(r, image->id);

	if (is_only) {
		image->next = *bucket;
		*bucket = image;
	}
	pthread_mutex_unlock(&r->lock);
	return is_only;
}

struct waiter *inflight_remove(struct inflight *r, struct inflight_image *image)
{
	struct inflight_image **at;

	pthread_mutex_lock(&r->lock);
	for (at = bucket_of(r, image->id); *at != image; at = &(*at)->next)
		assert(*at);
	*at = image->next;
	struct waiter *list = image->waiters;

	image->waiters = NULL;
	for (struct waiter *w = list; w; w = w->next)
		w->image = NULL;
	pthread_mutex_unlock(&r->lock);
	return list;
}

bool inflight_is_awaited(struct inflight *r, const struct inflight_image *image)
{
	pthread_mutex_lock(&r->lock);
	bool is_awaited = image->waiters;

	pthread_mutex_unlock(&r->lock);
	return is_awaited;
}

bool inflight_wait(struct inflight *r, const char *id, struct waiter *w)
{
	pthread_mutex_lock(&r->lock);
	struct inflight_image *image = find(r, id);

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

bool inflight_find(struct inflight *r, const char *id, uint32_t size[2])
{
	pthread_mutex_lock(&r->lock);
	const struct inflight_image *image = find(r, id);

	if (image && size) {
		/* Relaxed: two independent numbers for display. */
		size[0] = atomic_load_explicit(image->width, memory_order_relaxed);
		size[1] = atomic_load_explicit(image->height, memory_order_relaxed);
	}
	pthread_mutex_unlock(&r->lock);
	return image != NULL;
}
