/* s3_heads.c - a table with one place for an id. */
#include "s3_heads.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct s3_heads {
	pthread_mutex_t lock;
	uint64_t count;
	struct s3_known_head *place[];
};

int s3_heads_new(struct s3_heads **out, uint64_t bytes)
{
	uint64_t count = bytes / (sizeof(struct s3_known_head) + sizeof(void *)) + 1;
	struct s3_heads *heads = calloc(1, sizeof *heads + count * sizeof(void *));

	*out = heads;
	if (!heads)
		return -ENOMEM;
	pthread_mutex_init(&heads->lock, NULL);
	heads->count = count;
	return 0;
}

void s3_heads_free(struct s3_heads *heads)
{
	for (uint64_t i = 0; heads && i < heads->count; i++)
		free(heads->place[i]);
	free(heads);
}

/* The end of an id is random. */
static struct s3_known_head **place_of(struct s3_heads *heads, const char *id)
{
	uint64_t bits;

	memcpy(&bits, id + ULID_LENGTH - sizeof bits, sizeof bits);
	return &heads->place[(bits ^ bits >> 29) * UINT64_C(0x9e3779b97f4a7c15) % heads->count];
}

static size_t size_of(const struct s3_head *head)
{
	return offsetof(struct s3_known_head, head.section) + head->count * sizeof head->section[0];
}

bool s3_heads_find(struct s3_heads *heads, struct s3_known_head *known)
{
	pthread_mutex_lock(&heads->lock);
	const struct s3_known_head *own = *place_of(heads, known->id);
	bool is_known = own && strcmp(own->id, known->id) == 0;

	if (is_known)
		memcpy(known, own, size_of(&own->head));
	pthread_mutex_unlock(&heads->lock);
	return is_known;
}

void s3_heads_keep(struct s3_heads *heads, const struct s3_known_head *known)
{
	size_t size = size_of(&known->head);
	struct s3_known_head *copy = malloc(size);

	if (!copy) /* the next one who asks reads it */
		return;
	memcpy(copy, known, size);
	pthread_mutex_lock(&heads->lock);
	struct s3_known_head **place = place_of(heads, known->id), *old = *place;

	*place = copy;
	pthread_mutex_unlock(&heads->lock);
	free(old);
}
