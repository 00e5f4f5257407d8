/* forwarded.c - reads X-Forwarded-For, and both versions of the PROXY protocol. Any thread. */
#include "forwarded.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* ---- X-Forwarded-For ---- */

/* Removes brackets and a port, which some proxies add: 192.0.2.1:80, [2001:db8::1]:80. */
static struct slice without_port(struct slice element)
{
	const char *end;

	if (element.length && element.data[0] == '[') {
		end = memchr(element.data, ']', element.length);
		return end ? (struct slice){ element.data + 1, (size_t)(end - element.data) - 1 }
		           : element;
	}
	end = memchr(element.data, ':', element.length);
	if (end && !memchr(end + 1, ':', element.length - (size_t)(end - element.data) - 1))
		element.length = (size_t)(end - element.data);
	return element;
}

void forwarded_client(const struct networks *trusted, const uint8_t peer[16], struct slice fields,
                      uint8_t client[16])
{
	uint8_t next[16];
	struct slice value, element;
	bool has_one = false;

	memcpy(client, peer, 16);
	if (!networks_contain(trusted, peer))
		return;
	while (head_find(&fields, "x-forwarded-for", &value)) {
		while (field_list_next(&value, &element)) {
			element = without_port(element);
			if (!network_parse_address(element.data, element.length, next)) {
				memcpy(client, peer, 16);
				has_one = false;
				continue;
			}
			/* Only proxies: the first of them asks for itself. */
			if (!has_one || !networks_contain(trusted, next))
				memcpy(client, next, 16);
			has_one = true;
		}
	}
}

/* ---- the PROXY protocol ---- */

#define V2_HEAD 16      /* bytes before the addresses: signature, command, family, length */
#define V1_LINE_MAX 107 /* with its end: 2.1 */

enum { V2_LOCAL = 0x20, V2_PROXY = 0x21, V2_TCP4 = 0x11, V2_TCP6 = 0x21 };

static const char v2_signature[12] = { '\r', '\n', '\r', '\n', '\0', '\r',
	                               '\n', 'Q',  'U',  'I',  'T',  '\n' };
static const char v1_signature[6] = { 'P', 'R', 'O', 'X', 'Y', ' ' };

/* Compares as much as is there. */
static bool begins(const char *data, size_t length, const char *signature, size_t size)
{
	return memcmp(data, signature, length < size ? length : size) == 0;
}

/* 2.2: both addresses and ports have 12 bytes for IPv4, and 36 for IPv6. */
static int parse_v2(const char *data, size_t length, uint8_t client[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *byte = (const uint8_t *)data;

	if (length < V2_HEAD)
		return 0;
	size_t rest = (size_t)byte[14] << 8 | byte[15];
	bool is_proxied = byte[12] == V2_PROXY, is_v4 = is_proxied && byte[13] == V2_TCP4,
	     is_v6 = is_proxied && byte[13] == V2_TCP6;

	if ((!is_proxied && byte[12] != V2_LOCAL) || V2_HEAD + rest > PROXY_HEADER_MAX ||
	    (is_v4 && rest < 12) || (is_v6 && rest < 36))
		return -EINVAL;
	if (length < V2_HEAD + rest)
		return 0;
	if (is_v4) {
		memcpy(client, mapped, sizeof mapped);
		memcpy(client + sizeof mapped, byte + V2_HEAD, 4);
	} else if (is_v6) {
		memcpy(client, byte + V2_HEAD, 16);
	}
	return (int)(V2_HEAD + rest);
}

/* 2.1: "PROXY TCP4 SOURCE DESTINATION PORT PORT\r\n", or "PROXY UNKNOWN" and anything. */
static int parse_v1(const char *data, size_t length, uint8_t client[16])
{
	static const char unknown[] = "UNKNOWN";
	size_t max = length < V1_LINE_MAX ? length : V1_LINE_MAX;
	const char *end = memchr(data, '\n', max), *word = data + sizeof v1_signature;

	if (!end)
		return length < V1_LINE_MAX ? 0 : -EINVAL;
	if (end == word || end[-1] != '\r')
		return -EINVAL;
	size_t left = (size_t)(end - 1 - word);
	uint8_t found[16];

	if (left >= sizeof unknown - 1 && memcmp(word, unknown, sizeof unknown - 1) == 0)
		return (int)(end - data) + 1;
	if (left < 5 || (memcmp(word, "TCP4 ", 5) != 0 && memcmp(word, "TCP6 ", 5) != 0))
		return -EINVAL;
	const char *source = word + 5, *space = memchr(source, ' ', left - 5);

	if (!space || !network_parse_address(source, (size_t)(space - source), found))
		return -EINVAL;
	memcpy(client, found, sizeof found);
	return (int)(end - data) + 1;
}

int proxy_header_parse(const char *data, size_t length, uint8_t client[16])
{
	if (begins(data, length, v2_signature, sizeof v2_signature))
		return length < sizeof v2_signature ? 0 : parse_v2(data, length, client);
	if (begins(data, length, v1_signature, sizeof v1_signature))
		return length < sizeof v1_signature ? 0 : parse_v1(data, length, client);
	return -EINVAL;
}
