/*
 * top.c - darkroomd ctl top: a table of differences between documents of /stats, which refreshes.
 *
 * darkroom-http(7) describes the documents, which are not trusted. They arrive as events of
 * /stats/stream over the control socket. The operator's page computes the same figures. Each table
 * is drawn over the last one, with the escapes of ANSI terminals. The terminal's modes stay as they
 * are, so a signal may end the process at any time. Main thread.
 */
#include "ctl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "telemetry/histogram.h"

#define LINE_MAX_BYTES (1 << 20) /* a document is shorter */
#define TABLE_MAX (64 << 10)
#define DATA "data: "
#define SILENCE_S 3 /* without figures, after which the table has a line about it */
#define ONCE_SILENCE_S 20
#define ONCE_DOCUMENTS 3 /* rates of one second */
#define DOCUMENTS_MAX 11 /* half a second each: the figures are those of five seconds */
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

/* The last documents, the newest first. */
struct history {
	unsigned count;
	char *json[DOCUMENTS_MAX]; /* of malloc() */
};

static void history_clear(struct history *h)
{
	while (h->count)
		free(h->json[--h->count]);
}

/* Adds a copy of a document. If the daemon was restarted, the earlier documents are dropped.
 * Returns 0, -EPROTO if the text is not a document of /stats, or -ENOMEM. */
static int history_add(struct history *h, const char *json)
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
		history_clear(h);
	if (h->count == DOCUMENTS_MAX)
		free(h->json[--h->count]);
	memmove(h->json + 1, h->json, h->count * sizeof h->json[0]);
	h->json[0] = copy;
	h->count++;
	return 0;
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
	            floor(fmod(up_s, 3600) / 60), connections, plural((uint64_t)connections));
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

/* Appends the lines for the last document; h->count >= 1. All is printable ASCII. */
static void put_table(const struct history *h, struct text *to)
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

/* ---- the daemon and the terminal ---- */

struct top {
	char path[CONF_SOCKET_MAX];
	int silence_s;
	FILE *daemon; /* NULL: not connected */
	struct history history;
	char line[LINE_MAX_BYTES], table[TABLE_MAX];
};

/* Connects if there is no connection. Returns 0 or -errno. */
static int connect_daemon(struct top *t)
{
	const struct timeval wait = { .tv_sec = t->silence_s };
	int fd = t->daemon ? -1 : ctl_connect(t->path);

	if (t->daemon)
		return 0;
	/* EPIPE: the daemon refuses, and its answer can still be read. */
	if (fd >= 0 && (send(fd, "top\n", 4, MSG_NOSIGNAL) == 4 || errno == EPIPE) &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
	    (t->daemon = fdopen(fd, "r")))
		return 0;
	int err = -errno;

	if (fd >= 0)
		close(fd);
	return err;
}

/* Reads a line without its end. Returns false with the reason in errno; 0: the connection ended. */
static bool read_line(struct top *t)
{
	errno = 0;
	bool is_read = fgets(t->line, sizeof t->line, t->daemon);

	t->line[strcspn(t->line, "\n")] = '\0';
	return is_read;
}

/* Reads until a document has been added. Returns NULL, or why that failed: one line of text. */
static const char *read_document(struct top *t)
{
	while (read_line(t)) {
		if (strncmp(t->line, DATA, strlen(DATA)) == 0) {
			int err = history_add(&t->history, t->line + strlen(DATA));

			return err == -EPROTO ? "the figures are those of another version"
			       : err          ? strerror(-err)
			                      : NULL;
		}
		if ((*t->line == '1' || *t->line == '2') && read_line(t)) { /* why it refuses */
			for (char *p = t->line; *p; p++)
				*p = *p >= 0x20 && *p < 0x7F ? *p : '?';
			return t->line;
		}
	}
	return errno ? ctl_reason(errno) : "the daemon has closed the connection";
}

/* Prints the table. live: over the last one, and as much as the terminal has room for. */
static bool print_table(struct top *t, bool is_live, const char *trouble)
{
	struct winsize size = { 0 };
	int rows = 0, columns;
	struct text text;

	text_init(&text, t->table, sizeof t->table);
	if (trouble)
		text_printf(&text, "%s; retrying\n", trouble);
	if (t->history.count)
		put_table(&t->history, &text);
	if (is_live && (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row))
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	columns = is_live ? size.ws_col : (int)text.length;
	fputs(is_live ? "\033[H" : "", stdout);
	for (char *line = t->table, *end; (end = strchr(line, '\n')); line = end + 1)
		if (!is_live || ++rows < size.ws_row) {
			*end = '\0';
			printf("%.*s%s\n", columns, line, is_live ? "\033[K" : "");
		}
	fputs(is_live ? "\033[J" : "", stdout);
	return fflush(stdout) == 0 && !ferror(stdout);
}

static int run(struct top *t, bool is_live)
{
	for (;;) {
		int err = connect_daemon(t);
		const char *trouble = err ? ctl_reason(-err) : read_document(t);

		if (trouble && (!is_live || !t->history.count)) {
			fprintf(stderr, "darkroomd ctl: %s: %s\n", t->path, trouble);
			return CTL_REFUSED;
		}
		if (!is_live && t->history.count < ONCE_DOCUMENTS)
			continue;
		if (!print_table(t, is_live, trouble)) {
			perror("darkroomd ctl: standard output");
			return EXIT_FAILURE;
		}
		if (!is_live)
			return CTL_DONE;
		if (!trouble)
			continue;
		if (t->daemon)
			fclose(t->daemon);
		t->daemon = NULL;
		sleep(1);
	}
}

int top_run(const struct conf *conf, bool is_once)
{
	static struct top t;
	const char *type = getenv("TERM");
	bool is_live = !is_once && isatty(STDOUT_FILENO) && type && strcmp(type, "dumb") != 0;
	int status = ctl_find(conf, t.path);

	t.silence_s = is_live ? SILENCE_S : ONCE_SILENCE_S;
	if (status == CTL_DONE)
		status = run(&t, is_live);
	if (t.daemon)
		fclose(t.daemon);
	history_clear(&t.history);
	return status;
}
