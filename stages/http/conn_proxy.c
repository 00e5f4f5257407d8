/* conn_proxy.c - reads the header by which a trusted proxy names its client. The I/O thread. */
#include "conn_proxy.h"

#include "base/clock.h"
#include "base/network.h"
#include "conf/conf.h"
#include "conn_read.h"
#include "io_loop.h"
#include "log/log.h"
#include "proxy_header.h"

bool conn_proxy_is_expected(const struct http_server *http, const struct client_key *peer)
{
	return http_server_conf(http)->server.proxy_protocol == CONF_YES &&
	       networks_contain(&http->proxies, peer->address);
}

/* Returns how many connections the client may have; 0: no limit. */
static uint64_t connections_max(const struct http_server *http, const struct client_key *client)
{
	const struct conf *conf = http_server_conf(http);
	uint64_t max = conf->limits.connections_per_client;

	if (max != CONF_AUTO)
		return max;
	if (client_is_local(client) || networks_contain(&http->proxies, client->address))
		return 0;
	return (conf->limits.connections + 3) / 4;
}

bool conn_count_client(struct http_server *http, const struct client_key *client,
                       struct conn_count *counted)
{
	const struct conf *conf = http_server_conf(http);
	uint64_t max = connections_max(http, client);

	*counted = (struct conn_count){
		.key = client_key_of(client, (unsigned)conf->limits.client_ipv6_prefix), .max = max
	};
	if (max)
		counted->count = client_counts_add(&http->clients, &counted->key, 1, max);
	counted->is_counted = counted->count > 0 && counted->count <= max;
	return counted->count <= max;
}

static enum conn_step close_malformed(struct conn *c)
{
	static struct log_limit limit;

	log_write_limited(&limit, LOG_LEVEL_WARNING,
	                  "connection: server.proxy_protocol = yes, but a trusted proxy sent no "
	                  "header of the PROXY protocol; closing the connection");
	c->state = CONN_CLOSE;
	return CONN_STEP_AGAIN;
}

/* The header is complete, and length bytes long. */
static enum conn_step begin_requests(struct visit *v, struct conn *c, size_t length)
{
	struct conn_count counted;

	c->begin += length;
	c->at = c->begin;
	c->state = CONN_READ_HEAD;
	access_set_client(c, &c->source);
	if (!conn_count_client(c->io->http, &c->source, &counted)) {
		problem_set_limit(&c->problem, 503, "overloaded", "limits.connections_per_client",
		                  counted.max, counted.count);
		c->closes = true;
		c->state = CONN_REFUSE;
		return CONN_STEP_AGAIN;
	}
	c->is_counted = counted.is_counted;
	c->counted_as = counted.key;
	if (c->begin == c->end)
		return CONN_STEP_AGAIN;
	c->request_start_ns = clock_ns(); /* the request came with the header */
	return conn_parse(v, c);
}

enum conn_step conn_read_proxy(struct visit *v, struct conn *c)
{
	enum conn_step step;

	if (!conn_make_room(c)) {
		c->state = CONN_CLOSE;
		return CONN_STEP_AGAIN;
	}
	size_t n = conn_receive(c, c->input + c->end, c->input_size - c->end, 0, &step);

	if (n == 0)
		return step; /* the deadline of a new connection applies */
	c->end += n;
	int length = proxy_header_parse(c->input, c->end, &c->source);

	if (length < 0)
		return close_malformed(c);
	return length ? begin_requests(v, c, (size_t)length) : CONN_STEP_READ;
}
