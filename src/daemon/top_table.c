/* top_table.c - lays the figures out. Columns that do not fit are left out. Main thread. */
#include "top_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define MOSTLY 0.9      /* a stage or thread that is busy for more of its time stands out */
#define CELL_MAX 64     /* bytes */
#define BAR_MAX 40      /* columns */
#define THREADS_SHOWN 4 /* of a stage; more are counted */
#define WIDE 60         /* columns, for words that can be left out */
#define MIB 1048576

/* ---- lines ---- */

static int width_of(struct top_look look)
{
	if (look.width < TOP_WIDTH_MIN)
		return TOP_WIDTH_MIN;
	return look.width > TOP_WIDTH_MAX ? TOP_WIDTH_MAX : look.width;
}

static struct top_line *add_line(struct top_table *t, enum top_style style)
{
	assert(t->count < TOP_LINES_MAX);
	struct top_line *line = &t->line[t->count++];

	line->style = style;
	line->text[0] = '\0';
	return line;
}

/* Appends to ASCII, up to the width. */
static void put(struct top_line *line, int width, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put(struct top_line *line, int width, const char *format, ...)
{
	size_t length = strlen(line->text), room = (size_t)width + 1;
	va_list args;

	if (length + 1 >= room)
		return;
	va_start(args, format);
	vsnprintf(line->text + length, room - length, format, args);
	va_end(args);
}

/* Three digits that mean something. */
static void print_number(char to[CELL_MAX], double x)
{
	snprintf(to, CELL_MAX, "%.*f", x >= 99.95 || x == floor(x) ? 0 : x >= 9.995 ? 1 : 2, x);
}

/* ---- the first line ---- */

static void print_uptime(char to[CELL_MAX], double uptime_s)
{
	unsigned minutes = uptime_s < 1e9 ? (unsigned)(uptime_s / 60) : 0;

	if (minutes < 1)
		snprintf(to, CELL_MAX, "%.0f s", floor(uptime_s));
	else if (minutes < 120)
		snprintf(to, CELL_MAX, "%u min", minutes);
	else if (minutes < 48 * 60)
		snprintf(to, CELL_MAX, "%u h", minutes / 60);
	else
		snprintf(to, CELL_MAX, "%u days", minutes / (24 * 60));
}

void top_title(const struct top_figures *f, struct top_look look, struct top_line *to)
{
	const struct top_document *d = f->now;
	int width = width_of(look);
	char uptime[CELL_MAX];

	print_uptime(uptime, d->uptime_s);
	to->style = TOP_PLAIN;
	to->text[0] = '\0';
	put(to, width, "%s%spolicy %s, up %s, %" PRIu64 " connection%s",
	    width < WIDE ? "" : "darkroomd: ", d->is_draining ? "draining, " : "", d->policy,
	    uptime, d->connections, d->connections == 1 ? "" : "s");
}

/* ---- figures, as many on a line as fit ---- */

static void put_item(struct top_table *t, int width, const char *item)
{
	struct top_line *line = &t->line[t->count - 1];
	size_t length = strlen(line->text);

	if (length && length + 3 + strlen(item) > (size_t)width) {
		line = add_line(t, TOP_PLAIN);
		length = 0;
	}
	put(line, width, "%s%s", length ? "   " : "", item);
}

static void print_ms(char to[CELL_MAX], double ms)
{
	if (ms < 0)
		snprintf(to, CELL_MAX, "-");
	else
		print_number(to, ms);
}

static void put_figures(struct top_table *t, const struct top_figures *f, int width)
{
	const struct top_document *d = f->now;
	char a[CELL_MAX], b[CELL_MAX], c[CELL_MAX], item[4 * CELL_MAX];

	add_line(t, TOP_PLAIN);
	print_number(a, f->images_per_s);
	snprintf(item, sizeof item, "%s images/s", a);
	put_item(t, width, item);
	snprintf(item, sizeof item, "%" PRIu64 " stored", d->stored);
	put_item(t, width, item);
	print_ms(a, f->p50_ms);
	print_ms(b, f->p90_ms);
	print_ms(c, f->p99_ms);
	snprintf(item, sizeof item, "p50 %s, p90 %s, p99 %s ms", a, b, c);
	put_item(t, width, item);
	snprintf(item, sizeof item, "%" PRIu64 " in flight", d->in_flight);
	put_item(t, width, item);
	print_number(a, round((double)d->memory_bytes / MIB));
	snprintf(item, sizeof item, "%s of %" PRIu64 " MiB", a, d->budget_bytes / MIB);
	put_item(t, width, item);
	print_number(a, f->rejected_per_s);
	snprintf(item, sizeof item, "rejected %s/s, %" PRIu64 " in all", a, d->rejected);
	put_item(t, width, item);
	snprintf(item, sizeof item, "degraded %" PRIu64, d->degraded);
	put_item(t, width, item);
}

/* ---- stages ---- */

struct column {
	const char *title;
	int width;
	int drop; /* columns with higher numbers are left out first */
};

enum { NAME, QUEUE, IN, OUT, MS, BUSY, EVENTS, NOW, COLUMN_COUNT };

static const struct column columns[COLUMN_COUNT] = {
	[NAME] = { "stage", 13, 0 },    [QUEUE] = { "queue", 6, 1 },    [IN] = { "in/s", 8, 5 },
	[OUT] = { "out/s", 8, 3 },      [MS] = { "ms", 7, 4 },          [BUSY] = { "busy", 6, 2 },
	[EVENTS] = { "events", 12, 6 }, [NOW] = { "now in it", 20, 7 },
};

/* Returns the columns that fit, as bits. */
static unsigned choose_columns(int width)
{
	unsigned chosen = 0;

	for (int drop = 0, used = 0; drop < COLUMN_COUNT; drop++)
		for (unsigned i = 0; i < COLUMN_COUNT; i++)
			if (columns[i].drop == drop && (used += columns[i].width) <= width)
				chosen |= 1U << i;
	return chosen;
}

/* Writes a line of cells. The first and the last column are aligned to the left. */
static void put_cells(struct top_line *line, int width, unsigned chosen,
                      char cell[COLUMN_COUNT][CELL_MAX])
{
	for (unsigned i = 0; i < COLUMN_COUNT; i++) {
		if (!(chosen & 1U << i))
			continue;
		if (i == NAME)
			put(line, width, "%-*.*s", columns[i].width, columns[i].width, cell[i]);
		else if (i == NOW)
			put(line, width, "  %s", cell[i]);
		else
			put(line, width, " %*s", columns[i].width - 1, cell[i]);
	}
}

static void print_threads(char to[CELL_MAX], const struct top_stage_figures *s)
{
	size_t length = 0;

	to[0] = '\0';
	if (s->thread_count > THREADS_SHOWN)
		snprintf(to, CELL_MAX, "%u threads", s->thread_count);
	else
		for (unsigned i = 0; i < s->thread_count && length < CELL_MAX; i++)
			length += (size_t)snprintf(to + length, CELL_MAX - length, "%s%s",
			                           i ? ", " : "", s->thread[i]);
}

static void put_stage(struct top_table *t, const struct top_stage_figures *s, int width,
                      unsigned chosen)
{
	char cell[COLUMN_COUNT][CELL_MAX];

	snprintf(cell[NAME], CELL_MAX, "%s", s->name);
	snprintf(cell[QUEUE], CELL_MAX, "%" PRIu64, s->queued);
	print_number(cell[IN], s->in_per_s);
	print_number(cell[OUT], s->out_per_s);
	print_number(cell[MS], s->service_ms);
	snprintf(cell[BUSY], CELL_MAX, "%.0f %%", 100 * s->busy);
	snprintf(cell[EVENTS], CELL_MAX, "%" PRIu64, s->events);
	print_threads(cell[NOW], s);
	put_cells(add_line(t, s->busy >= MOSTLY ? TOP_BUSY : TOP_PLAIN), width, chosen, cell);
}

static void put_stages(struct top_table *t, const struct top_figures *f, int width)
{
	unsigned chosen = choose_columns(width);
	char head[COLUMN_COUNT][CELL_MAX];

	for (unsigned i = 0; i < COLUMN_COUNT; i++)
		snprintf(head[i], CELL_MAX, "%s", columns[i].title);
	put_cells(add_line(t, TOP_HEAD), width, chosen, head);
	for (unsigned i = 0; i < f->now->stage_count; i++)
		put_stage(t, &f->stage[i], width, chosen);
}

/* ---- threads ---- */

static void append(struct top_line *line, const char *text)
{
	size_t length = strlen(line->text);

	snprintf(line->text + length, sizeof line->text - length, "%s", text);
}

/* Appends a bar of the given columns, which is filled by a share. Eighths of a block are for UTF-8:
 * U+2588 is a whole one, U+258F an eighth. */
static void put_bar(struct top_line *line, int width, double share, bool is_utf8)
{
	int eighths = (int)lround(share * 8 * width);

	for (int i = 0; i < width; i++, eighths -= 8) {
		char block[4] = " ";

		if (is_utf8 && eighths > 0)
			snprintf(block, sizeof block, "\xE2\x96%c",
			         (char)(eighths >= 8 ? 0x88 : 0x90 - eighths));
		else if (eighths >= 4)
			block[0] = '#';
		append(line, block); /* the line has room for three bytes a column */
	}
}

static void put_threads(struct top_table *t, const struct top_figures *f, int width, bool is_utf8)
{
	int bar = width - 10 - 6 - 2 - 13;

	bar = bar > BAR_MAX ? BAR_MAX : bar < 4 ? 0 : bar;
	put(add_line(t, TOP_HEAD), width, "%-10s %5s  %*s%s", "thread", "busy", bar ? bar + 1 : 0,
	    "", "mostly in");
	for (unsigned i = 0; i < f->now->thread_count; i++) {
		const struct top_thread_figures *thread = &f->thread[i];
		struct top_line *line = add_line(t, thread->busy >= MOSTLY ? TOP_BUSY : TOP_PLAIN);
		char busy[CELL_MAX];

		snprintf(busy, sizeof busy, "%.0f %%", 100 * thread->busy);
		put(line, width, "%-10.10s %5s  ", thread->name, busy);
		size_t before = strlen(line->text);

		if (bar) {
			put_bar(line, bar, thread->busy, is_utf8);
			append(line, " ");
		}
		int extra = (int)(strlen(line->text) - before) - (bar ? bar + 1 : 0);

		put(line, width + extra, "%s", thread->most);
	}
}

/* ---- all ---- */

static void put_rejections(struct top_table *t, const struct top_document *d, int width)
{
	if (!d->rejection_count)
		return;
	put(add_line(t, TOP_HEAD), width, "%8s  rejected as", "answers");
	for (unsigned i = 0; i < d->rejection_count; i++)
		put(add_line(t, TOP_BAD), width, "%8" PRIu64 "  %s", d->rejection[i].count,
		    d->rejection[i].name);
}

void top_table(const struct top_figures *f, struct top_look look, struct top_table *to)
{
	int width = width_of(look);

	to->count = 0;
	put_figures(to, f, width);
	if (!look.is_compact)
		add_line(to, TOP_PLAIN);
	put_stages(to, f, width);
	if (!look.is_compact)
		add_line(to, TOP_PLAIN);
	put_threads(to, f, width, look.is_utf8);
	if (!look.is_compact && f->now->rejection_count)
		add_line(to, TOP_PLAIN);
	put_rejections(to, f->now, width);
}
