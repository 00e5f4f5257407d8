/* http_server.c - starts the HTTP side of the daemon, drains it, and adds up its counters. */
#include "http_server.h"

#include "sched/core/graph.h"
#include "sched/core/resources.h"
#include "stage_ids.h"
#include "telemetry/counter.h"

/* ---- counters ---- */

/* Relaxed: a thread that starts now has counted nothing. */
static unsigned ios(const struct http_server *h)
{
	return atomic_load_explicit(&h->ios, memory_order_relaxed);
}

uint64_t io_counter_total(const struct http_server *h, size_t offset)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < ios(h); i++)
		total += counter_read((const void *)((const char *)&h->io_counters[i] + offset));
	return total;
}

void io_durations_collect(struct histogram_sum *sum, const struct http_server *h,
                          enum route_class class)
{
	*sum = (struct histogram_sum){ 0 };
	for (unsigned i = 0; i < ios(h); i++)
		histogram_collect(sum, &h->io_counters[i].durations[class]);
}

void io_counters_add_request(struct io_counters *c, enum route_class class, unsigned status,
                             uint64_t ns)
{
	assert(status >= 200 && status < 600);
	histogram_add(&c->durations[class], ns, 1);
	counter_add(&c->requests[class][status / 100 - 2], 1);
}

/* ---- the server ---- */

int http_server_init(struct http_server *h, const struct conf *conf)
{
	networks_parse(conf->server.trusted_proxies, &h->proxies); /* checked before */
	h->listeners.admin.fd = h->listeners.admin.socket.fd = -1;
	return tokens_open(&h->tokens, conf->access.tokens_file);
}

void http_server_fini(struct http_server *h)
{
	listener_set_close(&h->listeners);
	tokens_close(&h->tokens);
}

static void tell_io_threads(struct http_server *h, _Atomic bool *what)
{
	/* Release: pairs with the I/O threads' acquire. */
	atomic_store_explicit(what, true, memory_order_release);
	stage_wake_all(graph_stage(h->graph, STAGE_ACCEPT_READ));
}

void http_server_drain(struct http_server *h)
{
	tell_io_threads(h, &h->is_draining);
}

void http_server_close_admin(struct http_server *h)
{
	tell_io_threads(h, &h->is_closing);
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
	                http_server_conf(h)->limits.connections, false);
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

const char *http_server_not_ready(struct http_server *h, bool looks, const char **why)
{
	/* Relaxed: only the flags matter. */
	if (atomic_load_explicit(&h->is_ending, memory_order_relaxed)) {
		*why = "the server finishes open requests";
		return "draining";
	}
	if (!atomic_load_explicit(&h->is_ready, memory_order_relaxed)) {
		*why = "not all threads have started yet";
		return "starting";
	}
	struct store *s = &h->images->store;

	if (looks ? !store_check(s) : store_is_lost(s)) {
		*why = store_lost_reason(s);
		return "storage-missing";
	}
	return h->images->storage.class->is_shared
	               ? NULL
	               : store_not_writable(s, http_server_conf(h)->limits.free_bytes, looks, why);
}
