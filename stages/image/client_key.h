/*
 * client_key.h - what tells one client from another: an address, an IPv6 network, or a token.
 *
 * Any thread.
 */
#ifndef DARKROOM_IMAGE_CLIENT_KEY_H
#define DARKROOM_IMAGE_CLIENT_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/key_table.h"

/* A client's address without its port; IPv4 is mapped into IPv6. Or a token's key. */
struct client_key {
	uint8_t address[KEY_SIZE];
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

void client_key_seed(struct client_key_seed *seed);
uint64_t client_key_hash(const struct client_key *client, const struct client_key_seed *seed);

#endif
