/*
 * app.c - makes and unmakes what all stages share, opens the listeners, and reports. Main thread,
 * except for the report.
 */
#include "app.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "http/activation.h"
#include "http/listener.h"
#include "log/log.h"
#include "policy/policy.h"
#include "sched/graph.h"
#include "stages.h"

/* ---- listeners ---- */

/* Finds out the port if it was 0, and whether somebody else listens there: sockets that share a
 * port would not be told. */
static int claim_port(struct sockaddr_storage *address, socklen_t *length)
{
	int fd = listener_open(address, *length, false);
	int err = fd < 0 ? fd : 0;

	if (fd < 0)
		return err;
	*length = sizeof *address;
	if (getsockname(fd, (struct sockaddr *)address, length))
		err = -errno;
	close(fd);
	return err;
}

static int open_listeners(struct server *s, struct sockaddr_storage *address, socklen_t length,
                          unsigned count)
{
	int err = claim_port(address, &length);

	for (unsigned i = 0; i < count && !err; i++) {
		int fd = listener_open(address, length, count > 1);

		if (fd < 0)
			err = fd;
		else
			s->listen_fd[s->listen_count++] = fd;
	}
	return err;
}

static void close_listeners(struct server *s)
{
	for (unsigned i = 0; i < s->listen_count; i++)
		close(s->listen_fd[i]);
	s->listen_count = 0;
	admin_close(&s->admin);
}

/* Listens as the configuration says. 0 or -errno, logged. */
static int listen_as_told(struct server *s)
{
	struct sockaddr_storage address;
	socklen_t length;
	int err = listener_resolve("server.listen", s->conf->server.listen, &address, &length);

	if (err)
		return err;
	err = open_listeners(s, &address, length, graph_port_count(s->graph));
	if (err) {
		log_error("server.listen = %s: %s", s->conf->server.listen, strerror(-err));
		close_listeners(s);
	}
	return err;
}

static int listen_all(struct server *s)
{
	int admin_fd, passed = activation_take(s->listen_fd, COUNT_OF(s->listen_fd), &admin_fd);
	int err = passed < 0 ? passed : 0;

	if (passed > 0) {
		log_notice("serving the service manager's sockets (%d); server.listen is not used",
		           passed);
		s->listen_count = (unsigned)passed;
		s->is_activated = true;
	} else if (!err) {
		err = listen_as_told(s);
	}
	if (err)
		return err;
	listener_url(s->listen_fd[0], s->url, sizeof s->url);
	err = admin_open(&s->admin, s->conf, s->listen_fd, s->listen_count, admin_fd);
	if (err)
		close_listeners(s);
	return err;
}

/* ---- life ---- */

/* Of those, the events of connections. */
static size_t inbox_count_max(const struct conf *conf)
{
	return (size_t)conf->limits.connections * 2 + ADMIN_EVENTS_MAX;
}

/* Every event that can exist at once: of admitted images (with their steps and store jobs), and of
 * connections (with their removals). So that no push is ever refused. */
static size_t event_count_max(const struct conf *conf, unsigned step_count)
{
	return (size_t)conf->limits.images_in_flight * (step_count + 2) + inbox_count_max(conf);
}

static int open_store(struct server *s, const struct conf *conf)
{
	unsigned cleared;
	int err = store_open(&s->store, conf->server.root,
	                     conf->server.durability == CONF_DURABILITY_POWER, &cleared);

	if (err)
		return err;
	s->leftovers_cleared = cleared;
	if (cleared)
		log_notice("cleared %u unfinished or removed images left in %s", cleared,
		           conf->server.root);
	return 0;
}

static int make_graph(struct server *s, const struct conf *conf, const struct plan *plan)
{
	/* As queues have room for a power of two anyway, so may variants and limits that come
	 * later. */
	for (s->event_count_max = 1; s->event_count_max < event_count_max(conf, plan->step_count);)
		s->event_count_max *= 2;
	s->inbox_count_max = inbox_count_max(conf);
	int err = graph_new(&s->graph, conf, s, s->event_count_max, s->inbox_count_max);

	if (err)
		log_error("the stages and threads cannot be made: %s", strerror(-err));
	return err;
}

static struct plan plan; /* scratch of the functions below; main thread */

int server_check_variants(const struct conf *conf, unsigned *variant, char *error,
                          size_t error_size)
{
	return plan_build(&plan, conf, variant, error, error_size);
}

int server_init(struct server *s, const struct conf *conf)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = plan_build(&plan, conf, &variant, error, sizeof error);

	if (err) {
		log_error("%s", error);
		return err;
	}
	memset(s, 0, sizeof *s);
	s->admin.socket.fd = s->admin.fd = -1;
	s->start_ns = clock_ns();
	err = conf_epochs_init(&s->conf_epochs, conf, &plan);
	if (err) {
		log_error("no memory for the configuration");
		return err;
	}
	conf = &s->conf_epochs.current->conf;
	atomic_init(&s->conf, conf);
	err = tokens_open(&s->tokens, conf->access.tokens_file);
	if (err)
		goto fail_setups;
	process_open(&s->process);
	err = open_store(s, conf);
	if (err)
		goto fail_process;
	err = inflight_init(&s->inflight, (size_t)conf->limits.images_in_flight);
	if (err) {
		log_error("the table of images in flight cannot be made: %s", strerror(-err));
		goto fail_store;
	}
	budget_init(&s->budget, conf->limits.memory_budget);
	err = make_graph(s, conf, &plan);
	if (err)
		goto fail_registry;
	err = listen_all(s);
	if (err)
		goto fail_graph;
	err = recovery_init(&s->recovery, s);
	if (err) {
		log_error("the recovery cannot be made: %s", strerror(-err));
		goto fail_listeners;
	}
	return 0;

fail_listeners:
	close_listeners(s);
fail_graph:
	graph_free(s->graph);
fail_registry:
	budget_fini(&s->budget);
	inflight_fini(&s->inflight);
fail_store:
	store_close(&s->store);
fail_process:
	process_close(&s->process);
	tokens_close(&s->tokens);
fail_setups:
	conf_epochs_fini(&s->conf_epochs);
	return err;
}

void server_fini(struct server *s)
{
	recovery_fini(&s->recovery);
	close_listeners(s);
	graph_free(s->graph);
	budget_fini(&s->budget);
	inflight_fini(&s->inflight);
	store_close(&s->store);
	process_close(&s->process);
	tokens_close(&s->tokens);
	conf_epochs_fini(&s->conf_epochs);
}

/* ---- changes while it runs ---- */

/* The queues were made at startup for the number of events that could exist then. */
int server_check_room(struct server *s, const struct conf *conf, struct text *errors)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = plan_build(&plan, conf, &variant, error, sizeof error);

	if (err) {
		text_printf(errors, "%s\n", error);
		return err;
	}
	size_t events = event_count_max(conf, conf_epochs_step_count_max(&s->conf_epochs, &plan));

	if (inbox_count_max(conf) > s->inbox_count_max)
		text_puts(errors,
		          "limits.connections can grow beyond its value at startup only by a "
		          "restart\n");
	else if (events > s->event_count_max)
		text_printf(errors,
		            "limits.images_in_flight and the variants need room for %zu events at "
		            "once, but there is room for %zu: this needs a restart, or fewer "
		            "images in flight\n",
		            events, s->event_count_max);
	else
		return 0;
	return -EINVAL;
}

int server_change_prepare(struct server *s, const struct conf *conf, struct text *errors)
{
	char error[CONF_TEXT_MAX * 2];
	unsigned variant;
	int err = plan_build(&plan, conf, &variant, error, sizeof error);

	if (err) {
		text_printf(errors, "%s\n", error);
		return err;
	}
	return conf_epochs_prepare(&s->conf_epochs, conf, &plan);
}

void server_change_commit(struct server *s)
{
	const struct conf_epoch *epoch = conf_epochs_commit(&s->conf_epochs);

	/* Before the first image that is promised it; those on their way may be flushed in vain, or
	 * not, as they were promised. */
	store_survive_power(&s->store, epoch->conf.server.durability == CONF_DURABILITY_POWER);
	atomic_store_explicit(&s->conf, &epoch->conf,
	                      memory_order_release); /* partner: every use of conf */
}

void server_change_cancel(struct server *s)
{
	conf_epochs_cancel(&s->conf_epochs);
}

bool server_is_busy(const struct server *s)
{
	/* Acquire, and in this order: what a port accepted before it closed is among the
	 * connections. */
	if (atomic_load_explicit(&s->ports_closed, memory_order_acquire) <
	    atomic_load_explicit(&s->ports, memory_order_acquire))
		return true;
	return atomic_load(&s->connections) || atomic_load(&s->images_in_flight);
}

void server_close_administration(struct server *s)
{
	/* Release: with the ports' acquire. */
	atomic_store_explicit(&s->is_closing, true, memory_order_release);
	stage_wake_all(graph_stage(s->graph, STAGE_ACCEPT_READ));
}

bool server_has_closed_administration(const struct server *s)
{
	/* Acquire: with the ports' release, after which no event of theirs is on its way. */
	return atomic_load_explicit(&s->ports_done, memory_order_acquire) ==
	       atomic_load_explicit(&s->ports, memory_order_acquire);
}

/* ---- for the daemon ---- */

int server_start(struct server *s)
{
	int err = graph_start(s->graph);

	if (err)
		return err;
	err = recovery_start(&s->recovery);
	if (err) {
		graph_stop(s->graph);
		return err;
	}
	atomic_store(&s->is_ready, true);
	return 0;
}

void server_announce_end(struct server *s)
{
	atomic_store(&s->is_ending, true);
}

void server_drain(struct server *s)
{
	atomic_store(&s->is_draining, true);
	recovery_stop(&s->recovery);
	stage_wake_all(graph_stage(s->graph, STAGE_ACCEPT_READ));
}

void server_stop(struct server *s)
{
	graph_stop(s->graph);
}

struct graph *server_graph(const struct server *s)
{
	return s->graph;
}

struct tokens *server_tokens(struct server *s)
{
	return &s->tokens;
}

const char *server_url(const struct server *s)
{
	return s->url;
}

void server_describe(const struct server *s, struct text *to)
{
	text_printf(to, "%" PRIu64 " images in flight, %" PRIu64 " connections",
	            atomic_load(&s->images_in_flight), atomic_load(&s->connections));
}

uint64_t server_images_stored(const struct server *s)
{
	return atomic_load(&s->images_stored);
}

/* ---- the report ---- */

static uint64_t read_total(const _Atomic uint64_t *total)
{
	return atomic_load_explicit(total, memory_order_relaxed);
}

static void memory_json(struct server *s, struct json *j)
{
	struct budget_usage usage;
	uint64_t used, kept;

	pool_usage(&used, &kept);
	budget_usage(&s->budget, &usage);
	json_object(j, "memory");
	json_uint(j, "budget_bytes", usage.total);
	json_uint(j, "reserved_body_bytes", usage.used[BUDGET_BODY]);
	json_uint(j, "reserved_image_bytes", usage.used[BUDGET_IMAGE]);
	json_uint(j, "waited", usage.wait_count);
	json_uint(j, "pool_used_bytes", used);
	json_uint(j, "pool_kept_bytes", kept);
	json_object_end(j);
}

static void store_json(struct server *s, struct json *j)
{
	json_object(j, "store");
	json_uint(j, "flushes", read_total(&s->store.flushes));
	json_object(j, "failures");
	json_uint(j, "full", read_total(&s->store_full));
	json_uint(j, "other", read_total(&s->store_failed));
	json_object_end(j);
	json_uint(j, "leftovers_cleared", s->leftovers_cleared);
	json_uint(j, "recovering", read_total(&s->recovery.waiting));
	json_uint(j, "recovered", read_total(&s->recovery.recovered));
	json_uint(j, "quarantined", read_total(&s->recovery.quarantined));
	json_object_end(j);
}

static void http_json(struct server *s, struct json *j)
{
	uint64_t responses[6] = { 0 }; /* by class */
	struct port_sum sum;

	port_sum_collect(&sum, s);
	for (unsigned i = 0; response_status_at(i); i++)
		responses[response_status_at(i) / 100] += sum.responses[i];
	json_object(j, "http");
	json_uint(j, "connections", read_total(&s->connections));
	json_uint(j, "connections_accepted", read_total(&s->connections_accepted));
	json_uint(j, "connections_rejected", read_total(&s->connections_rejected));
	json_uint(j, "received_bytes", sum.received_bytes);
	json_uint(j, "sent_bytes", sum.sent_bytes);
	json_uint(j, "requests", read_total(&s->requests));
	json_object(j, "responses");
	for (unsigned i = 1; i < COUNT_OF(responses); i++) {
		const char class[] = { (char)('0' + i), 'x', 'x', '\0' };

		json_uint(j, class, responses[i]);
	}
	json_object_end(j);
	json_object_end(j);
}

static void log_json(struct json *j)
{
	struct log_totals t;

	log_totals(&t);
	json_object(j, "log");
	json_uint(j, "messages", t.messages);
	json_uint(j, "access", t.access);
	json_object(j, "dropped");
	json_uint(j, "messages", t.messages_dropped);
	json_uint(j, "access", t.access_dropped);
	json_object_end(j);
	json_uint(j, "suppressed", t.suppressed);
	json_uint(j, "failed", t.failed);
	json_object_end(j);
}

void server_stats_json(struct server *s, struct text *to)
{
	struct json j;

	json_init(&j, to);
	json_object(&j, NULL);
	json_double(&j, "uptime_s", (double)(clock_ns() - s->start_ns) / (double)NS_PER_S);
	json_bool(&j, "draining", atomic_load_explicit(&s->is_draining, memory_order_relaxed));
	json_object(&j, "images");
	json_uint(&j, "in_flight", read_total(&s->images_in_flight));
	json_uint(&j, "stored", read_total(&s->images_stored));
	json_uint(&j, "failed", read_total(&s->images_failed));
	json_uint(&j, "input_bytes_stored", read_total(&s->input_bytes_stored));
	json_uint(&j, "output_bytes_stored", read_total(&s->output_bytes_stored));
	json_object_end(&j);
	store_json(s, &j);
	http_json(s, &j);
	memory_json(s, &j);
	log_json(&j);
	graph_stats_json(s->graph, &j);
	json_object_end(&j);
	text_puts(to, "\n");
}
