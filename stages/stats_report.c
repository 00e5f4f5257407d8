/* stats_report.c - what the daemon does, as JSON. Any thread. */
#include "stats_report.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "http/http_server.h"
#include "image/image_service.h"
#include "log/log.h"
#include "s3/s3_store.h"
#include "sched/graph_stats.h"
#include "server_counters.h"
#include "telemetry/counter.h"
#include "telemetry/histogram.h"

#define TOKENS_SHOWN 1000 /* of at most 160 bytes each */

static void images_json(const struct report_source *source, struct json *j)
{
	json_object(j, "images");
	json_uint(j, "in_flight", counter_read(&source->images->in_flight));
	server_counters_json(source->counters, COUNTERS_IMAGES, j);
	json_object_end(j);
}

static void overload_json(const struct report_source *source, struct json *j)
{
	struct admission_report r;

	admission_report(&source->images->admission, &r);
	json_object(j, "overload");
	json_uint(j, "waited", r.waited);
	json_uint(j, "client_gone", counter_read(&source->images->client_gone));
	json_uint(j, "too_late", counter_read(&source->images->too_late));
	json_uint(j, "waiting", r.waiting);
	json_uint(j, "backfilled", counter_read(&source->images->remake.backfilled));
	json_double(j, "backlog_s", r.backlog_s);
	json_double(j, "p90_s", r.p90_s);
	json_array(j, "degrade");
	for (unsigned i = 0; i < r.degrade.count; i++) {
		json_object(j, NULL);
		json_string(j, "step", r.degrade.step[i].text);
		json_uint(j, "images", r.degraded[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "classes");
	for (unsigned i = 0; i < r.class_count; i++) {
		json_object(j, NULL);
		json_string(j, "name", r.class[i].name);
		json_uint(j, "admitted", r.class[i].admitted);
		json_uint(j, "refused", r.class[i].refused);
		json_double(j, "target_s", r.class[i].target_s);
		json_double(j, "backlog_limit_s", r.class[i].limit_s);
		json_double(j, "rate", r.class[i].rate);
		json_uint(j, "level", r.class[i].level);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

struct tokens_left {
	struct json *j;
	unsigned count;
};

static void token_json(const struct usage_token *token, void *arg)
{
	struct tokens_left *left = arg;

	if (left->count == 0)
		return;
	left->count--;
	json_object(left->j, NULL);
	json_string(left->j, "name", token->name);
	json_uint(left->j, "images", token->stored.images);
	json_uint(left->j, "bytes", token->stored.bytes);
	json_uint(left->j, "uploads", token->uploads);
	json_object_end(left->j);
}

static void removals_json(const struct report_source *source, struct json *j)
{
	const struct sweep *sweep = &source->images->sweep;
	struct usage_total total = usage_total(&source->images->store.usage);

	json_object(j, "removed");
	json_uint(j, "expired", counter_read(&sweep->removed[SWEEP_EXPIRED]));
	json_uint(j, "max_age", counter_read(&sweep->removed[SWEEP_TOO_OLD]));
	json_uint(j, "max_bytes", counter_read(&sweep->removed[SWEEP_TOO_MUCH]));
	json_uint(j, "bytes", counter_read(&sweep->removed_bytes));
	json_object_end(j);
	if (!total.is_on)
		return;
	json_uint(j, "images", total.all.images);
	json_uint(j, "bytes", total.all.bytes);
	json_bool(j, "is_counted", total.is_complete);
	json_array(j, "tokens");
	usage_each(&source->images->store.usage, token_json,
	           &(struct tokens_left){ j, TOKENS_SHOWN });
	json_array_end(j);
}

/* Of an S3 store. */
static void objects_json(const struct image_service *images, struct json *j)
{
	if (!images->s3)
		return;
	const struct s3_counters *c = s3_store_counters(images->s3);

	json_object(j, "s3");
#define X(field, member, metric, label, value, help) json_uint(j, member, counter_read(&c->field));
	S3_COUNTERS(X)
#undef X
	json_uint(j, "in_flight", counter_read(&c->in_flight));
	json_bool(j, "is_away", atomic_load_explicit(&c->is_away, memory_order_relaxed));
	json_uint(j, "spooled_bytes", counter_read(&images->spooling.bytes));
	json_object_end(j);
}

static void store_json(const struct report_source *source, struct json *j)
{
	const struct image_service *images = source->images;

	json_object(j, "store");
	json_uint(j, "flushes", counter_read(&images->store.flushes));
	json_object(j, "failures");
	server_counters_json(source->counters, COUNTERS_STORE_FAILURES, j);
	json_object_end(j);
	json_uint(j, "leftovers_cleared", images->leftovers_cleared);
	json_uint(j, "recovering", counter_read(&images->recovery.waiting));
	json_uint(j, "recovered", counter_read(&images->recovery.recovered));
	json_uint(j, "quarantined", counter_read(&images->recovery.quarantined));
	json_object(j, "remake");
	json_uint(j, "waiting", counter_read(&images->remake.waiting));
	json_uint(j, "made", counter_read(&images->remake.made));
	json_uint(j, "failed", counter_read(&images->remake.failed));
	json_object_end(j);
	removals_json(source, j);
	objects_json(images, j);
	json_object(j, "missing");
	json_uint(j, "made", counter_read(&images->missing.made));
	json_uint(j, "failed", counter_read(&images->missing.failed));
	json_uint(j, "refused", counter_read(&images->missing.refused));
	json_object_end(j);
	json_object_end(j);
}

/* Requests from their first byte to the last of their response. Differences of the buckets are the
 * durations of an interval. */
static void uploads_json(const struct http_server *http, struct json *j)
{
	struct histogram_sum sum;

	io_durations_collect(&sum, http->io_counters, COUNT_OF(http->io_counters),
	                     ROUTE_CLASS_UPLOAD);
	json_object(j, "uploads");
	json_uint(j, "count", sum.count);
	json_double(j, "p50_ms", histogram_quantile(&sum, 0.5) / 1e6);
	json_double(j, "p90_ms", histogram_quantile(&sum, 0.9) / 1e6);
	json_double(j, "p99_ms", histogram_quantile(&sum, 0.99) / 1e6);
	json_array(j, "buckets");
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!sum.bucket[i])
			continue;
		json_object(j, NULL);
		json_ms(j, "below_ms", histogram_bucket_limit(i));
		json_uint(j, "count", sum.bucket[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void http_json(const struct report_source *source, struct json *j)
{
	const struct http_server *http = source->http;
	uint64_t by_class[6] = { 0 };
	struct io_totals totals;

	io_totals_collect(&totals, http->io_counters, COUNT_OF(http->io_counters));
	for (unsigned i = 0; response_status_at(i); i++)
		by_class[response_status_at(i) / 100] += totals.responses[i];
	json_object(j, "http");
	json_uint(j, "connections", counter_read(&http->connections));
	server_counters_json(source->counters, COUNTERS_HTTP, j);
	json_uint(j, "received_bytes", totals.received_bytes);
	json_uint(j, "sent_bytes", totals.sent_bytes);
	json_object(j, "responses");
	for (unsigned i = 1; i < COUNT_OF(by_class); i++) {
		const char class[] = { (char)('0' + i), 'x', 'x', '\0' };

		json_uint(j, class, by_class[i]);
	}
	json_object_end(j);
	json_object(j, "rejections");
	for (unsigned i = 0; problem_type_at(i); i++)
		if (totals.rejections[i])
			json_uint(j, problem_type_at(i), totals.rejections[i]);
	json_object_end(j);
	uploads_json(http, j);
	json_object_end(j);
}

static void memory_json(const struct report_source *source, struct json *j)
{
	struct budget_usage usage;
	uint64_t used, kept;

	pool_usage(&used, &kept);
	budget_usage(&source->images->budget, &usage);
	json_object(j, "memory");
	json_uint(j, "budget_bytes", usage.total);
	json_uint(j, "reserved_body_bytes",
	          usage.used[BUDGET_SMALL_BODY] + usage.used[BUDGET_BODY]);
	json_uint(j, "reserved_image_bytes", usage.used[BUDGET_IMAGE]);
	json_uint(j, "waited", usage.wait_count);
	json_uint(j, "pool_used_bytes", used);
	json_uint(j, "pool_kept_bytes", kept);
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

void stats_report(const struct report_source *source, struct text *to)
{
	uint64_t uptime_ns = clock_ns() - source->start_ns;
	struct json j;

	json_init(&j, to);
	json_object(&j, NULL);
	json_double(&j, "uptime_s", (double)uptime_ns / (double)NS_PER_S);
	/* Relaxed: only the flag matters. */
	json_bool(&j, "draining",
	          atomic_load_explicit(&source->http->is_draining, memory_order_relaxed));
	images_json(source, &j);
	overload_json(source, &j);
	store_json(source, &j);
	http_json(source, &j);
	memory_json(source, &j);
	log_json(&j);
	graph_stats_json(source->graph, &j);
	json_object_end(&j);
	text_puts(to, "\n");
}
