/*
 * proxy_header.h - the PROXY protocol, by which a proxy names the client of a connection.
 *
 * HAProxy's proxy-protocol.txt, section 2: version 2 is binary, version 1 a line of text. Knows no
 * connection. Any thread.
 */
#ifndef DARKROOM_HTTP_PROXY_HEADER_H
#define DARKROOM_HTTP_PROXY_HEADER_H

#include <stddef.h>

#include "image/client_count.h"

#define PROXY_HEADER_MAX 2048 /* bytes that are accepted, with additional fields */

/*
 * Reads the header at the start of data. Returns its length, 0 if more bytes are needed, or
 * -EINVAL: it is not a header, or is longer than PROXY_HEADER_MAX. Sets *client to the source
 * address. Leaves it if the header names none: a health check of the proxy itself (LOCAL), or a
 * family that is not IP. Additional fields (TLVs) are skipped.
 */
int proxy_header_parse(const char *data, size_t length, struct client_key *client);

#endif
