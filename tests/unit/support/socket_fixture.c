/* socket_fixture.c - makes bound sockets for tests. */
#include "socket_fixture.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int socket_bound_to(const char *address)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	bool is_v6 = strchr(address, ':');
	int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	int parsed = is_v6 ? inet_pton(AF_INET6, address, &v6.sin6_addr)
	                   : inet_pton(AF_INET, address, &v4.sin_addr);

	assert(parsed == 1);
	if (is_v6 ? bind(fd, (struct sockaddr *)&v6, sizeof v6)
	          : bind(fd, (struct sockaddr *)&v4, sizeof v4)) {
		close(fd);
		return -1;
	}
	return fd;
}
