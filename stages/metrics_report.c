/*
 * metrics_report.c - what the daemon does, in Prometheus' text format. Any thread.
 *
 * Values have base units. Labels have few values: nothing that a client sends becomes one.
 */
#include "metrics_report.h"

#include <sys/statvfs.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "http/http_server.h"
#include "image/image_service.h"
#include "log/log.h"
#include "s3/s3_store.h"
#include "sched/graph_metrics.h"
#include "server_counters.h"
#include "stats_report.h"
#include "telemetry/counter.h"
#include "telemetry/histogram.h"
#include "telemetry/metrics_text.h"
#include "telemetry/process.h"

#ifdef __clang__
#define COMPILER __VERSION__ /* includes its name */
#else
#define COMPILER "gcc " __VERSION__
#endif

static void state(const struct report_source *source, struct text *t)
{
	struct http_server *http = source->http;

	metrics_family(t, "darkroom_build_info", "gauge", "What this daemon was built from.");
	metrics_uint(t, "darkroom_build_info",
	             LABELS({ "version", darkroom_version }, { "compiler", COMPILER }), 1);
	metrics_gauge(t, "darkroom_ready", "Whether /readyz returns 200.",
	              atomic_load(&http->is_ready) && !atomic_load(&http->is_ending));
	metrics_gauge(t, "darkroom_tokens_outdated",
	              "Whether access.tokens_file is invalid, so that the earlier tokens apply.",
	              atomic_load(&http->tokens.is_outdated));
}

static void http(const struct report_source *source, const struct io_totals *totals, struct text *t)
{
	const struct http_server *http = source->http;

	metrics_gauge(t, "darkroom_http_connections", "Open connections.",
	              counter_read(&http->connections));
	metrics_gauge(t, "darkroom_http_connections_limit", "limits.connections.",
	              http_server_conf(http)->limits.connections);
	server_counters_metrics(source->counters, COUNTERS_HTTP, t);
	metrics_counter(t, "darkroom_http_received_bytes_total", "Bytes received from clients.",
	                totals->received_bytes);
	metrics_counter(t, "darkroom_http_sent_bytes_total", "Bytes sent to clients.",
	                totals->sent_bytes);
	metrics_family(t, "darkroom_http_responses_total", "counter", "Responses, by status.");
	for (unsigned i = 0; response_status_at(i); i++) {
		const char code[] = { (char)('0' + response_status_at(i) / 100),
			              (char)('0' + response_status_at(i) / 10 % 10),
			              (char)('0' + response_status_at(i) % 10), '\0' };

		metrics_uint(t, "darkroom_http_responses_total", LABELS({ "code", code }),
		             totals->responses[i]);
	}
	metrics_family(t, "darkroom_rejections_total", "counter",
	               "Requests, images and form parts refused, by type of problem.");
	for (unsigned i = 0; problem_type_at(i); i++)
		metrics_uint(t, "darkroom_rejections_total",
		             LABELS({ "reason", problem_type_at(i) }), totals->rejections[i]);
}

/* Rate, errors and duration of each kind of request. */
static void requests(const struct report_source *source, const struct io_totals *totals,
                     struct text *t)
{
	static const char *const classes[IO_STATUS_CLASSES] = { "2xx", "3xx", "4xx", "5xx" };
	const struct http_server *http = source->http;
	struct histogram_sum sum;

	metrics_family(t, "darkroom_http_route_responses_total", "counter",
	               "Responses, by route, method and class of status.");
	for (unsigned i = 0; i < ROUTE_CLASS_COUNT; i++)
		for (unsigned s = 0; s < IO_STATUS_CLASSES; s++)
			metrics_uint(t, "darkroom_http_route_responses_total",
			             LABELS({ "route", route_class_route(i) },
			                    { "method", route_class_method(i) },
			                    { "status", classes[s] }),
			             totals->requests[i][s]);
	metrics_family(t, "darkroom_http_request_duration_seconds", "histogram",
	               "From a request's first byte to the last of its response.");
	for (unsigned i = 0; i < ROUTE_CLASS_COUNT; i++) {
		io_durations_collect(&sum, http->io_counters, COUNT_OF(http->io_counters), i);
		metrics_histogram(t, "darkroom_http_request_duration_seconds",
		                  LABELS({ "route", route_class_route(i) },
		                         { "method", route_class_method(i) }),
		                  &sum, METRICS_FINE);
	}
}

static void images(const struct report_source *source, struct text *t)
{
	const struct image_service *images = source->images;

	metrics_gauge(t, "darkroom_images_in_flight", "Images admitted and not yet stored.",
	              counter_read(&images->in_flight));
	metrics_gauge(t, "darkroom_images_in_flight_limit", "limits.images_in_flight.",
	              image_service_conf(images)->limits.images_in_flight);
	server_counters_metrics(source->counters, COUNTERS_IMAGES, t);
}

static void overload(const struct report_source *source, struct text *t)
{
	struct admission_report r;

	admission_report(&source->images->admission, &r);
	metrics_family(t, "darkroom_overload_admitted_total", "counter",
	               "Uploads admitted, by class.");
	for (unsigned i = 0; i < r.class_count; i++)
		metrics_uint(t, "darkroom_overload_admitted_total",
		             LABELS({ "class", r.class[i].name }), r.class[i].admitted);
	metrics_family(t, "darkroom_overload_refused_total", "counter",
	               "Uploads refused before their bodies were read, by class.");
	for (unsigned i = 0; i < r.class_count; i++)
		metrics_uint(t, "darkroom_overload_refused_total",
		             LABELS({ "class", r.class[i].name }), r.class[i].refused);
	metrics_family(t, "darkroom_overload_level", "gauge",
	               "Steps of overload.degrade that are in, by class.");
	for (unsigned i = 0; i < r.class_count; i++)
		metrics_uint(t, "darkroom_overload_level", LABELS({ "class", r.class[i].name }),
		             r.class[i].level);
	if (r.degrade.count)
		metrics_family(t, "darkroom_overload_degraded_total", "counter",
		               "Images stored with a step of overload.degrade.");
	for (unsigned i = 0; i < r.degrade.count; i++)
		metrics_uint(t, "darkroom_overload_degraded_total",
		             LABELS({ "step", r.degrade.step[i].text }), r.degraded[i]);
	metrics_counter(t, "darkroom_overload_backfilled_total",
	                "Images stored without variants that are made when the load has gone.",
	                counter_read(&source->images->remake.backfilled));
	metrics_family(t, "darkroom_overload_dropped_total", "counter",
	               "Admitted images, or steps of them, that were no longer wanted.");
	metrics_uint(t, "darkroom_overload_dropped_total", LABELS({ "reason", "client_gone" }),
	             counter_read(&source->images->client_gone));
	metrics_uint(t, "darkroom_overload_dropped_total", LABELS({ "reason", "too_late" }),
	             counter_read(&source->images->too_late));
	metrics_counter(t, "darkroom_overload_waited_total", "Uploads that waited to be admitted.",
	                r.waited);
	metrics_gauge(t, "darkroom_overload_waiting", "Uploads that wait to be admitted.",
	              r.waiting);
	metrics_family(t, "darkroom_overload_backlog_seconds", "gauge",
	               "Time that the admitted images take.");
	metrics_seconds(t, "darkroom_overload_backlog_seconds", NULL,
	                (uint64_t)(r.backlog_s * (double)NS_PER_S));
	metrics_family(t, "darkroom_overload_p90_seconds", "gauge",
	               "90th percentile of the response times of the last interval.");
	metrics_seconds(t, "darkroom_overload_p90_seconds", NULL,
	                (uint64_t)(r.p90_s * (double)NS_PER_S));
}

static void memory(const struct report_source *source, struct text *t)
{
	uint64_t used, kept;
	struct budget_usage usage;

	pool_usage(&used, &kept);
	budget_usage(&source->images->budget, &usage);
	metrics_gauge(t, "darkroom_memory_budget_bytes", "limits.memory_budget.", usage.total);
	metrics_family(t, "darkroom_memory_reserved_bytes", "gauge",
	               "Reserved bytes of the budget, by use.");
	metrics_uint(t, "darkroom_memory_reserved_bytes", LABELS({ "share", "body" }),
	             usage.used[BUDGET_SMALL_BODY] + usage.used[BUDGET_BODY]);
	metrics_uint(t, "darkroom_memory_reserved_bytes", LABELS({ "share", "image" }),
	             usage.used[BUDGET_IMAGE]);
	metrics_counter(t, "darkroom_memory_waits_total", "Reservations that had to wait.",
	                usage.wait_count);
	metrics_gauge(t, "darkroom_pool_used_bytes", "Bytes of buffers in use.", used);
	metrics_gauge(t, "darkroom_pool_kept_bytes", "Bytes of free buffers kept for reuse.", kept);
}

static void removals(const struct report_source *source, struct text *t)
{
	static const char *const reasons[] = { "expired", "max_age", "max_bytes" };
	const struct sweep *sweep = &source->images->sweep;
	struct usage_total total = usage_total(&source->images->store.usage);

	static_assert(COUNT_OF(reasons) == SWEEP_REASON_COUNT, "each has a name");
	metrics_family(t, "darkroom_store_removed_total", "counter",
	               "Images removed because of their age or the store's size, by reason.");
	for (unsigned i = 0; i < COUNT_OF(reasons); i++)
		metrics_uint(t, "darkroom_store_removed_total", LABELS({ "reason", reasons[i] }),
		             counter_read(&sweep->removed[i]));
	metrics_counter(t, "darkroom_store_removed_bytes_total", "Bytes of these images.",
	                counter_read(&sweep->removed_bytes));
	if (!total.is_on || !total.is_complete)
		return;
	metrics_gauge(t, "darkroom_store_images", "Images stored.", total.all.images);
	metrics_gauge(t, "darkroom_store_bytes", "Bytes of stored files.", total.all.bytes);
}

/* Of an S3 store. */
static void objects(const struct image_service *images, struct text *t)
{
	const char *family = "";

	if (!images->s3)
		return;
	const struct s3_counters *c = s3_store_counters(images->s3);

#define X(field, member, metric, label, value, help)                        \
	if (strcmp(family, metric) != 0)                                    \
		metrics_family(t, metric, "counter", help);                 \
	metrics_uint(t, metric, label[0] ? LABELS({ label, value }) : NULL, \
	             counter_read(&c->field));                              \
	family = metric;
	S3_COUNTERS(X)
#undef X
	metrics_gauge(t, "darkroom_s3_in_flight", "Operations of the S3 store in progress.",
	              counter_read(&c->in_flight));
	metrics_gauge(t, "darkroom_s3_away", "1 while the S3 store does not answer.",
	              atomic_load_explicit(&c->is_away, memory_order_relaxed));
	metrics_gauge(t, "darkroom_s3_spooled_bytes",
	              "Bytes of uploads that wait in files for the S3 store.",
	              counter_read(&images->spooling.bytes));
}

static void store(const struct report_source *source, struct text *t)
{
	const struct store *store = &source->images->store;
	const struct recovery *recovery = &source->images->recovery;
	const struct remake *remake = &source->images->remake;
	struct statvfs fs;

	if (fstatvfs(store->root_fd, &fs) == 0) {
		metrics_gauge(t, "darkroom_store_free_bytes",
		              "Free bytes of the store's file system.",
		              (uint64_t)fs.f_bavail * fs.f_frsize);
		metrics_gauge(t, "darkroom_store_size_bytes", "Size of the store's file system.",
		              (uint64_t)fs.f_blocks * fs.f_frsize);
	}
	metrics_counter(t, "darkroom_store_flushes_total", "Flushes of the file system.",
	                counter_read(&store->flushes));
	server_counters_metrics(source->counters, COUNTERS_STORE_FAILURES, t);
	removals(source, t);
	objects(source->images, t);
	metrics_gauge(t, "darkroom_store_recovering",
	              "Spooled images that wait to be processed again.",
	              counter_read(&recovery->waiting));
	metrics_counter(t, "darkroom_store_recovered_total", "Spooled images stored.",
	                counter_read(&recovery->recovered));
	metrics_counter(t, "darkroom_store_quarantined_total",
	                "Spooled images that could not be processed.",
	                counter_read(&recovery->quarantined));
	metrics_counter(t, "darkroom_store_missing_made_total",
	                "Images whose missing variants were made for a GET.",
	                counter_read(&source->images->missing.made));
	metrics_counter(t, "darkroom_store_missing_failed_total",
	                "Images whose missing variants could not be made.",
	                counter_read(&source->images->missing.failed));
	metrics_counter(t, "darkroom_store_missing_refused_total",
	                "Requests for missing variants that were refused.",
	                counter_read(&source->images->missing.refused));
	metrics_gauge(t, "darkroom_store_remake_waiting", "Stored images that wait for variants.",
	              counter_read(&remake->waiting));
	metrics_counter(t, "darkroom_store_remade_total", "Stored images that got variants.",
	                counter_read(&remake->made));
	metrics_counter(t, "darkroom_store_remake_failed_total",
	                "Stored images that could not get them.", counter_read(&remake->failed));
}

static void logs(struct text *t)
{
	struct log_totals totals;

	log_totals(&totals);
	metrics_family(t, "darkroom_log_lines_total", "counter", "Lines logged, by kind.");
	metrics_uint(t, "darkroom_log_lines_total", LABELS({ "kind", "message" }), totals.messages);
	metrics_uint(t, "darkroom_log_lines_total", LABELS({ "kind", "access" }), totals.access);
	metrics_family(t, "darkroom_log_dropped_total", "counter",
	               "Lines dropped because the log's reader was too slow, by kind.");
	metrics_uint(t, "darkroom_log_dropped_total", LABELS({ "kind", "message" }),
	             totals.messages_dropped);
	metrics_uint(t, "darkroom_log_dropped_total", LABELS({ "kind", "access" }),
	             totals.access_dropped);
}

void metrics_report(const struct report_source *source, struct text *to)
{
	const struct http_server *server = source->http;
	struct io_totals totals;

	io_totals_collect(&totals, server->io_counters, COUNT_OF(server->io_counters));
	state(source, to);
	http(source, &totals, to);
	requests(source, &totals, to);
	images(source, to);
	overload(source, to);
	memory(source, to);
	store(source, to);
	logs(to);
	graph_metrics(source->graph, to);
	process_metrics(source->process, to);
}
