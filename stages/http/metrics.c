/*
 * metrics.c - GET /metrics: what the daemon does, in Prometheus' words. Any thread.
 *
 * Base units, and labels of which there are few: nothing that a client sends becomes one.
 */
#include "metrics.h"

#include <sys/statvfs.h>

#include "app.h"
#include "base/check.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "io_counters.h"
#include "log/log.h"
#include "sched/graph.h"
#include "telemetry/counter.h"
#include "telemetry/metrics_text.h"
#include "telemetry/process.h"

#ifdef __clang__
#define COMPILER __VERSION__ /* it names itself */
#else
#define COMPILER "gcc " __VERSION__
#endif

void port_sum_collect(struct port_sum *sum, const struct server *s)
{
	*sum = (struct port_sum){ 0 };
	for (unsigned i = 0; i < COUNT_OF(s->port_counters); i++) {
		const struct port_counters *c = &s->port_counters[i];

		sum->received_bytes += counter_read(&c->received_bytes);
		sum->sent_bytes += counter_read(&c->sent_bytes);
		for (unsigned k = 0; k < RESPONSE_STATUS_MAX; k++)
			sum->responses[k] += counter_read(&c->responses[k]);
		for (unsigned k = 0; k < PROBLEM_TYPE_MAX; k++)
			sum->rejections[k] += counter_read(&c->rejections[k]);
	}
}

/* ---- families ---- */

static void state(struct server *s, struct text *t)
{
	metrics_family(t, "darkroom_build_info", "gauge", "What this daemon was built from.");
	metrics_uint(t, "darkroom_build_info",
	             LABELS({ "version", darkroom_version }, { "compiler", COMPILER }), 1);
	metrics_gauge(t, "darkroom_ready", "Whether /readyz says yes.",
	              atomic_load(&s->is_ready) && !atomic_load(&s->is_ending));
	metrics_gauge(
		t, "darkroom_tokens_outdated",
		"Whether access.tokens_file is wrong, so that the tokens of before are in force.",
		atomic_load(&s->tokens.is_outdated));
}

static void http(struct server *s, struct text *t)
{
	struct port_sum sum;

	port_sum_collect(&sum, s);
	metrics_gauge(t, "darkroom_http_connections", "Open connections.",
	              counter_read(&s->connections));
	metrics_gauge(t, "darkroom_http_connections_limit", "limits.connections.",
	              s->conf->limits.connections);
	metrics_counter(t, "darkroom_http_connections_accepted_total", "Connections accepted.",
	                counter_read(&s->connections_accepted));
	metrics_counter(t, "darkroom_http_connections_rejected_total",
	                "Connections over limits.connections.",
	                counter_read(&s->connections_rejected));
	metrics_counter(t, "darkroom_http_received_bytes_total", "Bytes received from clients.",
	                sum.received_bytes);
	metrics_counter(t, "darkroom_http_sent_bytes_total", "Bytes sent to clients.",
	                sum.sent_bytes);
	metrics_counter(t, "darkroom_http_requests_total",
	                "Requests whose header was read, or was wrong.",
	                counter_read(&s->requests));
	metrics_family(t, "darkroom_http_responses_total", "counter", "Responses, by status.");
	for (unsigned i = 0; response_status_at(i); i++) {
		const char code[] = { (char)('0' + response_status_at(i) / 100),
			              (char)('0' + response_status_at(i) / 10 % 10),
			              (char)('0' + response_status_at(i) % 10), '\0' };

		metrics_uint(t, "darkroom_http_responses_total", LABELS({ "code", code }),
		             sum.responses[i]);
	}
	metrics_family(
		t, "darkroom_rejections_total", "counter",
		"Requests, images and parts of forms that were refused, by type of problem.");
	for (unsigned i = 0; problem_type_at(i); i++)
		metrics_uint(t, "darkroom_rejections_total",
		             LABELS({ "reason", problem_type_at(i) }), sum.rejections[i]);
}

static void images(struct server *s, struct text *t)
{
	metrics_gauge(t, "darkroom_images_in_flight", "Images between upload and store.",
	              counter_read(&s->images_in_flight));
	metrics_gauge(t, "darkroom_images_in_flight_limit", "limits.images_in_flight.",
	              s->conf->limits.images_in_flight);
	metrics_counter(t, "darkroom_images_stored_total", "Images stored with all variants.",
	                counter_read(&s->images_stored));
	metrics_counter(t, "darkroom_images_failed_total",
	                "Images that failed after they were admitted.",
	                counter_read(&s->images_failed));
	metrics_counter(t, "darkroom_images_input_bytes_total",
	                "Bytes of files whose images were stored.",
	                counter_read(&s->input_bytes_stored));
	metrics_counter(t, "darkroom_images_output_bytes_total", "Bytes of variants stored.",
	                counter_read(&s->output_bytes_stored));
	metrics_family(t, "darkroom_degradations_total", "counter",
	               "Images that were stored less well than wished, by how.");
	metrics_uint(t, "darkroom_degradations_total", LABELS({ "kind", "damaged" }),
	             counter_read(&s->images_damaged));
}

static void memory(struct server *s, struct text *t)
{
	uint64_t used, kept;
	struct budget_usage usage;

	pool_usage(&used, &kept);
	budget_usage(&s->budget, &usage);
	metrics_gauge(t, "darkroom_memory_budget_bytes", "limits.memory_budget.", usage.total);
	metrics_family(t, "darkroom_memory_reserved_bytes", "gauge", "Of the budget, by what for.");
	metrics_uint(t, "darkroom_memory_reserved_bytes", LABELS({ "share", "body" }),
	             usage.used[BUDGET_BODY]);
	metrics_uint(t, "darkroom_memory_reserved_bytes", LABELS({ "share", "image" }),
	             usage.used[BUDGET_IMAGE]);
	metrics_counter(t, "darkroom_memory_waits_total", "Reservations that had to wait.",
	                usage.wait_count);
	metrics_gauge(t, "darkroom_pool_used_bytes", "Bytes of buffers in use.", used);
	metrics_gauge(t, "darkroom_pool_kept_bytes",
	              "Bytes of buffers that are kept for the next use.", kept);
}

static void store(struct server *s, struct text *t)
{
	struct statvfs fs;

	if (fstatvfs(s->store.root_fd, &fs) == 0) {
		metrics_gauge(t, "darkroom_store_free_bytes",
		              "Bytes free for the daemon in the store's file system.",
		              (uint64_t)fs.f_bavail * fs.f_frsize);
		metrics_gauge(t, "darkroom_store_size_bytes", "Size of the store's file system.",
		              (uint64_t)fs.f_blocks * fs.f_frsize);
	}
	metrics_counter(t, "darkroom_store_flushes_total", "Flushes of the file system.",
	                counter_read(&s->store.flushes));
	metrics_family(t, "darkroom_store_failures_total", "counter",
	               "Images that could not be stored, by why.");
	metrics_uint(t, "darkroom_store_failures_total", LABELS({ "reason", "full" }),
	             counter_read(&s->store_full));
	metrics_uint(t, "darkroom_store_failures_total", LABELS({ "reason", "other" }),
	             counter_read(&s->store_failed));
	metrics_gauge(t, "darkroom_store_recovering", "Spooled images that wait to be made again.",
	              counter_read(&s->recovery.waiting));
	metrics_counter(t, "darkroom_store_recovered_total", "Images made again after a crash.",
	                counter_read(&s->recovery.recovered));
	metrics_counter(t, "darkroom_store_quarantined_total",
	                "Spooled images that could not be made again.",
	                counter_read(&s->recovery.quarantined));
}

static void logs(struct text *t)
{
	struct log_totals totals;

	log_totals(&totals);
	metrics_family(t, "darkroom_log_lines_total", "counter", "Lines logged, by kind.");
	metrics_uint(t, "darkroom_log_lines_total", LABELS({ "kind", "message" }), totals.messages);
	metrics_uint(t, "darkroom_log_lines_total", LABELS({ "kind", "access" }), totals.access);
	metrics_family(t, "darkroom_log_dropped_total", "counter",
	               "Lines lost because the log's reader was too slow, by kind.");
	metrics_uint(t, "darkroom_log_dropped_total", LABELS({ "kind", "message" }),
	             totals.messages_dropped);
	metrics_uint(t, "darkroom_log_dropped_total", LABELS({ "kind", "access" }),
	             totals.access_dropped);
}

void server_metrics(struct server *s, struct text *to)
{
	state(s, to);
	http(s, to);
	images(s, to);
	memory(s, to);
	store(s, to);
	logs(to);
	graph_metrics(s->graph, to);
	process_metrics(&s->process, to);
}
