/* url.h - the URL that requests go to: http://HOST[:PORT][/PATH], resolved once. */
#ifndef DARKROOM_LOADGEN_LOAD_URL_H
#define DARKROOM_LOADGEN_LOAD_URL_H

#include <stdbool.h>
#include <sys/socket.h>

#define URL_SIZE 2048 /* of a path with its zero byte */

struct url {
	char host[256]; /* without the brackets of an IPv6 address */
	char port[8];
	char authority[272]; /* for the Host field */
	char path[URL_SIZE]; /* with the query; begins with a slash */
};

struct url_address {
	struct sockaddr_storage address;
	socklen_t length;
};

/* Parses a URL; without a path it means /images. Returns false if the URL is malformed or not
 * supported. */
bool url_parse(struct url *url, const char *text);

/*
 * Returns the path that a reference in an answer means, as a part of the reference: an absolute
 * path, or the path of a URL with our authority. Returns NULL if it leads to another server or
 * cannot stand in a request line. Any thread.
 */
const char *url_path(const struct url *url, const char *reference);

/* Finds an address that accepts connections. Returns 0, or -1 after reporting why not. */
int url_resolve(const struct url *url, struct url_address *address);

bool url_address_is_loopback(const struct url_address *address);

#endif
