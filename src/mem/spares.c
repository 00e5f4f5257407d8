/* spares.c - a stack under a lock: it is used once for every few milliseconds of work, if at all. Any thread. */
#include "spares.h"

#include "../check.h"

void spares_init(struct spares *s)
{
	*s = (struct spares){ .count = 0 };
	pthread_mutex_init(&s->lock, NULL);
}

void spares_fini(struct spares *s)
{
	assert(s->count == 0);
	pthread_mutex_destroy(&s->lock);
}

void *spares_take(struct spares *s)
{
	pthread_mutex_lock(&s->lock);
	void *item = s->count ? s->item[--s->count] : NULL;
	pthread_mutex_unlock(&s->lock);
	return item;
}

bool spares_give(struct spares *s, void *item)
{
	pthread_mutex_lock(&s->lock);
	bool has_room = s->count < SPARES_MAX;

	if (has_room)
		s->item[s->count++] = item;
	pthread_mutex_unlock(&s->lock);
	return has_room;
}
