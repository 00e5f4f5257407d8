/* forwarded.c - reads X-Forwarded-For from its first element to its last. Any thread. */
#include "forwarded.h"

#include <string.h>

#include "head.h"

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

struct client_key forwarded_client(const struct networks *trusted, const struct client_key *peer,
                                   struct slice fields)
{
	struct client_key client = *peer, next;
	struct slice value, element;
	bool has_one = false;

	if (!networks_contain(trusted, peer->address))
		return client;
	while (head_find(&fields, "x-forwarded-for", &value)) {
		while (field_list_next(&value, &element)) {
			element = without_port(element);
			if (!network_parse_address(element.data, element.length, next.address)) {
				client = *peer;
				has_one = false;
				continue;
			}
			/* Only proxies: the first of them asks for itself. */
			if (!has_one || !networks_contain(trusted, next.address))
				client = next;
			has_one = true;
		}
	}
	return client;
}
