/*
 * client_work.h - the admitted work of each client, and how much of it comes before a new upload.
 *
 * Clients have turns (client_turns.h), so that none is served more than another one that waits. So
 * an upload ends when its client has been served its own work, and each other client at most as
 * much (fair queueing: Demers, Keshav & Shenker 1989). The work of a client that has more than that
 * does not delay it.
 *
 * Clients are hashed to a fixed number of slots, as in client_turns.h. The caller locks.
 */
#ifndef DARKROOM_IMAGE_CLIENT_WORK_H
#define DARKROOM_IMAGE_CLIENT_WORK_H

#include <stdint.h>

#include "client_key.h"

#define CLIENT_WORK_SLOTS 1024

struct client_work {
	struct client_key_seed seed;
	uint64_t slot[CLIENT_WORK_SLOTS]; /* in the unit of overload.h */
};

void client_work_init(struct client_work *w);

/* Returns the client's slot. */
unsigned client_work_slot(const struct client_work *w, const struct client_key *client);

void client_work_add(struct client_work *w, unsigned slot, uint64_t work);

/* Work that was added has ended. */
void client_work_end(struct client_work *w, unsigned slot, uint64_t work);

/* Returns the work that is done before an upload of that work by the client of the slot ends, with
 * this upload. */
uint64_t client_work_ahead(const struct client_work *w, unsigned slot, uint64_t work);

#endif
