/*
 * leftovers.h - unfinished images in .incoming that could not be removed, to try it again.
 *
 * Others are being written in the same directory, so it cannot be cleared while the daemon runs.
 * Locked inside. Any thread.
 */
#ifndef DARKROOM_STORE_LEFTOVERS_H
#define DARKROOM_STORE_LEFTOVERS_H

#include <pthread.h>
#include <stdbool.h>

#include "ulid.h"

#define LEFTOVERS_MAX 64

struct leftovers {
	pthread_mutex_t lock;
	unsigned count;
	char id[LEFTOVERS_MAX][ULID_LENGTH + 1];
};

#define LEFTOVERS_NONE                            \
	{                                         \
		.lock = PTHREAD_MUTEX_INITIALIZER \
	}

/* Adds an id. Returns false if there are too many: the next start removes its files. */
bool leftovers_add(struct leftovers *l, const char *id);

/* Adds the names in the directory `at`; those that are no ids are left to the next start. Only at
 * the start. */
void leftovers_add_all(struct leftovers *l, int at);

/* Takes all out. Returns their number. */
unsigned leftovers_take(struct leftovers *l, char id[LEFTOVERS_MAX][ULID_LENGTH + 1]);

/* Removes an id whose files are gone, and which may be written again. */
void leftovers_forget(struct leftovers *l, const char *id);

#endif
