/*
 * spares.h - reusable objects that are not in use, such as decoders: a bounded stack, last in first out.
 *
 * A worker whose object has gone away with an event takes another here, and whoever is through with one gives it. What the
 * objects are, how one is made and how it is freed, their owners know.
 */
#ifndef DARKROOM_SPARES_H
#define DARKROOM_SPARES_H

#include <pthread.h>
#include <stdbool.h>

#define SPARES_MAX 64 /* as many as there can be workers, of which each may want one at a time */

struct spares {
	pthread_mutex_t lock;
	unsigned count;
	void *item[SPARES_MAX];
};

void spares_init(struct spares *s);

/* All must have been taken. */
void spares_fini(struct spares *s);

/* Any thread. One of them, the caller's from now on; NULL: there is none. */
void *spares_take(struct spares *s);

/* Any thread. False: there is no room, and the item is still the caller's, who frees it. */
bool spares_give(struct spares *s, void *item);

#endif
