/*
 * clients.c - keys of clients, their table, and the sketch of their rates. Any thread.
 */
#include "clients.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/network.h"
#include "base/pool.h"
#include "base/random.h"

#define CELL_BITS 12

static_assert(CLIENT_RATE_CELLS == 1 << CELL_BITS && CLIENT_RATE_ROWS * CELL_BITS <= 64,
              "a hash has a cell of each row");

struct client_entry {
	struct client_entry *next; /* in its slot */
	struct client_key key;
	uint64_t count[CLIENT_HAS_COUNT];
};

/* ---- keys ---- */

bool client_is_local(const struct client_key *client)
{
	const uint8_t *ipv4 = network_ipv4(client->address);
	static const uint8_t zeros[15];

	return (ipv4 && ipv4[0] == IN_LOOPBACKNET) ||
	       (memcmp(client->address, zeros, sizeof zeros) == 0 && client->address[15] <= 1);
}

struct client_key client_key_of(const struct client_key *address, unsigned ipv6_bits)
{
	struct client_key key = *address;
	unsigned whole = ipv6_bits / 8;

	if (whole >= sizeof key.address || client_is_local(address) ||
	    network_ipv4(address->address))
		return key;
	key.address[whole] &= (uint8_t)(0xff00u >> ipv6_bits % 8);
	memset(key.address + whole + 1, 0, sizeof key.address - whole - 1);
	return key;
}

static uint64_t hash_of(const struct client_key *client, const struct client_key_seed *seed)
{
	uint64_t word[2];

	static_assert(sizeof word == sizeof client->address, "two words");
	memcpy(word, client->address, sizeof word);
	return random_mix(random_mix(word[0] ^ seed->word[0]) ^ word[1] ^ seed->word[1]);
}

/* ---- the table ---- */

void clients_init(struct clients *t)
{
	memset(t, 0, sizeof *t);
	/* Without random bytes clients may choose addresses with equal hashes. */
	if (getrandom(t->seed.word, sizeof t->seed.word, GRND_NONBLOCK) != sizeof t->seed.word)
		t->seed.word[0] = (uint64_t)(uintptr_t)&t->seed;
	pthread_mutex_init(&t->lock, NULL);
}

void clients_fini(struct clients *t)
{
	for (unsigned i = 0; i < CLIENT_SLOTS; i++)
		assert(!t->entry[i]);
	pthread_mutex_destroy(&t->lock);
}

struct client clients_find(const struct clients *t, const struct client_key *key)
{
	uint64_t hash = hash_of(key, &t->seed);

	return (struct client){
		.key = *key,
		.hash = hash,
		.slot = (unsigned)(hash % CLIENT_SLOTS),
		.is_local = client_is_local(key),
	};
}

/* Returns where the client's entry is, or would be. Under the lock. */
static struct client_entry **entry_of(struct clients *t, const struct client *client)
{
	struct client_entry **at = &t->entry[client->slot];

	while (*at && memcmp(&(*at)->key, &client->key, sizeof client->key) != 0)
		at = &(*at)->next;
	return at;
}

uint64_t clients_add(struct clients *t, const struct client *client, enum client_has what,
                     unsigned n, uint64_t max)
{
	pthread_mutex_lock(&t->lock);
	struct client_entry **at = entry_of(t, client);
	uint64_t sum = (*at ? (*at)->count[what] : 0) + n;

	if (sum <= max && !*at && (*at = pool_get(sizeof(struct client_entry))))
		**at = (struct client_entry){ .key = client->key };
	if (sum <= max && *at)
		(*at)->count[what] = sum;
	else if (sum <= max)
		sum = 0;
	pthread_mutex_unlock(&t->lock);
	return sum;
}

uint64_t clients_count(struct clients *t, const struct client *client, enum client_has what)
{
	pthread_mutex_lock(&t->lock);
	const struct client_entry *entry = *entry_of(t, client);
	uint64_t count = entry ? entry->count[what] : 0;

	pthread_mutex_unlock(&t->lock);
	return count;
}

void clients_drop(struct clients *t, const struct client *client, enum client_has what)
{
	pthread_mutex_lock(&t->lock);
	struct client_entry **at = entry_of(t, client), *entry = *at;
	uint64_t left = 0;

	assert(entry && entry->count[what] > 0);
	entry->count[what]--;
	for (unsigned i = 0; i < CLIENT_HAS_COUNT; i++)
		left += entry->count[i];
	if (left == 0) {
		*at = entry->next;
		pool_put(entry);
	}
	pthread_mutex_unlock(&t->lock);
}

/* ---- rates ---- */

void client_rates_init(struct client_rates *rates)
{
	memset(rates, 0, sizeof *rates);
	pthread_mutex_init(&rates->lock, NULL);
}

void client_rates_fini(struct client_rates *rates)
{
	pthread_mutex_destroy(&rates->lock);
}

static void find_cells(struct client_rates *rates, const struct client *client,
                       uint64_t *cell[CLIENT_RATE_ROWS])
{
	for (unsigned i = 0; i < CLIENT_RATE_ROWS; i++)
		cell[i] =
			&rates->full_ns[i][client->hash >> i * CELL_BITS & (CLIENT_RATE_CELLS - 1)];
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

uint64_t client_rates_take(struct client_rates *rates, const struct client *client,
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

void client_rates_charge(struct client_rates *rates, const struct client *client,
                         struct client_rate rate, uint64_t n, uint64_t now_ns)
{
	uint64_t *cell[CLIENT_RATE_ROWS];

	pthread_mutex_lock(&rates->lock);
	find_cells(rates, client, cell);
	raise(cell, full_at(cell, now_ns) + n * image_ns(rate));
	pthread_mutex_unlock(&rates->lock);
}
