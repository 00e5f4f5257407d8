/* network.c - parses addresses with inet_pton(3) and compares their first bits. Any thread. */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define MAPPED_BITS 96 /* before an IPv4 address */

static const uint8_t mapped[MAPPED_BITS / 8] = { [10] = 0xff, [11] = 0xff };

void network_map_ipv4(const void *ipv4, uint8_t address[NETWORK_ADDRESS_SIZE])
{
	memcpy(address, mapped, sizeof mapped);
	memcpy(address + sizeof mapped, ipv4, NETWORK_ADDRESS_SIZE - sizeof mapped);
}

const uint8_t *network_ipv4(const uint8_t address[NETWORK_ADDRESS_SIZE])
{
	return memcmp(address, mapped, sizeof mapped) == 0 ? address + sizeof mapped : NULL;
}

bool network_parse_address(const char *text, size_t length, uint8_t address[NETWORK_ADDRESS_SIZE])
{
	char copy[INET6_ADDRSTRLEN];
	struct in_addr ipv4;

	if (length >= sizeof copy || memchr(text, '\0', length))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (inet_pton(AF_INET6, copy, address) == 1)
		return true;
	if (inet_pton(AF_INET, copy, &ipv4) != 1)
		return false;
	network_map_ipv4(&ipv4, address);
	return true;
}

/* Parses up to three digits. Returns max + 1 if they are not a number up to max. */
static unsigned parse_bits(const char *text, size_t length, unsigned max)
{
	unsigned bits = 0;

	if (length == 0 || length > 3)
		return max + 1;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return max + 1;
		bits = bits * 10 + (unsigned)(text[i] - '0');
	}
	return bits <= max ? bits : max + 1;
}

bool network_parse(const char *text, size_t length, struct network *n)
{
	const char *slash = memchr(text, '/', length);
	size_t address_length = slash ? (size_t)(slash - text) : length;
	bool is_v6 = memchr(text, ':', address_length) != NULL;
	unsigned max = is_v6 ? 128 : 128 - MAPPED_BITS, bits = max;

	if (slash)
		bits = parse_bits(slash + 1, length - address_length - 1, max);
	n->bits = bits + (is_v6 ? 0 : MAPPED_BITS);
	return bits <= max && network_parse_address(text, address_length, n->address);
}

int networks_parse(const char *list, struct networks *networks)
{
	networks->count = 0;
	while (*(list += strspn(list, " "))) {
		size_t length = strcspn(list, " ");

		if (networks->count == NETWORKS_MAX ||
		    !network_parse(list, length, &networks->network[networks->count]))
			return -EINVAL;
		networks->count++;
		list += length;
	}
	return 0;
}

bool network_contains(const struct network *n, const uint8_t address[NETWORK_ADDRESS_SIZE])
{
	unsigned whole = n->bits / 8, rest = n->bits % 8;
	unsigned mask = 0xffu << (8 - rest) & 0xffu;

	return memcmp(n->address, address, whole) == 0 &&
	       (rest == 0 || ((n->address[whole] ^ address[whole]) & mask) == 0);
}

bool networks_contain(const struct networks *networks, const uint8_t address[NETWORK_ADDRESS_SIZE])
{
	for (unsigned i = 0; i < networks->count; i++)
		if (network_contains(&networks->network[i], address))
			return true;
	return false;
}
