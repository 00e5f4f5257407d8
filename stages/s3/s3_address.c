/* s3_address.c - asks the resolver. Main thread. */
#include "s3_address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/network.h"
#include "base/text.h"
#include "log/log.h"
#include "s3_transfer.h"

#define RESOLVE_MAX 1024
#define ADDRESSES_MAX 8

/* Appends an address as libcurl reads it. */
static void add_address(struct text *line, const struct addrinfo *ai, bool is_first)
{
	char host[NI_MAXHOST];

	if (getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST))
		return;
	text_printf(line, ai->ai_family == AF_INET6 ? "%s[%s]" : "%s%s", is_first ? "" : ",", host);
}

static int look_up(struct s3_target *t)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char data[RESOLVE_MAX];
	struct text line;
	int code = getaddrinfo(t->endpoint.host, NULL, &hints, &list);
	unsigned count = 0;

	if (code) {
		log_error("store.s3_endpoint: cannot look up %s: %s", t->endpoint.host,
		          gai_strerror(code));
		return -EHOSTUNREACH;
	}
	text_init(&line, data, sizeof data);
	text_printf(&line, "%s:%u:", t->endpoint.host, t->endpoint.port);
	for (const struct addrinfo *ai = list; ai && count < ADDRESSES_MAX; ai = ai->ai_next)
		add_address(&line, ai, count++ == 0);
	freeaddrinfo(list);
	t->resolve = line.overflowed ? NULL : s3_curl.slist_append(NULL, data);
	return t->resolve ? 0 : -ENOMEM;
}

int s3_address_target(struct s3_target *t, const struct conf *conf)
{
	uint8_t address[NETWORK_ADDRESS_SIZE];
	char port[8] = "";

	*t = (struct s3_target){ .timeout_ms = conf->store.s3_timeout_ms };
	if (!conf_endpoint_parse(conf->store.s3_endpoint, &t->endpoint))
		return -EINVAL;
	const char *host = t->endpoint.host;
	bool is_ipv6 = strchr(host, ':') != NULL;

	if (!t->endpoint.has_usual_port)
		snprintf(port, sizeof port, ":%u", t->endpoint.port);
	snprintf(t->host, sizeof t->host, is_ipv6 ? "[%s]%s" : "%s%s", host, port);
	snprintf(t->base, sizeof t->base, "%s://%s", t->endpoint.is_tls ? "https" : "http",
	         t->host);
	memcpy(t->bucket, conf->store.s3_bucket, sizeof t->bucket);
	memcpy(t->prefix, conf->store.s3_prefix, sizeof t->prefix);
	memcpy(t->region, conf->store.s3_region, sizeof t->region);
	memcpy(t->ca_file, conf->store.s3_ca_file, sizeof t->ca_file);
	return network_parse_address(host, strlen(host), address) ? 0 : look_up(t);
}
