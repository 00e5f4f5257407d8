/* host.h - the syntax of HOST[:PORT] (RFC 9110 7.2, RFC 3986 3.2.2 and 3.2.3). Any thread. */
#ifndef DARKROOM_HTTP_HOST_H
#define DARKROOM_HTTP_HOST_H

#include <stdbool.h>

#include "field.h"

/* Splits off the port and checks both. The port must be below 65536 or empty. An IPv6 address is in
 * brackets, which *host keeps. Returns false if the value is not of this form; an empty value is
 * not. */
bool host_parse(struct slice value, struct slice *host);

/* Returns whether both are the same host, without regard to case. */
bool host_equals(struct slice host, struct slice other);

/* Returns whether a host is localhost, [::1] or an address 127.x.x.x. No name server answers for
 * these (RFC 6761 6.3). */
bool host_is_loopback(struct slice host);

/* Returns whether a host is an IPv4 address, or an IPv6 address in brackets. */
bool host_is_address(struct slice host);

#endif
