/*
 * forwarded.h - the client of a request that comes through proxies (server.trusted_proxies).
 *
 * Every proxy appends the address of its own client to X-Forwarded-For. The client is the last
 * address that is not a trusted proxy's: what stands before it may be invented. Any thread.
 */
#ifndef DARKROOM_HTTP_FORWARDED_H
#define DARKROOM_HTTP_FORWARDED_H

#include "base/network.h"
#include "field.h"
#include "image/client_count.h"

/* Returns the client. fields: the request's field lines. The peer itself is the client if it is not
 * trusted, or if no field names another one. Behind an element that is not an address, nothing is
 * believed: then the client is the proxy that wrote it. */
struct client_key forwarded_client(const struct networks *trusted, const struct client_key *peer,
                                   struct slice fields);

#endif
