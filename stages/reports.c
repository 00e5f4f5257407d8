/*
 * reports.c - what the daemon does: as JSON, in Prometheus' text format, and the quotas of tokens.
 *
 * One table has the figures of both formats. Metrics have base units. Labels have few values:
 * nothing that a client sends becomes one. Any thread.
 */
#include "app.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

#include "access/tokens.h"
#include "background/background.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "conn/http_server.h"
#include "image/image_service.h"
#include "jail/jail.h"
#include "log/log.h"
#include "s3/s3_client.h"
#include "sched/report/graph_report.h"
#include "telemetry/counter.h"
#include "telemetry/histogram.h"
#include "telemetry/metrics_text.h"
#include "telemetry/process.h"

#define TOKENS_OF_STATS 1000 /* of at most 160 bytes each */
#define TOKENS_OF_QUOTAS 400 /* lines of at most 160 bytes, in an answer of 64 KB */

#ifdef __clang__
#define COMPILER __VERSION__ /* includes its name */
#else
#define COMPILER "gcc " __VERSION__
#endif

/* ---- the table ---- */

/* What one report is made of, beside the counters of the program's parts. */
struct report {
	const struct report_source *source;
	struct admission_report admission;
	struct usage_total usage;
	struct budget_usage budget;
	struct log_totals log;
	uint64_t is_ready, is_outdated, is_away, leftovers, pool_used, pool_kept;
	uint64_t body_bytes; /* of the budget */
	uint64_t free_bytes, size_bytes;
	bool has_disk;
};

/* An object of /stats, or what only /metrics has. Some have no figures at times: see has(). */
enum section {
	STATE,
	HTTP,
	IMAGES,
	OVERLOAD,
	MEMORY,
	DISK, /* of files */
	STORE,
	FAILURES,
	REMOVED,
	KEPT,
	S3,
	MISSING,
	REMAKE,
	LOG,
	DROPPED,
	SECTION_COUNT
};

enum owner { COUNTERS, BACKGROUND, SERVER, SERVICE, OBJECTS, IO, CONFIGURED, REPORT };

/* A figure of both formats. */
struct figure {
	enum section section;
	enum owner owner;
	size_t offset;      /* in the owner */
	const char *member; /* of /stats; NULL: not there */
	const char *metric; /* with its label; NULL: not in /metrics */
	const char *help;   /* NULL: the metric has the name of the one before it */
};

/* A word of that type at this place. */
#define OF(owner, type, x)         \
	owner, offsetof(type, x) + \
		       0 * sizeof(char[sizeof((type *)0)->x == sizeof(uint64_t) ? 1 : -1])
#define COUNTERS(x) OF(COUNTERS, struct server_counters, x)
#define BACKGROUND(x) OF(BACKGROUND, struct background, x)
#define SERVER(x) OF(SERVER, struct http_server, x)
#define SERVICE(x) OF(SERVICE, struct image_service, x)
#define OBJECTS(x) OF(OBJECTS, struct s3_counters, x)
#define IO(x) OF(IO, struct io_counters, x)
#define CONFIGURED(x) OF(CONFIGURED, struct conf, x)
#define REPORT(x) OF(REPORT, struct report, x)
#define LABEL(name, label, value) "darkroom_" name "{" label "=\"" value "\"}"

/* clang-format off */
static const struct figure figures[] = {
	{ STATE, REPORT(is_ready), NULL, "darkroom_ready", "Whether /readyz returns 200." },
	{ STATE, REPORT(is_outdated), NULL, "darkroom_tokens_outdated",
	  "Whether access.tokens_file is invalid, so that the earlier tokens apply." },

	{ HTTP, SERVER(connections), "connections", "darkroom_http_connections", "Open connections." },
	{ HTTP, CONFIGURED(limits.connections), NULL, "darkroom_http_connections_limit",
	  "limits.connections." },
	{ HTTP, COUNTERS(connections_accepted), "connections_accepted",
	  "darkroom_http_connections_accepted_total", "Connections accepted." },
	{ HTTP, COUNTERS(connections_rejected), "connections_rejected",
	  "darkroom_http_connections_rejected_total",
	  "Connections over limits.connections or connections_per_client." },
	{ HTTP, COUNTERS(requests), "requests", "darkroom_http_requests_total",
	  "Requests whose header was complete or invalid." },
	{ HTTP, COUNTERS(uploads_replayed), "uploads_replayed", "darkroom_http_uploads_replayed_total",
	  "Uploads that were answered by the images of an earlier one, by Idempotency-Key." },
	{ HTTP, IO(received_bytes), "received_bytes", "darkroom_http_received_bytes_total",
	  "Bytes received from clients." },
	{ HTTP, IO(sent_bytes), "sent_bytes", "darkroom_http_sent_bytes_total",
	  "Bytes sent to clients." },

	{ IMAGES, SERVICE(admission.in_flight), "in_flight", "darkroom_images_in_flight",
	  "Images admitted and not yet stored." },
	{ IMAGES, CONFIGURED(limits.images_in_flight), NULL, "darkroom_images_in_flight_limit",
	  "limits.images_in_flight." },
	{ IMAGES, COUNTERS(images_stored), "stored", "darkroom_images_stored_total",
	  "Images stored with all variants." },
	{ IMAGES, COUNTERS(last_stored_ns), "last_stored_ns", NULL, NULL },
	{ IMAGES, COUNTERS(images_failed), "failed", "darkroom_images_failed_total",
	  "Images that failed after they were admitted." },
	{ IMAGES, COUNTERS(input_bytes_stored), "input_bytes_stored",
	  "darkroom_images_input_bytes_total", "Bytes of uploaded files whose images were stored." },
	{ IMAGES, COUNTERS(output_bytes_stored), "output_bytes_stored",
	  "darkroom_images_output_bytes_total", "Bytes of variants stored." },
	{ IMAGES, COUNTERS(images_damaged), "damaged", LABEL("degradations_total", "kind", "damaged"),
	  "Images stored with a defect, by kind." },

	{ OVERLOAD, REPORT(admission.waited), "waited", "darkroom_overload_waited_total",
	  "Uploads that waited to be admitted." },
	{ OVERLOAD, REPORT(admission.waiting), "waiting", "darkroom_overload_waiting",
	  "Uploads that wait to be admitted." },
	{ OVERLOAD, BACKGROUND(remake.backfilled), "backfilled", "darkroom_overload_backfilled_total",
	  "Images stored without variants that are made when the load has gone." },
	{ OVERLOAD, SERVICE(client_gone), "client_gone",
	  LABEL("overload_dropped_total", "reason", "client_gone"),
	  "Admitted images, or steps of them, that were no longer wanted." },
	{ OVERLOAD, SERVICE(too_late), "too_late",
	  LABEL("overload_dropped_total", "reason", "too_late"), NULL },

	{ MEMORY, REPORT(budget.total), "budget_bytes", "darkroom_memory_budget_bytes",
	  "limits.memory_budget." },
	{ MEMORY, REPORT(body_bytes), "reserved_body_bytes",
	  LABEL("memory_reserved_bytes", "share", "body"), "Reserved bytes of the budget, by use." },
	{ MEMORY, REPORT(budget.used[BUDGET_IMAGE]), "reserved_image_bytes",
	  LABEL("memory_reserved_bytes", "share", "image"), NULL },
	{ MEMORY, REPORT(budget.wait_count), "waited", "darkroom_memory_waits_total",
	  "Reservations that had to wait." },
	{ MEMORY, REPORT(pool_used), "pool_used_bytes", "darkroom_pool_used_bytes",
	  "Bytes of buffers in use." },
	{ MEMORY, REPORT(pool_kept), "pool_kept_bytes", "darkroom_pool_kept_bytes",
	  "Bytes of free buffers kept for reuse." },

	{ DISK, REPORT(free_bytes), NULL, "darkroom_store_free_bytes",
	  "Free bytes of the store's file system." },
	{ DISK, REPORT(size_bytes), NULL, "darkroom_store_size_bytes",
	  "Size of the store's file system." },
	{ STORE, SERVICE(store.flushes), "flushes", "darkroom_store_flushes_total",
	  "Flushes of the file system." },
	{ STORE, REPORT(leftovers), "leftovers_cleared", NULL, NULL },
	{ STORE, BACKGROUND(recovery.waiting), "recovering", "darkroom_store_recovering",
	  "Spooled images that wait to be processed again." },
	{ STORE, BACKGROUND(recovery.made), "recovered", "darkroom_store_recovered_total",
	  "Spooled images stored." },
	{ STORE, BACKGROUND(recovery.failed), "quarantined", "darkroom_store_quarantined_total",
	  "Spooled images that could not be processed." },
	{ STORE, BACKGROUND(remake.damaged), "damaged",
	  LABEL("store_damaged_files_total", "made", "again"),
	  "Damaged files that GETs found, by whether they are made again." },
	{ STORE, BACKGROUND(remake.lost), "lost", LABEL("store_damaged_files_total", "made", "never"),
	  NULL },
	{ FAILURES, COUNTERS(store_full), "full", LABEL("store_failures_total", "reason", "full"),
	  "Images that could not be stored, by reason." },
	{ FAILURES, COUNTERS(store_failed), "other", LABEL("store_failures_total", "reason", "other"),
	  NULL },
	{ STORE, COUNTERS(files_left_out), "left_out", "darkroom_files_left_out_total",
	  "AVIFs and WebPs that could not be made; their images were stored without them." },
	{ REMOVED, BACKGROUND(sweep.removed[SWEEP_EXPIRED]), "expired",
	  LABEL("store_removed_total", "reason", "expired"),
	  "Images removed because of their age or the store's size, by reason." },
	{ REMOVED, BACKGROUND(sweep.removed[SWEEP_TOO_OLD]), "max_age",
	  LABEL("store_removed_total", "reason", "max_age"), NULL },
	{ REMOVED, BACKGROUND(sweep.removed[SWEEP_TOO_MUCH]), "max_bytes",
	  LABEL("store_removed_total", "reason", "max_bytes"), NULL },
	{ REMOVED, BACKGROUND(sweep.removed_bytes), "bytes", "darkroom_store_removed_bytes_total",
	  "Bytes of these images." },
	{ KEPT, REPORT(usage.all.images), "images", "darkroom_store_images", "Images stored." },
	{ KEPT, REPORT(usage.all.bytes), "bytes", "darkroom_store_bytes", "Bytes of stored files." },

	{ S3, OBJECTS(gets), "gets", LABEL("s3_operations_total", "operation", "get"),
	  "Operations of the S3 store, by kind." },
	{ S3, OBJECTS(puts), "puts", LABEL("s3_operations_total", "operation", "put"), NULL },
	{ S3, OBJECTS(deletes), "deletes", LABEL("s3_operations_total", "operation", "delete"), NULL },
	{ S3, OBJECTS(lists), "lists", LABEL("s3_operations_total", "operation", "list"), NULL },
	{ S3, OBJECTS(timeouts), "timeouts", LABEL("s3_attempt_failures_total", "reason", "timeout"),
	  "Attempts of operations that failed, by reason." },
	{ S3, OBJECTS(broken), "broken", LABEL("s3_attempt_failures_total", "reason", "connection"),
	  NULL },
	{ S3, OBJECTS(rejected), "rejected", LABEL("s3_attempt_failures_total", "reason", "status"),
	  NULL },
	{ S3, OBJECTS(damaged), "damaged", LABEL("s3_attempt_failures_total", "reason", "damaged"),
	  NULL },
	{ S3, OBJECTS(retried), "retried", "darkroom_s3_retries_total",
	  "Attempts after the first one of an operation." },
	{ S3, OBJECTS(failed), "failed", "darkroom_s3_failures_total",
	  "Operations that failed after all attempts." },
	{ S3, OBJECTS(refused), "refused", "darkroom_s3_refused_total",
	  "Operations refused while the S3 store was away." },
	{ S3, OBJECTS(outages), "outages", "darkroom_s3_outages_total",
	  "Times at which the S3 store went away." },
	{ S3, OBJECTS(tombstones), "tombstones", "darkroom_s3_tombstones_removed_total",
	  "Tombstones of removed images that were old enough to be removed." },
	{ S3, OBJECTS(foreign), "foreign", "darkroom_s3_foreign_keys_total",
	  "Keys in lists of the bucket that are not of this daemon." },
	{ S3, OBJECTS(skew_s), "skew_s", "darkroom_s3_clock_skew_seconds",
	  "Seconds by which this node's clock is off that of the S3 store; 0: at most 2." },
	{ S3, OBJECTS(in_flight), "in_flight", "darkroom_s3_in_flight",
	  "Operations of the S3 store in progress." },
	{ S3, REPORT(is_away), NULL, "darkroom_s3_away", "1 while the S3 store does not answer." },
	{ S3, SERVICE(storage.spooling.bytes), "spooled_bytes", "darkroom_s3_spooled_bytes",
	  "Bytes of uploads that wait in files for the S3 store." },

	{ MISSING, BACKGROUND(remake.missing_made), "made", "darkroom_store_missing_made_total",
	  "Images whose missing variants were made for a GET." },
	{ MISSING, BACKGROUND(remake.missing_failed), "failed", "darkroom_store_missing_failed_total",
	  "Images whose missing variants could not be made." },
	{ MISSING, BACKGROUND(remake.missing_refused), "refused",
	  "darkroom_store_missing_refused_total",
	  "Requests for missing variants that were refused." },
	{ REMAKE, BACKGROUND(remake.feeder.waiting), "waiting", "darkroom_store_remake_waiting",
	  "Stored images that wait for variants." },
	{ REMAKE, BACKGROUND(remake.feeder.made), "made", "darkroom_store_remade_total",
	  "Stored images that got variants." },
	{ REMAKE, BACKGROUND(remake.feeder.failed), "failed", "darkroom_store_remake_failed_total",
	  "Stored images that could not get them." },

	{ LOG, REPORT(log.messages), "messages", LABEL("log_lines_total", "kind", "message"),
	  "Lines logged, by kind." },
	{ LOG, REPORT(log.access), "access", LABEL("log_lines_total", "kind", "access"), NULL },
	{ LOG, REPORT(log.suppressed), "suppressed", NULL, NULL },
	{ LOG, REPORT(log.failed), "failed", LABEL("log_dropped_total", "kind", "unwritten"),
	  "Lines lost: the log's reader was too slow, or they could not be written." },
	{ DROPPED, REPORT(log.messages_dropped), "messages",
	  LABEL("log_dropped_total", "kind", "message"), NULL },
	{ DROPPED, REPORT(log.access_dropped), "access", LABEL("log_dropped_total", "kind", "access"),
	  NULL },
};
/* clang-format on */

static void collect(struct report *r, const struct report_source *source)
{
	struct image_service *images = source->parts->images;
	struct http_server *http = source->parts->http;
	struct s3_client *objects = images->storage.objects;

	*r = (struct report){
		.source = source,
		.usage = usage_total(&images->store.usage),
		.is_outdated = atomic_load(&http->tokens.is_outdated),
		.is_away = objects && s3_is_away(&objects->counters),
		.leftovers = images->leftovers_cleared,
	};
	admission_report(&images->admission, &r->admission);
	budget_usage(&images->budget, &r->budget);
	r->body_bytes = r->budget.used[BUDGET_SMALL_BODY] + r->budget.used[BUDGET_BODY];
	log_totals(&r->log);
	pool_usage(&r->pool_used, &r->pool_kept);
}

/* The file system may be slow to answer, so only a report that has its figures asks for them. */
static void collect_disk(struct report *r)
{
	struct statvfs fs;
	const char *why;

	r->is_ready = !http_server_not_ready(r->source->parts->http, true, &why);
	r->has_disk = fstatvfs(r->source->parts->images->store.root_fd, &fs) == 0;
	if (!r->has_disk)
		return;
	r->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	r->size_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
}

static uint64_t read_figure(const struct report *r, const struct figure *f)
{
	struct s3_client *objects = r->source->parts->images->storage.objects;
	const void *const owner[] = {
		[COUNTERS] = r->source->parts->counters,
		[BACKGROUND] = r->source->parts->background,
		[SERVER] = r->source->parts->http,
		[SERVICE] = r->source->parts->images,
		[OBJECTS] = objects ? &objects->counters : NULL,
		[CONFIGURED] = http_server_conf(r->source->parts->http),
		[REPORT] = r,
	};
	if (f->owner == IO)
		return io_counter_total(r->source->parts->http, f->offset);
	const void *word = (const char *)owner[f->owner] + f->offset;

	return f->owner < CONFIGURED ? counter_read(word) : *(const uint64_t *)word;
}

/* ---- GET /stats ---- */

static void figures_json(const struct report *r, enum section section, struct json *j)
{
	for (const struct figure *f = figures; f < figures + COUNT_OF(figures); f++)
		if (f->section == section && f->member)
			json_uint(j, f->member, read_figure(r, f));
}

static void section_json(const struct report *r, enum section section, const char *name,
                         struct json *j)
{
	json_object(j, name);
	figures_json(r, section, j);
	json_object_end(j);
}

static void overload_json(const struct report *r, struct json *j)
{
	const struct admission_report *a = &r->admission;

	json_object(j, "overload");
	figures_json(r, OVERLOAD, j);
	json_double(j, "backlog_s", a->backlog_s);
	json_double(j, "p90_s", a->p90_s);
	json_array(j, "degrade");
	for (unsigned i = 0; i < a->degrade.count; i++) {
		json_object(j, NULL);
		json_string(j, "step", a->degrade.step[i].text);
		json_uint(j, "images", a->degraded[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "classes");
	for (unsigned i = 0; i < a->class_count; i++) {
		json_object(j, NULL);
		json_string(j, "name", a->class[i].name);
		json_uint(j, "admitted", a->class[i].admitted);
		json_uint(j, "refused", a->class[i].refused);
		json_double(j, "target_s", a->class[i].target_s);
		json_double(j, "backlog_limit_s", a->class[i].limit_s);
		json_double(j, "rate", a->class[i].rate);
		json_uint(j, "level", a->class[i].level);
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

static void store_json(const struct report *r, struct json *j)
{
	const struct image_service *images = r->source->parts->images;

	json_object(j, "store");
	figures_json(r, STORE, j);
	section_json(r, FAILURES, "failures", j);
	section_json(r, REMAKE, "remake", j);
	section_json(r, REMOVED, "removed", j);
	section_json(r, MISSING, "missing", j);
	if (r->usage.is_on) {
		figures_json(r, KEPT, j);
		json_bool(j, "is_counted", r->usage.is_complete);
		json_array(j, "tokens");
		usage_each(&r->source->parts->images->store.usage, token_json,
		           &(struct tokens_left){ j, TOKENS_OF_STATS });
		json_array_end(j);
	}
	if (images->storage.objects) {
		json_object(j, "s3");
		figures_json(r, S3, j);
		json_bool(j, "is_away", r->is_away);
		json_object_end(j);
	}
	json_object_end(j);
}

/* Requests from their first byte to the last of their response. Differences of the buckets are the
 * durations of an interval. */
static void uploads_json(const struct http_server *http, struct json *j)
{
	struct histogram_sum sum;

	io_durations_collect(&sum, http, ROUTE_CLASS_UPLOAD);
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

static void http_json(const struct report *r, struct json *j)
{
	const struct http_server *http = r->source->parts->http;
	uint64_t by_class[6] = { 0 }, count;

	for (unsigned i = 0; response_status_at(i); i++)
		by_class[response_status_at(i) / 100] += IO_TOTAL(http, responses[i]);
	json_object(j, "http");
	figures_json(r, HTTP, j);
	json_object(j, "responses");
	for (unsigned i = 1; i < COUNT_OF(by_class); i++)
		json_uint(j, (const char[]){ (char)('0' + i), 'x', 'x', '\0' }, by_class[i]);
	json_object_end(j);
	json_object(j, "rejections");
	for (unsigned i = 0; problem_type_at(i); i++)
		if ((count = IO_TOTAL(http, rejections[i])))
			json_uint(j, problem_type_at(i), count);
	json_object_end(j);
	uploads_json(http, j);
	json_object_end(j);
}

void stats_report(const struct report_source *source, struct text *to)
{
	uint64_t uptime_ns = clock_ns() - source->start_ns;
	struct report r;
	struct json j = { .text = to };

	collect(&r, source);
	json_object(&j, NULL);
	json_double(&j, "uptime_s", (double)uptime_ns / (double)NS_PER_S);
	/* Relaxed: only the flag matters. */
	json_bool(&j, "draining",
	          atomic_load_explicit(&source->parts->http->is_draining, memory_order_relaxed));
	section_json(&r, IMAGES, "images", &j);
	overload_json(&r, &j);
	store_json(&r, &j);
	http_json(&r, &j);
	section_json(&r, MEMORY, "memory", &j);
	json_object(&j, "log");
	figures_json(&r, LOG, &j);
	section_json(&r, DROPPED, "dropped", &j);
	json_object_end(&j);
	graph_stats_json(source->graph, &j);
	json_object_end(&j);
	text_puts(to, "\n");
}

/* ---- GET /metrics ---- */

static bool has(const struct report *r, enum section section)
{
	switch (section) {
	case DISK:
		return r->has_disk;
	case KEPT:
		return r->usage.is_on && r->usage.is_complete;
	case S3:
		return r->source->parts->images->storage.objects;
	default:
		return true;
	}
}

static void responses(const struct http_server *http, struct metrics *m)
{
	static const char *const classes[IO_STATUS_CLASSES] = { "2xx", "3xx", "4xx", "5xx" };

	metrics_family(m, "darkroom_http_responses_total", "counter", "Responses, by status.");
	for (unsigned i = 0; response_status_at(i); i++) {
		const char code[] = { (char)('0' + response_status_at(i) / 100),
			              (char)('0' + response_status_at(i) / 10 % 10),
			              (char)('0' + response_status_at(i) % 10), '\0' };

		metrics_uint(m, LABELS({ "code", code }), IO_TOTAL(http, responses[i]));
	}
	metrics_family(m, "darkroom_rejections_total", "counter",
	               "Requests, images and form parts refused, by type of problem.");
	for (unsigned i = 0; problem_type_at(i); i++)
		metrics_uint(m, LABELS({ "reason", problem_type_at(i) }),
		             IO_TOTAL(http, rejections[i]));
	metrics_family(m, "darkroom_http_route_responses_total", "counter",
	               "Responses, by route, method and class of status.");
	for (unsigned i = 0; i < ROUTE_CLASS_COUNT; i++)
		for (unsigned s = 0; s < IO_STATUS_CLASSES; s++)
			metrics_uint(m,
			             LABELS({ "route", route_labels[i].route },
			                    { "method", route_labels[i].method },
			                    { "status", classes[s] }),
			             IO_TOTAL(http, requests[i][s]));
}

static void durations(const struct http_server *http, struct metrics *m)
{
	struct histogram_sum sum;

	metrics_family(m, "darkroom_http_request_duration_seconds", "histogram",
	               "From a request's first byte to the last of its response.");
	for (unsigned i = 0; i < ROUTE_CLASS_COUNT; i++) {
		io_durations_collect(&sum, http, i);
		metrics_histogram(m,
		                  LABELS({ "route", route_labels[i].route },
		                         { "method", route_labels[i].method }),
		                  &sum, METRICS_FINE);
	}
}

static void formats(const struct server_counters *c, struct metrics *m)
{
	static const char *const reasons[JAIL_STATUSES] = {
		[JAIL_DAMAGED] = "damaged", [JAIL_NO_MEMORY] = "memory",
		[JAIL_CRASHED] = "crashed", [JAIL_BUSY] = "busy",
		[JAIL_OFF] = "off",         [JAIL_UNSUPPORTED] = "unsupported",
	};

	metrics_family(m, "darkroom_input_images_total", "counter",
	               "Images admitted, by the format of their files and how they ended.");
	for (unsigned f = FILE_JPEG; f < FILE_FORMATS; f++) {
		metrics_uint(m, LABELS({ "format", file_format_word(f) }, { "result", "stored" }),
		             counter_read(&c->stored_by[f]));
		metrics_uint(m, LABELS({ "format", file_format_word(f) }, { "result", "failed" }),
		             counter_read(&c->failed_by[f]));
	}
	metrics_family(m, "darkroom_decode_failures_total", "counter",
	               "Files that darkroom-decode did not decode or make, by format and reason.");
	for (unsigned f = FILE_PNG; f < FILE_FORMATS; f++)
		for (unsigned r = JAIL_DAMAGED; r < JAIL_STATUSES; r++)
			metrics_uint(
				m,
				LABELS({ "format", file_format_word(f) }, { "reason", reasons[r] }),
				counter_read(&jail_counters(f)->faults[r]));
	metrics_family(m, "darkroom_decode_cpu_seconds_total", "counter",
	               "CPU time of the processes of darkroom-decode, by format.");
	for (unsigned f = FILE_PNG; f < FILE_FORMATS; f++)
		metrics_seconds(m, LABELS({ "format", file_format_word(f) }),
		                counter_read(&jail_counters(f)->cpu_ns));
}

static void seconds(struct metrics *m, const char *name, const char *help, double value)
{
	metrics_family(m, name, "gauge", help);
	metrics_seconds(m, NULL, (uint64_t)(value * (double)NS_PER_S));
}

static void overload(const struct admission_report *a, struct metrics *m)
{
	metrics_family(m, "darkroom_overload_admitted_total", "counter",
	               "Uploads admitted, by class.");
	for (unsigned i = 0; i < a->class_count; i++)
		metrics_uint(m, LABELS({ "class", a->class[i].name }), a->class[i].admitted);
	metrics_family(m, "darkroom_overload_refused_total", "counter",
	               "Uploads refused before their bodies were read, by class.");
	for (unsigned i = 0; i < a->class_count; i++)
		metrics_uint(m, LABELS({ "class", a->class[i].name }), a->class[i].refused);
	metrics_family(m, "darkroom_overload_level", "gauge",
	               "Steps of overload.degrade that are in, by class.");
	for (unsigned i = 0; i < a->class_count; i++)
		metrics_uint(m, LABELS({ "class", a->class[i].name }), a->class[i].level);
	if (a->degrade.count)
		metrics_family(m, "darkroom_overload_degraded_total", "counter",
		               "Images stored with a step of overload.degrade.");
	for (unsigned i = 0; i < a->degrade.count; i++)
		metrics_uint(m, LABELS({ "step", a->degrade.step[i].text }), a->degraded[i]);
	seconds(m, "darkroom_overload_backlog_seconds", "Time that the admitted images take.",
	        a->backlog_s);
	seconds(m, "darkroom_overload_p90_seconds",
	        "Last 90th percentile of the response times, of the worst class and size.",
	        a->p90_s);
}

void metrics_report(const struct report_source *source, struct text *to)
{
	struct metrics m = { .text = to };
	struct report r;

	collect(&r, source);
	collect_disk(&r);
	metrics_family(&m, "darkroom_build_info", "gauge", "What this daemon was built from.");
	metrics_uint(&m, LABELS({ "version", darkroom_version }, { "compiler", COMPILER }), 1);
	for (const struct figure *f = figures; f < figures + COUNT_OF(figures); f++)
		if (f->metric && has(&r, f->section))
			metrics_value(&m, f->metric, f->help, read_figure(&r, f));
	responses(source->parts->http, &m);
	durations(source->parts->http, &m);
	formats(source->parts->counters, &m);
	overload(&r.admission, &m);
	graph_metrics(source->graph, &m);
	process_metrics(source->process, &m);
}

/* ---- darkroomd ctl quota ---- */

struct quotas {
	struct usage *usage;
	struct text *to;
	unsigned count;
};

struct token_search {
	const char *name;
	struct usage_token found;
};

static void find_token(const struct usage_token *token, void *arg)
{
	struct token_search *search = arg;

	if (strcmp(token->name, search->name) == 0)
		search->found = *token;
}

static void put_figure(struct text *to, const char *what, uint64_t used, uint64_t limit)
{
	text_printf(to, "%s %" PRIu64, what, used);
	if (limit)
		text_printf(to, " of %" PRIu64, limit);
}

static void put_token(const char *name, const struct token_quota *quota, void *arg)
{
	struct quotas *r = arg;
	struct token_search search = { .name = name };

	if (r->count++ >= TOKENS_OF_QUOTAS)
		return;
	usage_each(r->usage, find_token, &search);
	text_printf(r->to, "%s:", name);
	put_figure(r->to, " images", search.found.stored.images, quota->images);
	put_figure(r->to, ", bytes", search.found.stored.bytes, quota->bytes);
	put_figure(r->to, ", uploads today", search.found.uploads, quota->uploads);
	text_puts(r->to, "\n");
}

void quota_report(struct tokens *tokens, struct usage *usage, struct text *to)
{
	struct quotas r = { .usage = usage, .to = to };
	struct usage_total total = usage_total(usage);

	if (!total.is_on) {
		text_puts(to, "no token has a quota, so nothing is counted\n");
		return;
	}
	tokens_each(tokens, put_token, &r);
	if (r.count > TOKENS_OF_QUOTAS)
		text_printf(to, "and %u other tokens\n", r.count - TOKENS_OF_QUOTAS);
	if (!total.is_complete)
		text_puts(to, "the stored images are still being counted\n");
}
