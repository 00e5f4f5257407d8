/*
 * network.h - IP addresses and networks. IPv4 addresses are mapped into IPv6 (RFC 4291 2.5.5.2).
 *
 * Any thread.
 */
#ifndef DARKROOM_BASE_NETWORK_H
#define DARKROOM_BASE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETWORK_ADDRESS_SIZE 16
#define NETWORKS_MAX 32

struct network {
	uint8_t address[NETWORK_ADDRESS_SIZE];
	unsigned bits; /* of the address that count, 0..128 */
};

struct networks {
	struct network network[NETWORKS_MAX];
	unsigned count;
};

/* Maps an IPv4 address, in network byte order, into IPv6. */
void network_map_ipv4(const void *ipv4, uint8_t address[NETWORK_ADDRESS_SIZE]);

/* Returns the four bytes of the IPv4 address that is mapped; NULL: the address is not mapped. */
const uint8_t *network_ipv4(const uint8_t address[NETWORK_ADDRESS_SIZE]);

/* Parses an IPv4 or IPv6 address without brackets. Returns whether it is one. */
bool network_parse_address(const char *text, size_t length, uint8_t address[NETWORK_ADDRESS_SIZE]);

/* Parses an address or a network (ADDRESS/BITS). Returns whether it is one. */
bool network_parse(const char *text, size_t length, struct network *n);

bool network_contains(const struct network *n, const uint8_t address[NETWORK_ADDRESS_SIZE]);

/* Parses addresses and networks (ADDRESS/BITS), separated by spaces. Returns 0, or -EINVAL: one is
 * not a network, or there are more than NETWORKS_MAX. */
int networks_parse(const char *list, struct networks *networks);

bool networks_contain(const struct networks *networks, const uint8_t address[NETWORK_ADDRESS_SIZE]);

#endif
