/*
 * client_rate.h - how many images each client may send: a token bucket for each (limits.client_rate
 * and client_burst).
 *
 * The table has a fixed size, and nothing is ever removed from it: a client that sends under many
 * addresses cannot make it forget one. Each client has a cell in each of CLIENT_RATE_ROWS rows, and
 * the least used of them counts. This is the count-min sketch with conservative update (Estan &
 * Varghese 2002). A cell is never below the use of any of its clients. A client is refused for
 * others only if these use up all of its cells. For that, thousands of them must send at the limit.
 *
 * A cell is the time at which its bucket will be full again: the generic cell rate algorithm (ITU-T
 * I.371). Locked inside; any thread.
 */
#ifndef DARKROOM_IMAGE_CLIENT_RATE_H
#define DARKROOM_IMAGE_CLIENT_RATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client_key.h"

#define CLIENT_RATE_ROWS 4
#define CLIENT_RATE_CELLS 4096 /* of a row; a power of two */

struct client_rates {
	pthread_mutex_t lock;
	struct client_key_seed seed;
	uint64_t full_ns[CLIENT_RATE_ROWS][CLIENT_RATE_CELLS];
};

/* Images per second in thousandths, at least 1, and the size of the bucket, at least 1. */
struct client_rate {
	uint64_t rate, burst;
};

void client_rates_init(struct client_rates *rates);
void client_rates_fini(struct client_rates *rates);

/* Takes one image from the client's bucket. Returns 0, or after how many nanoseconds the bucket has
 * one; *used is then how many images are missing in it. */
uint64_t client_rates_take(struct client_rates *rates, const struct client_key *client,
                           struct client_rate rate, uint64_t now_ns, uint64_t *used);

/* Takes n images that are there already: the bucket may become emptier than empty. */
void client_rates_charge(struct client_rates *rates, const struct client_key *client,
                         struct client_rate rate, uint64_t n, uint64_t now_ns);

#endif
