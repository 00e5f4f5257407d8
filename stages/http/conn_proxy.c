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

uint64_t conn_count_client(struct http_server *http, const struct client_key *client,
                           uint64_t *count, bool *is_counted)
{
	uint64_t max = connections_max(http, client);

	*count = max ? client_counts_add(&http->clients, client, 1, max) : 0;
	*is_counted = *count > 0 && *count <= max;
	return *count > max ? max : 0;
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
	uint64_t count, max;

	c->begin += length;
	c->at = c->begin;
	c->state = CONN_READ_HEAD;
	access_set_client(c, &c->source);
	max = conn_count_client(c->io->http, &c->source, &count, &c->is_source_counted);
	if (max) {
		problem_set_limit(&c->problem, 503, "overloaded", "limits.connections_per_client",
		                  max, count);
		c->closes = true;
		c->state = CONN_REFUSE;
		return CONN_STEP_AGAIN;
	}
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
