/* s3_address.c - getaddrinfo(3) in a process of its own. */
#include "s3_address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/opener.h"
#include "base/text.h"
#include "conf/conf_endpoint.h"
#include "log/log.h"

#define ADDRESSES_MAX 8

/* Writes the line; "" if it fails. Returns 0 or as getaddrinfo(3). */
static int look_up(const struct s3_address *a, char line[S3_ADDRESS_MAX])
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char host[NI_MAXHOST];
	struct text t;
	unsigned n = 0;
	int code = getaddrinfo(a->endpoint->host, NULL, &hints, &list);

	line[0] = '\0';
	if (code)
		return code;
	text_init(&t, line, S3_ADDRESS_MAX);
	text_printf(&t, "%s:%u:", a->endpoint->host, a->endpoint->port);
	for (const struct addrinfo *ai = list; ai && n < ADDRESSES_MAX; ai = ai->ai_next)
		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof host, NULL, 0,
		                NI_NUMERICHOST) == 0)
			text_printf(&t, ai->ai_family == AF_INET6 ? "%s[%s]" : "%s%s",
			            n++ ? "," : "", host);
	freeaddrinfo(list);
	if (n > 0 && !t.overflowed)
		return 0;
	line[0] = '\0';
	return EAI_NONAME;
}

static void serve(void *arg)
{
	char ask, line[S3_ADDRESS_MAX];
	ssize_t n = 1;

	while (n > 0 && recv(0, &ask, 1, 0) == 1) {
		(void)look_up(arg, line);
		n = send(0, line, strlen(line) + 1, MSG_NOSIGNAL);
	}
}

int s3_address_open(struct s3_address *a, const struct conf_endpoint *endpoint)
{
	a->endpoint = endpoint;
	int code = look_up(a, a->line);

	if (code) {
		log_error("store.s3_endpoint: cannot look up %s: %s", endpoint->host,
		          gai_strerror(code));
		return -EHOSTUNREACH;
	}
	a->fd = opener_fork("darkroomd-dns", serve, a);
	return a->fd < 0 ? a->fd : 0;
}

void s3_address_ask(struct s3_address *a)
{
	if (a->fd >= 0 && !a->is_asked)
		a->is_asked = send(a->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool s3_address_take(struct s3_address *a)
{
	char line[S3_ADDRESS_MAX];
	ssize_t n = a->is_asked ? recv(a->fd, line, sizeof line, MSG_DONTWAIT) : 0;

	if (n <= 0)
		return false;
	a->is_asked = false;
	if (!line[0] || strcmp(line, a->line) == 0)
		return false;
	memcpy(a->line, line, (size_t)n);
	return true;
}
