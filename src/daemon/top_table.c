/* top_table.c - looks members up in JSON, and subtracts. Main thread. */
#include "top_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "telemetry/histogram.h"

#define NAME_MAX_BYTES 32
#define MIB 1048576

/* Two documents, or two parts of them. then: NULL if the earlier one has no such part. */
struct change {
	const char *now, *then;
	double s; /* between them; 0: they are the same */
};

/* ---- members; what is not there, or has another type, is 0, "" or NULL ---- */

/* Returns the value at a path of names, such as "http.connections". */
static const char *at(const char *value, const char *path)
{
	char name[NAME_MAX_BYTES];

	while (value && *path) {
		size_t length = strcspn(path, ".");

		assert(length < sizeof name);
		memcpy(name, path, length);
		name[length] = '\0';
		value = json_reader_member(value, name);
		path += length + (path[length] == '.');
	}
	return value;
}

static const char *next(const char *container, const char *value)
{
	return container ? json_reader_next(container, value) : NULL;
}

static double number(const char *value, const char *path)
{
	double x;

	return json_reader_double(at(value, path), &x) ? x : 0;
}

static double sum(const char *container)
{
	double all = 0;

	for (const char *value = NULL; (value = next(container, value));)
		all += number(value, "");
	return all;
}

static void name_of(const char *value, const char *path, char to[NAME_MAX_BYTES])
{
	if (!json_reader_ascii(at(value, path), to, NAME_MAX_BYTES))
		*to = '\0';
}

static struct change part(struct change c, const char *path)
{
	return (struct change){ at(c.now, path), at(c.then, path), c.s };
}

/* What a sum has grown by. Sums of threads become less when threads end. */
static double growth(struct change c, const char *path)
{
	return c.s > 0 ? fmax(number(c.now, path) - number(c.then, path), 0) : 0;
}

static double per_s(struct change c, const char *path)
{
	return c.s > 0 ? growth(c, path) / c.s : 0;
}

/* ---- history ---- */

int top_history_add(struct top_history *h, const char *json)
{
	const char *root = json_reader_check(json, strlen(json));
	char policy[NAME_MAX_BYTES];

	name_of(root, "scheduler.policy", policy);
	if (!*policy || !next(at(root, "stages"), NULL))
		return -EPROTO;
	char *copy = strdup(root);

	if (!copy)
		return -ENOMEM;
	if (h->count && number(h->json[0], "uptime_s") > number(copy, "uptime_s"))
		top_history_clear(h);
	if (h->count == TOP_DOCUMENTS)
		free(h->json[--h->count]);
	memmove(h->json + 1, h->json, h->count * sizeof h->json[0]);
	h->json[0] = copy;
	h->count++;
	return 0;
}

void top_history_clear(struct top_history *h)
{
	while (h->count)
		free(h->json[--h->count]);
}

/* ---- lines ---- */

/* Appends three digits that mean something. */
static void put_number(struct text *to, int width, double x)
{
	text_printf(to, "%*.*f", width, x >= 99.95 || x == floor(x) ? 0 : x >= 9.995 ? 1 : 2, x);
}

static void put_title(struct text *to, const char *now)
{
	const char *draining = at(now, "draining");
	double connections = number(now, "http.connections"), up_s = number(now, "uptime_s");
	char policy[NAME_MAX_BYTES];

	name_of(now, "scheduler.policy", policy);
	text_printf(to, "darkroomd: %spolicy %s, up %.0f:%02.0f h, %.0f connection%s\n",
	            draining && *draining == 't' ? "draining, " : "", policy, floor(up_s / 3600),
	            floor(fmod(up_s, 3600) / 60), connections, connections == 1 ? "" : "s");
}

/* Appends a quantile of the uploads of the buckets, or "-" if there were none, and what follows. */
static void put_quantile(struct text *to, const double *count, const double *ms, unsigned buckets,
                         double q, const char *behind)
{
	double left = 0;
	unsigned i;

	for (i = 0; i < buckets; i++)
		left += count[i] * q;
	bool is_empty = buckets == 0 || left <= 0;

	for (i = 0; i + 1 < buckets && (left -= count[i]) > 0;)
		i++;
	if (is_empty)
		text_puts(to, "-");
	else
		put_number(to, 0, ms[i] * 0.92); /* the middle of the bucket */
	text_puts(to, behind);
}

/* The documents leave out buckets without uploads. */
static void put_uploads(struct text *to, struct change buckets)
{
	double count[HISTOGRAM_BUCKETS], ms[HISTOGRAM_BUCKETS];
	const char *then = next(buckets.then, NULL);
	unsigned n = 0;

	for (const char *b = NULL; (b = next(buckets.now, b)) && n < HISTOGRAM_BUCKETS; n++) {
		ms[n] = number(b, "below_ms");
		count[n] = buckets.s > 0 ? number(b, "count") : 0;
		while (then && number(then, "below_ms") < ms[n])
			then = next(buckets.then, then);
		if (then && buckets.s > 0 && number(then, "below_ms") == ms[n])
			count[n] = fmax(count[n] - number(then, "count"), 0);
	}
	text_printf(to, "uploads of the last %.0f s: p50 ", buckets.s);
	put_quantile(to, count, ms, n, 0.5, ", p90 ");
	put_quantile(to, count, ms, n, 0.9, ", p99 ");
	put_quantile(to, count, ms, n, 0.99, " ms\n");
}

static void put_totals(struct text *to, struct change c)
{
	const char *steps = at(c.now, "overload.degrade");
	double rejected = sum(at(c.now, "http.rejections")), degraded = 0,
	       since = fmax(rejected - sum(at(c.then, "http.rejections")), 0);

	/* A step contains the steps before it. */
	for (const char *step = NULL; (step = next(steps, step));)
		degraded = fmax(degraded, number(step, "images"));
	put_number(to, 0, per_s(c, "images.stored"));
	text_printf(to, " images/s   %.0f stored   %.0f in flight   memory %.0f of %.0f MiB\n",
	            number(c.now, "images.stored"), number(c.now, "images.in_flight"),
	            round((number(c.now, "memory.reserved_body_bytes") +
	                   number(c.now, "memory.reserved_image_bytes")) /
	                  MIB),
	            floor(number(c.now, "memory.budget_bytes") / MIB));
	text_puts(to, "rejected ");
	put_number(to, 0, c.s > 0 ? since / c.s : 0);
	text_printf(to, "/s, %.0f in all   degraded %.0f\n", rejected, degraded);
}

static void put_stage(struct text *to, struct change c, const char *name)
{
	double out = growth(c, "events"),
	       in = out + number(c.now, "queued") - number(c.then, "queued"),
	       ms = growth(c, "service.sum_ms"), served = growth(c, "service.count");

	if (served <= 0) {
		ms = number(c.now, "service.sum_ms");
		served = number(c.now, "service.count");
	}
	text_printf(to, "%-14s %6.0f", name, number(c.now, "queued"));
	put_number(to, 9, c.s > 0 ? fmax(in, 0) / c.s : 0);
	put_number(to, 9, per_s(c, "events"));
	put_number(to, 8, served > 0 ? ms / served : 0);
	text_printf(to, " %6.2f %12.0f\n", per_s(c, "service.sum_ms") / 1000,
	            number(c.now, "events"));
}

static void put_stages(struct text *to, struct change stages)
{
	const char *then = NULL;
	char name[NAME_MAX_BYTES];

	text_puts(to, "\nstage           queue     in/s    out/s      ms  cores       events\n");
	for (const char *s = NULL; (s = next(stages.now, s));) {
		then = next(stages.then, then); /* a daemon's documents have the same order */
		name_of(s, "name", name);
		put_stage(to, (struct change){ s, then, stages.s }, name);
	}
}

static void put_rejections(struct text *to, const char *object)
{
	char name[NAME_MAX_BYTES];
	const char *value = NULL;

	if (!next(object, NULL))
		return;
	text_puts(to, "\n answers  rejected as\n");
	while ((value = json_reader_next_named(object, value, name, sizeof name)))
		text_printf(to, "%8.0f  %s\n", number(value, ""), name);
}

void top_table(const struct top_history *h, struct text *to)
{
	assert(h->count > 0);
	struct change c = { h->json[0], h->json[h->count - 1], 0 };

	c.s = number(c.now, "uptime_s") - number(c.then, "uptime_s");
	put_title(to, c.now);
	put_totals(to, c);
	put_uploads(to, part(c, "http.uploads.buckets"));
	put_stages(to, part(c, "stages"));
	put_rejections(to, at(c.now, "http.rejections"));
}
