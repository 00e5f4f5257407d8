/* url.h - where the requests go: http://HOST[:PORT][/PATH], resolved once. */
#ifndef DARKROOM_LOADGEN_LOAD_URL_H
#define DARKROOM_LOADGEN_LOAD_URL_H

#include <stdbool.h>
#include <sys/socket.h>

#define URL_SIZE 2048

struct url {
	char host[256]; /* without the brackets of an IPv6 address */
	char port[8];
	char authority[272]; /* for the Host field */
	char path[URL_SIZE]; /* with the query, begins with a slash */
};

struct url_address {
	struct sockaddr_storage address;
	socklen_t length;
};

/* Without a path it means /images. False if it is no URL that we can use. */
bool url_parse(struct url *url, const char *text);

/*
 * The path that a reference in an answer means: a path of its own, or a URL with our authority.
 * NULL if it leads elsewhere or could not stand in a request line. The result is a part of the
 * reference.
 */
const char *url_path(const struct url *url, const char *reference);

/* Finds an address at which somebody listens. Returns 0, or -1 and prints why not on standard
 * error. */
int url_resolve(const struct url *url, struct url_address *address);

bool url_address_is_loopback(const struct url_address *address);

#endif
