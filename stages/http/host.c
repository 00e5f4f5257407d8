/* host.c - checks hosts and ports character by character. Any thread. */
#include "host.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define PORT_MAX 65535

static bool is_port(struct slice s)
{
	uint64_t port;

	return s.length == 0 || (field_number(s, &port) && port <= PORT_MAX);
}

/* Returns whether s is a registered name or an IPv4 address: unreserved characters, sub-delims and
 * %XX. */
static bool is_name(struct slice s)
{
	for (size_t i = 0; i < s.length; i++) {
		unsigned char c = (unsigned char)s.data[i];

		if (c == '%' && (s.length - i < 3 || !isxdigit((unsigned char)s.data[i + 1]) ||
		                 !isxdigit((unsigned char)s.data[i + 2])))
			return false;
		if (!isalnum(c) && (c == '\0' || !strchr("-._~%!$&'()*+,;=", c)))
			return false;
	}
	return s.length > 0;
}

/* Copies an address to a terminated text and parses it. */
static bool is_address(int family, struct slice s, unsigned char address[16])
{
	char text[INET6_ADDRSTRLEN];

	if (s.length >= sizeof text)
		return false;
	memcpy(text, s.data, s.length);
	text[s.length] = '\0';
	return inet_pton(family, text, address) == 1;
}

/* Returns whether s is what may stand in brackets: an IPv6 address, or a form that is not defined
 * yet, such as v1.x (IPvFuture). */
static bool is_literal(struct slice s)
{
	unsigned char address[16];

	if (s.length > 2 && (s.data[0] | 0x20) == 'v') {
		for (size_t i = 1; i < s.length; i++)
			if (!strchr("-._~!$&'()*+,;=:", s.data[i]) &&
			    !isalnum((unsigned char)s.data[i]))
				return false;
		return memchr(s.data, '.', s.length) && !memchr(s.data, '\0', s.length);
	}
	return is_address(AF_INET6, s, address);
}

bool host_parse(struct slice value, struct slice *host)
{
	bool is_bracketed = value.length > 0 && value.data[0] == '[';
	const char *end =
		value.length ? memchr(value.data, is_bracketed ? ']' : ':', value.length) : NULL;
	size_t length = end ? (size_t)(end - value.data) + is_bracketed : value.length;
	struct slice port = { value.data + length, value.length - length };

	*host = (struct slice){ value.data, length };
	if (is_bracketed && !end)
		return false;
	if (port.length > 0) {
		if (port.data[0] != ':')
			return false;
		port.data++;
		port.length--;
	}
	return is_port(port) &&
	       (is_bracketed ? is_literal((struct slice){ host->data + 1, length - 2 })
	                     : is_name(*host));
}

bool host_equals(struct slice host, struct slice other)
{
	return host.length == other.length && strncasecmp(host.data, other.data, host.length) == 0;
}

/* Returns the family of a host that is an address, in brackets if it is AF_INET6; otherwise 0. */
static int parse_host(struct slice host, unsigned char address[16])
{
	if (host.length > 2 && host.data[0] == '[')
		return is_address(AF_INET6, (struct slice){ host.data + 1, host.length - 2 },
		                  address)
		               ? AF_INET6
		               : 0;
	return is_address(AF_INET, host, address) ? AF_INET : 0;
}

bool host_is_loopback(struct slice host)
{
	static const unsigned char loopback[16] = { [15] = 1 };
	unsigned char address[16];
	int family = parse_host(host, address);

	if (family == AF_INET6)
		return memcmp(address, loopback, sizeof address) == 0;
	return family == AF_INET ? address[0] == 127 : slice_is(host, "localhost");
}

bool host_is_address(struct slice host)
{
	unsigned char address[16];

	return parse_host(host, address) != 0;
}
