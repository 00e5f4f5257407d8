/*
 * clients.h - what tells one client from another (an address, an IPv6 network, or a token), and
 * what each has: connections, images in flight, and a rate. Its work: shares.h.
 *
 * A client is in the table while it has connections or images. So their number bounds the table,
 * and a flood of addresses does not. Its hash chooses one of CLIENT_SLOTS slots.
 */
#ifndef DARKROOM_ADMISSION_CLIENTS_H
#define DARKROOM_ADMISSION_CLIENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CLIENT_KEY_SIZE 16

/* A client's address without its port; IPv4 is mapped into IPv6. Or a token's key. */
struct client_key {
	uint8_t address[CLIENT_KEY_SIZE];
};

/* Makes hashes that clients cannot predict. */
struct client_key_seed {
	uint64_t word[2];
};

/* Returns whether the client is on this machine: 127.0.0.0/8, ::1, or a Unix socket (all zeros). It
 * may be a proxy that stands for many. A token is not. */
bool client_is_local(const struct client_key *client);

/* Returns the client to which an address belongs: the network of its first ipv6_bits bits, because
 * a host may have all addresses of its network (RFC 6177). An IPv4 address and a local one stay
 * whole. */
struct client_key client_key_of(const struct client_key *address, unsigned ipv6_bits);

#define CLIENT_SLOTS 1024

/* What is counted. */
enum client_has { CLIENT_CONNECTIONS, CLIENT_IMAGES, CLIENT_HAS_COUNT };

/* A client, as clients_find() tells. Zeroed: the daemon itself. */
struct client {
	struct client_key key;
	uint64_t hash;
	unsigned slot; /* below CLIENT_SLOTS */
	bool is_local; /* client_is_local() */
};

struct client_entry;

struct clients {
	struct client_key_seed seed; /* fixed */
	pthread_mutex_t lock;
	struct client_entry *entry[CLIENT_SLOTS];
};

/* Main thread. */
void clients_init(struct clients *t);
void clients_fini(struct clients *t); /* all clients must be gone */

/* ---- any thread ---- */

struct client clients_find(const struct clients *t, const struct client_key *key);

/* Counts n more, unless the client would then have more than max, which is at least 1. Returns what
 * it would have with them, or 0 if there is no memory. Counted means: the result is in 1..max. */
uint64_t clients_add(struct clients *t, const struct client *client, enum client_has what,
                     unsigned n, uint64_t max);

/* Returns how much the client has. */
uint64_t clients_count(struct clients *t, const struct client *client, enum client_has what);

/* One that was counted has ended. */
void clients_drop(struct clients *t, const struct client *client, enum client_has what);

/* ---- rates ---- */

#define CLIENT_RATE_ROWS 4
#define CLIENT_RATE_CELLS 4096 /* of a row; a power of two */

/*
 * How many images each client may send: a token bucket for each (limits.client_rate and
 * client_burst).
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
struct client_rates {
	pthread_mutex_t lock;
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
uint64_t client_rates_take(struct client_rates *rates, const struct client *client,
                           struct client_rate rate, uint64_t now_ns, uint64_t *used);

/* Takes n images that are there already: the bucket may become emptier than empty. */
void client_rates_charge(struct client_rates *rates, const struct client *client,
                         struct client_rate rate, uint64_t n, uint64_t now_ns);

#endif
