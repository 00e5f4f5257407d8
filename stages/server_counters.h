/*
 * server_counters.h - the daemon's totals since startup, as one table for the struct, GET /stats
 * and GET /metrics.
 *
 * To add a counter, add a row. Any thread.
 */
#ifndef DARKROOM_SERVER_COUNTERS_H
#define DARKROOM_SERVER_COUNTERS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/check.h"

struct json;
struct text;

/* The object of /stats that has the counter. */
enum counter_section { COUNTERS_HTTP = 1, COUNTERS_IMAGES, COUNTERS_STORE_FAILURES };

/*
 * X(field, section, member of /stats, metric, label, its value, help of the metric). A metric with
 * a label has one row for each value, and these stand together; "" otherwise.
 */
/* clang-format off */
#define SERVER_COUNTERS(X)                                                              \
	X(connections_accepted, HTTP, "connections_accepted",                           \
	  "darkroom_http_connections_accepted_total", "", "",                           \
	  "Connections accepted.")                                                      \
	X(connections_rejected, HTTP, "connections_rejected",                           \
	  "darkroom_http_connections_rejected_total", "", "",                           \
	  "Connections over limits.connections or connections_per_client.")                                       \
	X(requests, HTTP, "requests",                                                   \
	  "darkroom_http_requests_total", "", "",                                       \
	  "Requests whose header was complete or invalid.")                             \
	X(uploads_replayed, HTTP, "uploads_replayed",                                   \
	  "darkroom_http_uploads_replayed_total", "", "",                               \
	  "Uploads that were answered by the images of an earlier one, by Idempotency-Key.")   \
	X(images_stored, IMAGES, "stored",                                              \
	  "darkroom_images_stored_total", "", "",                                       \
	  "Images stored with all variants.")                                           \
	X(images_failed, IMAGES, "failed",                                              \
	  "darkroom_images_failed_total", "", "",                                       \
	  "Images that failed after they were admitted.")                               \
	X(input_bytes_stored, IMAGES, "input_bytes_stored",                             \
	  "darkroom_images_input_bytes_total", "", "",                                  \
	  "Bytes of uploaded files whose images were stored.")                          \
	X(output_bytes_stored, IMAGES, "output_bytes_stored",                           \
	  "darkroom_images_output_bytes_total", "", "",                                 \
	  "Bytes of variants stored.")                                                  \
	X(images_damaged, IMAGES, "damaged",                                            \
	  "darkroom_degradations_total", "kind", "damaged",                             \
	  "Images stored with a defect, by kind.")          \
	X(store_full, STORE_FAILURES, "full",                                           \
	  "darkroom_store_failures_total", "reason", "full",                            \
	  "Images that could not be stored, by reason.")                                \
	X(store_failed, STORE_FAILURES, "other",                                        \
	  "darkroom_store_failures_total", "reason", "other",                           \
	  "Images that could not be stored, by reason.")
/* clang-format on */

struct server_counters {
#define X(field, section, member, metric, label, value, help) _Atomic uint64_t field;
	alignas(CACHE_LINE) SERVER_COUNTERS(X)
#undef X
};

static inline void server_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Appends the section's members to an open JSON object. */
void server_counters_json(const struct server_counters *c, enum counter_section section,
                          struct json *j);

/* Appends the section's families for /metrics. */
void server_counters_metrics(const struct server_counters *c, enum counter_section section,
                             struct text *to);

#endif
