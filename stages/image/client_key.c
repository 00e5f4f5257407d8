/* client_key.c - compares and hashes the keys of clients. Any thread. */
#include "client_key.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/network.h"
#include "base/random.h"

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

void client_key_seed(struct client_key_seed *seed)
{
	/* Without random bytes clients may choose addresses with equal hashes. */
	if (getrandom(seed->word, sizeof seed->word, GRND_NONBLOCK) != sizeof seed->word)
		seed->word[0] = (uint64_t)(uintptr_t)seed;
}

uint64_t client_key_hash(const struct client_key *client, const struct client_key_seed *seed)
{
	uint64_t word[2];

	static_assert(sizeof word == sizeof client->address, "two words");
	memcpy(word, client->address, sizeof word);
	return random_mix(random_mix(word[0] ^ seed->word[0]) ^ word[1] ^ seed->word[1]);
}
