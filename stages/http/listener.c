/* listener.c - resolves, binds and listens. Main thread. */
#include "listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/conf_places.h"
#include "log/log.h"

static void split_address(const char *listen, char host[CONF_TEXT_MAX], char port[CONF_TEXT_MAX])
{
	const char *colon = strrchr(listen, ':');
	size_t length = (size_t)(colon - listen);
	bool is_bracketed = listen[0] == '[';

	snprintf(host, CONF_TEXT_MAX, "%.*s", (int)(is_bracketed ? length - 2 : length),
	         listen + is_bracketed);
	snprintf(port, CONF_TEXT_MAX, "%s", colon + 1);
}

int listener_resolve(const char *key, const char *listen, struct sockaddr_storage *address,
                     socklen_t *length)
{
	char host[CONF_TEXT_MAX], port[CONF_TEXT_MAX];
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		                        .ai_socktype = SOCK_STREAM,
		                        .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found;

	split_address(listen, host, port);
	int failure = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);

	if (failure) {
		log_error("%s%s = %s: %s", conf_place(key), key, listen, gai_strerror(failure));
		return -EADDRNOTAVAIL;
	}
	*address = (struct sockaddr_storage){ 0 };
	memcpy(address, found->ai_addr, found->ai_addrlen);
	*length = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

int listener_open(const struct sockaddr_storage *address, socklen_t length, bool share_port)
{
	const int one = 1;
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    (share_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one)) ||
	    bind(fd, (const struct sockaddr *)address, length) || listen(fd, LISTEN_BACKLOG)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static bool address_of(int fd, struct sockaddr_storage *address)
{
	socklen_t length = sizeof *address;

	*address = (struct sockaddr_storage){ 0 };
	return getsockname(fd, (struct sockaddr *)address, &length) == 0;
}

void listener_url(int fd, char *url, size_t size)
{
	char host[64], port[8]; /* numeric: INET6_ADDRSTRLEN and a scope; five digits */
	struct sockaddr_storage address;
	bool is_known = address_of(fd, &address), is_v6 = address.ss_family == AF_INET6;

	if (is_known && address.ss_family == AF_UNIX)
		snprintf(url, size, "unix:%.*s", (int)sizeof((struct sockaddr_un){ 0 }).sun_path,
		         ((const struct sockaddr_un *)&address)->sun_path);
	else if (!is_known ||
	         getnameinfo((const struct sockaddr *)&address, sizeof address, host, sizeof host,
	                     port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(url, size, "(unknown)");
	else
		snprintf(url, size, "http://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
		         port);
}

bool listener_is_local(int fd)
{
	struct sockaddr_storage address;

	if (!address_of(fd, &address))
		return false;
	if (address.ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 ==
		       IN_LOOPBACKNET;
	if (address.ss_family != AF_INET6)
		return address.ss_family == AF_UNIX;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&address)->sin6_addr;

	return IN6_IS_ADDR_LOOPBACK(v6) ||
	       (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
}

bool listeners_are_local(const int *fd, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!listener_is_local(fd[i]))
			return false;
	return true;
}
