/* url.c - parses and resolves URLs. Main thread, except for url_path(). */
#include "url.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char scheme[] = "http://";
static const char default_path[] = "/images";

/* Copies text[0..length) if it fits and is not empty. */
static bool copy(char *to, size_t size, const char *text, size_t length)
{
	if (length == 0 || length >= size)
		return false;
	memcpy(to, text, length);
	to[length] = '\0';
	return true;
}

/* Returns true for printable ASCII without spaces, as a request line needs. */
static bool is_clean(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7F)
			return false;
	return true;
}

static bool parse_port(struct url *url, const char *text, size_t length)
{
	unsigned port = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9' || port > 65535)
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (length == 0 || port == 0 || port > 65535)
		return false;
	snprintf(url->port, sizeof url->port, "%u", port);
	return true;
}

bool url_parse(struct url *url, const char *text)
{
	const char *at = text + strlen(scheme), *end, *host_end;
	size_t path_length;

	if (strncasecmp(text, scheme, strlen(scheme)) != 0 || !is_clean(text))
		return false;
	end = at + strcspn(at, "/?#");
	if (!copy(url->authority, sizeof url->authority, at, (size_t)(end - at)) ||
	    strchr(url->authority, '@'))
		return false;
	if (*at == '[') {
		host_end = memchr(at, ']', (size_t)(end - at));
		if (!host_end ||
		    !copy(url->host, sizeof url->host, at + 1, (size_t)(host_end - at) - 1))
			return false;
		host_end++;
	} else {
		host_end = at + strcspn(at, ":/?#");
		if (!copy(url->host, sizeof url->host, at, (size_t)(host_end - at)))
			return false;
	}
	snprintf(url->port, sizeof url->port, "80");
	if (host_end < end &&
	    (*host_end != ':' || !parse_port(url, host_end + 1, (size_t)(end - host_end) - 1)))
		return false;
	path_length = strcspn(end, "#");
	if (*end == '/' && path_length > 1)
		return copy(url->path, sizeof url->path, end, path_length);
	return path_length <= 1 &&
	       copy(url->path, sizeof url->path, default_path, strlen(default_path));
}

const char *url_path(const struct url *url, const char *reference)
{
	size_t n = strlen(url->authority);

	if (strncasecmp(reference, scheme, strlen(scheme)) == 0) {
		reference += strlen(scheme);
		if (strncasecmp(reference, url->authority, n) != 0)
			return NULL;
		reference += n;
	}
	/* two slashes would start an authority */
	return reference[0] == '/' && reference[1] != '/' && is_clean(reference) ? reference : NULL;
}

/* Returns 0 if a server accepts connections there, otherwise errno. */
static int try_address(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), err = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0)
		err = errno;
	close(fd);
	return err;
}

int url_resolve(const struct url *url, struct url_address *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *list;
	int err = getaddrinfo(url->host, url->port, &hints, &list);

	if (err) {
		fprintf(stderr, "darkroom-load: %s: %s\n", url->host, gai_strerror(err));
		return -1;
	}
	err = ENOENT;
	for (const struct addrinfo *a = list; a && err; a = a->ai_next) {
		err = try_address(a);
		if (!err && a->ai_addrlen <= sizeof address->address) {
			memcpy(&address->address, a->ai_addr, a->ai_addrlen);
			address->length = a->ai_addrlen;
		}
	}
	freeaddrinfo(list);
	if (err)
		fprintf(stderr, "darkroom-load: cannot connect to %s port %s: %s\n", url->host,
		        url->port, strerror(err));
	return err ? -1 : 0;
}

bool url_address_is_loopback(const struct url_address *address)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (address->address.ss_family == AF_INET) {
		memcpy(&v4, &address->address, sizeof v4);
		return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
	}
	memcpy(&v6, &address->address, sizeof v6);
	return address->address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}
