/* request_stats.c - what a worker counts, and one record per request. */
#include "request_stats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "command_line.h"

#define CHUNK_RECORDS 16384

void load_stats_merge(struct load_stats *to, const struct load_stats *from)
{
	load_hist_merge(&to->response, &from->response);
	load_hist_merge(&to->exchange, &from->exchange);
	load_hist_merge(&to->latency, &from->latency);
	for (unsigned i = 0; i < LOAD_RESULTS; i++)
		counter_add(&to->results[i], counter_read(&from->results[i]));
	for (unsigned i = 0; i < LOAD_STATUS_MAX; i++)
		counter_add(&to->statuses[i], counter_read(&from->statuses[i]));
	counter_add(&to->unexpected, counter_read(&from->unexpected));
	counter_add(&to->input_bytes, counter_read(&from->input_bytes));
	counter_add(&to->opened, counter_read(&from->opened));
	counter_add(&to->variants, counter_read(&from->variants));
	counter_add(&to->variants_wrong, counter_read(&from->variants_wrong));
	counter_add(&to->aborted, counter_read(&from->aborted));
}

void load_stats_merge_ended(struct load_stats *to, const struct load_stats *from)
{
	load_stats_merge(to, from);
	if (from->first_ns > 0 && (to->first_ns == 0 || from->first_ns < to->first_ns))
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
	to->cpu_ns += from->cpu_ns;
	if (from->busiest > to->busiest)
		to->busiest = from->busiest;
	if (from->problem[0])
		load_stats_problem(to, "%s", from->problem);
}

uint64_t load_stats_answered(const struct load_stats *s)
{
	return counter_read(&s->results[LOAD_OK]);
}

uint64_t load_stats_failed(const struct load_stats *s)
{
	uint64_t n = 0;

	for (unsigned i = LOAD_OK + 1; i < LOAD_RESULTS; i++)
		n += counter_read(&s->results[i]);
	return n;
}

void load_stats_problem(struct load_stats *s, const char *format, ...)
{
	va_list args;

	if (s->problem[0])
		return;
	va_start(args, format);
	vsnprintf(s->problem, sizeof s->problem, format, args);
	va_end(args);
}

const char *load_result_name(enum load_result result)
{
	static const char *const names[LOAD_RESULTS] = { "pending", "",      "connect", "reset",
		                                         "timeout", "short", "parse" };

	assert(result < LOAD_RESULTS);
	return names[result];
}

/* ---- records ---- */

struct load_record_chunk {
	struct load_record_chunk *next;
	size_t count;
	struct load_record records[CHUNK_RECORDS];
};

void load_records_add(struct load_records *r, const struct load_record *record)
{
	struct load_record_chunk *chunk = r->last;

	if (!chunk || chunk->count == CHUNK_RECORDS) {
		chunk = malloc(sizeof *chunk);
		if (!chunk) {
			r->lost++;
			return;
		}
		chunk->next = NULL;
		chunk->count = 0;
		*(r->last ? &r->last->next : &r->first) = chunk;
		r->last = chunk;
	}
	chunk->records[chunk->count++] = *record;
}

void load_records_fini(struct load_records *r)
{
	while (r->first) {
		struct load_record_chunk *next = r->first->next;

		free(r->first);
		r->first = next;
	}
	*r = (struct load_records){ 0 };
}

struct cursor {
	const struct load_record_chunk *chunk;
	size_t at;
};

/* The record at the cursor, or NULL at the end. */
static const struct load_record *look(struct cursor *c)
{
	while (c->chunk && c->at == c->chunk->count)
		*c = (struct cursor){ .chunk = c->chunk->next };
	return c->chunk ? &c->chunk->records[c->at] : NULL;
}

/* RFC 4180 */
static void write_name(FILE *out, const char *name)
{
	if (!strpbrk(name, ",\"\r\n")) {
		fputs(name, out);
		return;
	}
	putc('"', out);
	for (; *name; name++) {
		if (*name == '"')
			putc('"', out);
		putc(*name, out);
	}
	putc('"', out);
}

static void write_time(FILE *out, uint64_t ns, uint64_t zero_ns)
{
	if (ns >= zero_ns)
		fprintf(out, "%.9f,", (double)(ns - zero_ns) / 1e9);
	else
		putc(',', out);
}

static void write_record(FILE *out, const struct load_record *r, uint64_t zero_ns,
                         const struct load_files *files)
{
	write_time(out, r->intended_ns, zero_ns);
	write_time(out, r->start_ns, zero_ns);
	write_time(out, r->sent_ns, zero_ns);
	write_time(out, r->done_ns, zero_ns);
	fprintf(out, "%" PRIu64 ",", files->list[r->file].size);
	if (r->status)
		fprintf(out, "%u", (unsigned)r->status);
	fprintf(out, ",%s,%" PRIu32 ",", load_result_name((enum load_result)r->result),
	        r->connection);
	write_name(out, files->list[r->file].name);
	putc('\n', out);
}

int load_records_write(FILE *out, const struct load_records *const *records, unsigned count,
                       uint64_t zero_ns, const struct load_files *files)
{
	struct cursor cursors[LOAD_THREADS_MAX] = { 0 };

	assert(count <= LOAD_THREADS_MAX);
	for (unsigned i = 0; i < count; i++)
		cursors[i].chunk = records[i]->first;
	fputs("intended,start,sent,done,bytes,status,error,connection,file\n", out);
	for (;;) {
		const struct load_record *next = NULL;
		unsigned from = 0;

		for (unsigned i = 0; i < count; i++) {
			const struct load_record *r = look(&cursors[i]);

			if (r && (!next || r->done_ns < next->done_ns)) {
				next = r;
				from = i;
			}
		}
		if (!next)
			return ferror(out) ? -1 : 0;
		write_record(out, next, zero_ns, files);
		cursors[from].at++;
	}
}
