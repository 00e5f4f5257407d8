/* server_counters.c - the table of totals as data, for the two reports. Any thread. */
#include "server_counters.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "telemetry/counter.h"
#include "telemetry/metrics_text.h"

static const struct row {
	size_t offset;
	enum counter_section section;
	const char *member, *metric, *label, *value, *help;
} rows[] = {
#define X(field, section, member, metric, label, value, help) \
	{ offsetof(struct server_counters, field),            \
	  COUNTERS_##section,                                 \
	  member,                                             \
	  metric,                                             \
	  label,                                              \
	  value,                                              \
	  help },
	SERVER_COUNTERS(X)
#undef X
};

static uint64_t read_row(const struct server_counters *c, const struct row *row)
{
	return counter_read(
		(const _Atomic uint64_t *)(const void *)((const char *)c + row->offset));
}

void server_counters_json(const struct server_counters *c, enum counter_section section,
                          struct json *j)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].section == section)
			json_uint(j, rows[i].member, read_row(c, &rows[i]));
}

void server_counters_metrics(const struct server_counters *c, enum counter_section section,
                             struct text *to)
{
	const char *family = "";

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];

		if (row->section != section)
			continue;
		if (strcmp(row->metric, family) != 0)
			metrics_family(to, row->metric, "counter", row->help);
		family = row->metric;
		metrics_uint(to, row->metric,
		             row->label[0] ? LABELS({ row->label, row->value }) : NULL,
		             read_row(c, row));
	}
}
