/*
 * client_count.h - how many connections each client has, for limits.connections_per_client.
 */
#ifndef DARKROOM_HTTP_CLIENT_COUNT_H
#define DARKROOM_HTTP_CLIENT_COUNT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/key_table.h"
#include "image/inflight.h"

struct client_counts {
	pthread_mutex_t lock;
	struct key_table table;
};

void client_counts_init(struct client_counts *counts);
void client_counts_fini(struct client_counts *counts); /* all clients must be gone */

/* Counts a connection of the client, unless it would then have more than max. Returns its
 * connections, this one included, or 0 if there is no memory: then it is not counted. Counted
 * means: the result is in 1..max. Any thread. */
uint64_t client_counts_add(struct client_counts *counts, const struct client_key *client,
                           uint64_t max);

/* A counted connection has ended. Any thread. */
void client_counts_drop(struct client_counts *counts, const struct client_key *client);

/* Returns whether the client is on this machine: 127.0.0.0/8, ::1, or a Unix socket (all zeros). It
 * may be a proxy that stands for many. */
bool client_is_local(const struct client_key *client);

#endif
