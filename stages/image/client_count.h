/*
 * client_count.h - how much each client has of something: connections, or images in flight.
 */
#ifndef DARKROOM_IMAGE_CLIENT_COUNT_H
#define DARKROOM_IMAGE_CLIENT_COUNT_H

#include <pthread.h>
#include <stdint.h>

#include "client_key.h"

struct client_counts {
	pthread_mutex_t lock;
	struct key_table table;
};

void client_counts_init(struct client_counts *counts);
void client_counts_fini(struct client_counts *counts); /* all clients must be gone */

/* Counts n more, unless the client would then have more than max, which is at least 1. Returns what
 * it would have with them, or 0 if there is no memory. Counted means: the result is in 1..max. Any
 * thread. */
uint64_t client_counts_add(struct client_counts *counts, const struct client_key *client,
                           unsigned n, uint64_t max);

/* Returns how much the client has. Any thread. */
uint64_t client_counts_get(struct client_counts *counts, const struct client_key *client);

/* One that was counted has ended. Any thread. */
void client_counts_drop(struct client_counts *counts, const struct client_key *client);

#endif
