/* client_rate.c - the sketch of the clients' buckets. Any thread. */
#include "client_rate.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define CELL_BITS 12

static_assert(CLIENT_RATE_CELLS == 1 << CELL_BITS && CLIENT_RATE_ROWS * CELL_BITS <= 64,
              "a hash has a cell of each row");

void client_rates_init(struct client_rates *rates)
{
	memset(rates, 0, sizeof *rates);
	pthread_mutex_init(&rates->lock, NULL);
	client_key_seed(&rates->seed);
}

void client_rates_fini(struct client_rates *rates)
{
	pthread_mutex_destroy(&rates->lock);
}

static void find_cells(struct client_rates *rates, const struct client_key *client,
                       uint64_t *cell[CLIENT_RATE_ROWS])
{
	uint64_t hash = client_key_hash(client, &rates->seed);

	for (unsigned i = 0; i < CLIENT_RATE_ROWS; i++)
		cell[i] = &rates->full_ns[i][hash >> i * CELL_BITS & (CLIENT_RATE_CELLS - 1)];
}

/* Returns when the client's bucket is full. */
static uint64_t full_at(uint64_t *const cell[CLIENT_RATE_ROWS], uint64_t now_ns)
{
	uint64_t least = *cell[0];

	for (unsigned i = 1; i < CLIENT_RATE_ROWS; i++)
		least = *cell[i] < least ? *cell[i] : least;
	return least > now_ns ? least : now_ns;
}

static void raise(uint64_t *const cell[CLIENT_RATE_ROWS], uint64_t full_ns)
{
	for (unsigned i = 0; i < CLIENT_RATE_ROWS; i++)
		*cell[i] = *cell[i] > full_ns ? *cell[i] : full_ns;
}

static uint64_t image_ns(struct client_rate rate)
{
	return 1000 * NS_PER_S / rate.rate;
}

uint64_t client_rates_take(struct client_rates *rates, const struct client_key *client,
                           struct client_rate rate, uint64_t now_ns, uint64_t *used)
{
	uint64_t *cell[CLIENT_RATE_ROWS], wait_ns = 0;

	pthread_mutex_lock(&rates->lock);
	find_cells(rates, client, cell);
	uint64_t full_ns = full_at(cell, now_ns),
		 most_ns = now_ns + (rate.burst - 1) * image_ns(rate);

	if (full_ns <= most_ns)
		raise(cell, full_ns + image_ns(rate));
	else
		wait_ns = full_ns - most_ns;
	pthread_mutex_unlock(&rates->lock);
	*used = (full_ns - now_ns + image_ns(rate) - 1) / image_ns(rate);
	return wait_ns;
}

void client_rates_charge(struct client_rates *rates, const struct client_key *client,
                         struct client_rate rate, uint64_t n, uint64_t now_ns)
{
	uint64_t *cell[CLIENT_RATE_ROWS];

	pthread_mutex_lock(&rates->lock);
	find_cells(rates, client, cell);
	raise(cell, full_at(cell, now_ns) + n * image_ns(rate));
	pthread_mutex_unlock(&rates->lock);
}
