/* http_server.c - starts the HTTP side of the daemon, and drains it. */
#include "http_server.h"

#include <unistd.h>

#include "base/clock.h"
#include "sched/graph.h"
#include "sched/scarcity.h"
#include "stage_ids.h"

int http_server_init(struct http_server *h, const struct conf *conf)
{
	client_counts_init(&h->clients);
	networks_parse(conf->server.trusted_proxies, &h->proxies); /* checked before */
	h->listeners.admin.fd = h->listeners.admin.socket.fd = h->agent.fd = -1;
	setting_queue_init(&h->settings);
	int err = stats_stream_open(&h->stream);

	return err ? err : tokens_open(&h->tokens, conf->access.tokens_file);
}

int http_server_listen(struct http_server *h, const struct conf *conf)
{
	int err = listener_set_open(&h->listeners, conf, graph_io_count(h->graph));

	if (err)
		return err;
	err = agent_open(&h->agent, conf);
	if (err)
		listener_set_close(&h->listeners);
	return err;
}

void http_server_fini(struct http_server *h)
{
	stats_stream_close(&h->stream);
	close(h->stream.wake_fd);
	agent_close(&h->agent);
	listener_set_close(&h->listeners);
	tokens_close(&h->tokens);
	client_counts_fini(&h->clients);
}

static void wake_io_threads(struct http_server *h)
{
	stage_wake_all(graph_stage(h->graph, STAGE_ACCEPT_READ));
}

void http_server_drain(struct http_server *h)
{
	/* Release: pairs with the I/O threads' acquire. */
	atomic_store_explicit(&h->is_draining, true, memory_order_release);
	wake_io_threads(h);
}

void http_server_close_admin(struct http_server *h)
{
	/* Release: pairs with the I/O threads' acquire. */
	atomic_store_explicit(&h->is_closing, true, memory_order_release);
	wake_io_threads(h);
	stats_stream_close(&h->stream);
}

int http_server_tick(struct http_server *h)
{
	const struct http_reports *reports = &h->reports;

	/* The main thread changes the configuration and the schedule, so both stay valid here. */
	return stats_stream_tick(&h->stream, clock_ns(), reports->stats, reports->arg);
}

bool http_server_is_busy(const struct http_server *h)
{
	/* Acquire, and in this order: connections accepted before a thread closed are counted. */
	if (atomic_load_explicit(&h->ios_closed, memory_order_acquire) <
	    atomic_load_explicit(&h->ios, memory_order_acquire))
		return true;
	return atomic_load(&h->connections) > 0;
}

uint64_t http_server_count_connection(struct http_server *h, int change)
{
	uint64_t count =
		atomic_fetch_add_explicit(&h->connections, (uint64_t)change, memory_order_relaxed) +
		(uint64_t)change;

	scarcity_update(h->scarcity, RESOURCE_DESCRIPTORS, count,
	                http_server_conf(h)->limits.connections);
	return count;
}

bool http_server_is_crowded(const struct http_server *h)
{
	uint64_t max = http_server_conf(h)->limits.connections;

	return atomic_load_explicit(&h->connections, memory_order_relaxed) > max - max / 16;
}

bool http_server_has_closed_admin(const struct http_server *h)
{
	/* Acquire: pairs with the I/O threads' release, after which they send no event. */
	return atomic_load_explicit(&h->ios_done, memory_order_acquire) ==
	       atomic_load_explicit(&h->ios, memory_order_acquire);
}
