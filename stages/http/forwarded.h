/*
 * forwarded.h - the client behind proxies: of a request (server.trusted_proxies), and of a
 * connection (server.proxy_protocol). Addresses have 16 bytes; IPv4 is mapped into IPv6.
 *
 * Every proxy appends the address of its own client to X-Forwarded-For. The client is the last
 * address that is not a trusted proxy's: what stands before it may be invented. The PROXY protocol
 * is in HAProxy's proxy-protocol.txt, section 2: version 2 is binary, version 1 a line of text. Any
 * thread.
 */
#ifndef DARKROOM_HTTP_FORWARDED_H
#define DARKROOM_HTTP_FORWARDED_H

#include <stddef.h>
#include <stdint.h>

#include "base/network.h"
#include "field.h"

/* ---- X-Forwarded-For ---- */

/* Finds the address of the client. fields: the request's field lines. The peer itself is the client
 * if it is not trusted, or if no field names another one. Behind an element that is not an address,
 * nothing is believed: then the client is the proxy that wrote it. */
void forwarded_client(const struct networks *trusted, const uint8_t peer[16], struct slice fields,
                      uint8_t client[16]);

/* ---- the PROXY protocol ---- */

#define PROXY_HEADER_MAX 2048 /* bytes that are accepted, with additional fields */

/*
 * Reads the header at the start of data. Returns its length, 0 if more bytes are needed, or
 * -EINVAL: it is not a header, or is longer than PROXY_HEADER_MAX. Sets *client to the source
 * address. Leaves it if the header names none: a health check of the proxy itself (LOCAL), or a
 * family that is not IP. Additional fields (TLVs) are skipped.
 */
int proxy_header_parse(const char *data, size_t length, uint8_t client[16]);

#endif
