/* url.h - where the requests go: http://HOST[:PORT][/PATH], resolved once. */
#ifndef DARKROOM_LOADGEN_LOAD_URL_H
#define DARKROOM_LOADGEN_LOAD_URL_H

#include <stdbool.h>
#include <sys/socket.h>

#define LOAD_URL_MAX 2048

struct load_url {
	char host[256]; /* without the brackets of an IPv6 address */
	char port[8];
	char authority[272];     /* for the Host field */
	char path[LOAD_URL_MAX]; /* with the query, begins with a slash */
};

struct load_address {
	struct sockaddr_storage address;
	socklen_t length;
};

/* Without a path it means /images. False if it is no URL that we can use. */
bool load_url_parse(struct load_url *url, const char *text);

/*
 * The path that a reference in an answer means: a path of its own, or a URL with our authority.
 * NULL if it leads elsewhere or could not stand in a request line. The result is a part of the
 * reference.
 */
const char *load_url_path(const struct load_url *url, const char *reference);

/* Finds an address at which somebody listens. Returns 0, or -1 and prints why not on standard
 * error. */
int load_url_resolve(const struct load_url *url, struct load_address *address);

bool load_address_is_loopback(const struct load_address *address);

#endif
